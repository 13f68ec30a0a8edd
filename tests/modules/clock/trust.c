// SPDX-License-Identifier: GPL-2.0
/* Notifiers of the verdict: the values that they receive, and the errors that bad use gets. */
#include <linux/apic_clock.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/seq_file.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "clock_test.h"

static unsigned int calls;
static int worth = -1;
static bool differs;		/* the two arguments differ */
static bool registered;
static bool lingers;
static int answers[6];

static void handler(unsigned long long now, unsigned long data)
{
}

static struct apic_clock_timer timer = { .timer.function = handler };

/* Take time, and arm a timer and a group as the module is unloaded. */
static void linger(void)
{
	unsigned int n;

	for (n = 0; n < 500 && READ_ONCE(THIS_MODULE->state) != MODULE_STATE_GOING; n++)
		msleep(20);
	/* Until all has been cancelled, unless this is waited for. */
	msleep(1000);
	add_apic_timer_at(&timer, CLOCK_MONOTONIC, ktime_get() + NSEC_PER_SEC);
	clock_test_group_again(0, 1000);
}

static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	const struct apic_clock_verdict *verdict = data;

	calls++;
	worth = event;
	differs |= verdict->worth != event;
	if (lingers)
		linger();
	return NOTIFY_DONE;
}

static struct notifier_block block = {
	.notifier_call = notified,
};

/* @linger: the notifier does that, and must be left registered */
int clock_test_trust(bool linger)
{
	static struct notifier_block empty;
	unsigned int i = 0;

	lingers = linger;
	init_apic_clock_timer(&timer);

	answers[i++] = apic_clock_unregister_notifier(&block);
	answers[i++] = apic_clock_unregister_notifier(NULL);
	answers[i++] = apic_clock_register_notifier(NULL);
	answers[i++] = apic_clock_register_notifier(&empty);
	answers[i++] = apic_clock_register_notifier(&block);
	answers[i++] = apic_clock_register_notifier(&block);
	registered = true;
	return 0;
}

void clock_test_trust_exit(void)
{
	if (registered)
		apic_clock_unregister_notifier(&block);
}

void clock_test_trust_show(struct seq_file *file)
{
	unsigned int i;

	seq_printf(file, "trust calls %u worth %d differs %d answers", calls, worth, differs);
	for (i = 0; i < ARRAY_SIZE(answers); i++)
		seq_printf(file, " %d", answers[i]);
	seq_putc(file, '\n');
}
