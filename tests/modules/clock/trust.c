// SPDX-License-Identifier: GPL-2.0
/* Notifiers of the verdict: the values that they receive, and the errors that bad use gets. */
#include <linux/apic_clock.h>
#include <linux/kernel.h>
#include <linux/notifier.h>
#include <linux/seq_file.h>

#include "clock_test.h"

static unsigned int calls;
static int worth = -1;
static bool differs;		/* the two arguments differ */
static bool registered;
static int answers[6];

static int notified(struct notifier_block *block, unsigned long event, void *data)
{
	const struct apic_clock_verdict *verdict = data;

	calls++;
	worth = event;
	differs |= verdict->worth != event;
	return NOTIFY_DONE;
}

static struct notifier_block block = {
	.notifier_call = notified,
};

int clock_test_trust(void)
{
	static struct notifier_block empty;
	unsigned int i = 0;

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
