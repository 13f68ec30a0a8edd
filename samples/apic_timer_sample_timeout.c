// SPDX-License-Identifier: GPL-2.0
/*
 * A timer as a timeout: each sign of life postpones it with mod_apic_timer(), the
 * last one deletes it, and without any, its handler runs. Then two timers that arm
 * each other, which only apic_timer_shutdown_sync() can stop reliably.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/module.h>

#define TIMEOUT_US	5000
#define STEP_US		50

static bool timed_out;

static void timeout(unsigned long long now, unsigned long data)
{
	WRITE_ONCE(timed_out, true);
}

static DEFINE_APIC_TIMER(timeout_timer, timeout, 0);

/* Postpone the timeout. Return: 1 if it was pending, 0 if it was started now, or an error. */
static int put_off(void)
{
	return mod_apic_timer(&timeout_timer, apic_timer_add_tsc(apic_timer_now(),
						apic_timer_us_to_tsc(TIMEOUT_US)));
}

static int use_timeout(void)
{
	int i, ret;

	/* Signs of life, each before the timeout. */
	for (i = 0; i < 10; i++) {
		ret = put_off();
		if (ret < 0)
			return ret;
		usleep_range(100, 200);
	}
	ret = del_apic_timer_sync(&timeout_timer);
	pr_info("alive: %s\n", ret == 1 ? "no timeout" : "timeout");

	/* No more signs of life. */
	ret = put_off();
	if (ret < 0)
		return ret;
	msleep(20);
	pr_info("silent: %s\n", READ_ONCE(timed_out) ? "timeout" : "no timeout");
	return 0;
}

/* @data is the number of this timer. Arm the other one. */
static void step(unsigned long long now, unsigned long data);

static struct apic_timer_list steps[2] = {
	APIC_TIMER_INITIALIZER(step, 0), APIC_TIMER_INITIALIZER(step, 1),
};

static unsigned int count[2];

static void step(unsigned long long now, unsigned long data)
{
	count[data]++;
	/* -ESHUTDOWN if the other timer is shut down: then both have ended. */
	mod_apic_timer(&steps[!data], now + apic_timer_us_to_tsc(STEP_US));
}

static void shut_down(void)
{
	apic_timer_shutdown_sync(&timeout_timer);
	apic_timer_shutdown_sync(&steps[0]);
	apic_timer_shutdown_sync(&steps[1]);
}

static int __init sample_init(void)
{
	int ret = use_timeout();

	if (!ret)
		ret = mod_apic_timer(&steps[0], apic_timer_now());
	if (ret) {
		shut_down();
		return ret;
	}
	msleep(20);
	/* No handler runs after this, so the counts are final. */
	shut_down();
	pr_info("steps: %u and %u, %s\n", count[0], count[1],
		count[0] - count[1] <= 1 ? "in turn" : "out of turn");
	pr_info("done\n");
	return 0;
}

static void __exit sample_exit(void)
{
}

module_init(sample_init);
module_exit(sample_exit);

MODULE_DESCRIPTION("Timeouts by apic_timer, and how to end timers that arm each other");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
