// SPDX-License-Identifier: GPL-2.0
/*
 * Two periodic timers, one with its period in nanoseconds and one with it in TSC
 * cycles; and a notifier, which moves the start of the first timer when the TSC has
 * restarted in a sleep of the machine.
 *
 * The timers run until the module is unloaded; unloading prints the number of
 * runs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/time64.h>

#define PERIOD_NS	(10 * NSEC_PER_MSEC)

/* Moment n is start + n * period_ns: rounding errors do not accumulate. */
static struct apic_timer_period period = { .period_ns = PERIOD_NS };
static DEFINE_RAW_SPINLOCK(lock);	/* @period: handler and notifier */
static u64 cycles;			/* period of the other */
static u64 runs[2], missed[2];

static void fire_ns(unsigned long long now, unsigned long data);
static void fire_cycles(unsigned long long now, unsigned long data);
static DEFINE_APIC_TIMER(ns_timer, fire_ns, 0);
static DEFINE_APIC_TIMER(cycles_timer, fire_cycles, 0);

static void fire_ns(unsigned long long now, unsigned long data)
{
	unsigned long flags;
	u64 n;

	/* In mode mean, the handler may be early, and would run for the same moment again. */
	now = max(now, ns_timer.expires);
	runs[0]++;
	raw_spin_lock_irqsave(&lock, flags);
	n = apic_timer_forward_period(&ns_timer, &period, now);
	raw_spin_unlock_irqrestore(&lock, flags);
	/* 1 if in time; more if moments were missed. */
	if (n)
		missed[0] += n - 1;
	add_apic_timer(&ns_timer);
}

static void fire_cycles(unsigned long long now, unsigned long data)
{
	u64 n;

	now = max(now, cycles_timer.expires);
	runs[1]++;
	n = apic_timer_forward(&cycles_timer, now, cycles);
	if (n)
		missed[1] += n - 1;
	add_apic_timer(&cycles_timer);
}

/*
 * apic_timer moves pending timers. A module has to move the TSC values that it
 * keeps: after a sleep through which the TSC has not counted, they denote other
 * moments.
 */
static int epoch_notify(struct notifier_block *block, unsigned long event, void *data)
{
	const struct apic_timer_notice *notice = data;
	unsigned long flags;

	if (event != APIC_TIMER_TSC_EPOCH)
		return NOTIFY_DONE;
	raw_spin_lock_irqsave(&lock, flags);
	period.start += notice->shift;
	raw_spin_unlock_irqrestore(&lock, flags);
	return NOTIFY_OK;
}

static struct notifier_block epoch_block = { .notifier_call = epoch_notify };

static int __init sample_init(void)
{
	int ret;

	ret = apic_timer_register_notifier(&epoch_block);
	if (ret)
		return ret;

	cycles = apic_timer_ns_to_tsc(PERIOD_NS);
	period.start = apic_timer_add_tsc(apic_timer_now(), cycles);
	ns_timer.expires = period.start;
	cycles_timer.expires = period.start;
	ret = add_apic_timer(&ns_timer);
	if (!ret)
		ret = add_apic_timer(&cycles_timer);
	if (ret) {
		del_apic_timer_sync(&ns_timer);
		apic_timer_unregister_notifier(&epoch_block);
	}
	return ret;
}

static void __exit sample_exit(void)
{
	/*
	 * Each call waits for a running handler, and deletes the timer if the handler has
	 * armed it again.
	 */
	del_apic_timer_sync(&ns_timer);
	del_apic_timer_sync(&cycles_timer);
	apic_timer_unregister_notifier(&epoch_block);
	pr_info("by ns: %llu runs, %llu missed\n", runs[0], missed[0]);
	pr_info("by cycles: %llu runs, %llu missed\n", runs[1], missed[1]);
	pr_info("done\n");
}

module_init(sample_init);
module_exit(sample_exit);

MODULE_DESCRIPTION("Periodic timers of apic_timer, and a notifier of TSC epochs");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
