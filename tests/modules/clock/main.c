// SPDX-License-Identifier: GPL-2.0
/*
 * apic_clock_test: timers of clocks, armed by a script while it steers and sets the clocks.
 *
 * Driven through /sys/kernel/debug/apic_clock_test/:
 *
 *	command	"arm SLOT CLOCK MS CPU": arm for MS from now on; CPU -1 is this one
 *		"every SLOT CLOCK MS CPU": the same, and its handler arms it again
 *		"mod SLOT CLOCK MS CPU": change the moment
 *		"del SLOT", "del_sync SLOT"
 *		"crowd": arm a hundred more for an hour from now on
 *		"refuse": record the errors that bad input gets
 *		"adjust CPU 0 CYCLES": set a CPU's TSC ahead by CYCLES, relative to its
 *		state when this module was loaded, by TSC_ADJUST
 *		"single CPU 0 SHOTS": timers on a CPU for moments of the reference
 *		CPU's TSC, see single.c
 *		"group CPUS FLAGS SHOTS": handlers on several CPUs, see group.c
 *		"later N FLAGS MS": group N of all CPUs expires MS from now on, once
 *		"cancel N", "again N MS": cancel group N, and arm it once more
 *		"foreign MS": a group with a function of apic_clock's, which is left behind
 *		"grow": a CPU enters a group's mask while the group is allocated
 *		"hold WHERE MS": hold up a CPU as it arms a timer, see hold.c
 *		"lost CPU": arm a timer as its owner is notified, see lost.c
 *		"patience MS", "late MS", "answered MS": hold up a CPU that is measured, see
 *		patience.c
 *		"pending CPU TIMES", "changed CPU": check whether a timer is pending while it is
 *		armed anew, see pending.c
 *		"rearm CPU TIMES": delete a timer whose handler arms it, see rearm.c
 *		"ring COUNT": the differences of three CPUs do not fit together, see ring.c
 *		"move N CYCLES": the TSC of CPU N moves right after it was measured, see ring.c
 *		"steps CPUS": a CPU waits while other CPUs do something, see steps.c
 *		"stretch SITE N": time passes while a clock is read, see stretch.c
 *		"bracket SITE TIMES": convert moments during such delays
 *		"trust LINGER": register a notifier of the verdict, and record errors of bad use;
 *		with 1 it is called while this module is unloaded, see trust.c
 *		"stop NAPS": the TSC stops in idle during that number of sleeps, see stop.c
 *		"phc_VERB SLOT CLOCK VALUE": timers of PTP clocks, see phc.c
 *	result	common time and the TSC, then a line for each slot
 */
#include <linux/apic_clock.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "clock_test.h"

static bool leave;
module_param(leave, bool, 0600);
MODULE_PARM_DESC(leave, "leave timers and groups pending, and the notifier registered, when unloaded");

static bool refuse_loads;
module_param(refuse_loads, bool, 0600);
MODULE_PARM_DESC(refuse_loads, "refuse to load any module");

#define SLOTS	8
/* Timers of the slots from here on do not start early, regardless of a conversion's error. */
#define AFTER	5

/**
 * struct slot - a timer and its results
 * @timer:	the timer
 * @every:	ns from one moment to the next, 0: there is only one moment
 * @runs:	number of times that its handler ran
 * @off:	last start minus the TSC at which the clock read the moment, TSC cycles
 * @most:	@off with the largest absolute value
 * @reading:	value of the clock at the start minus the moment, ns
 * @least:	minimum of that, by the kernel's own reading
 * @cpu:	CPU on which the handler ran
 * @ret:	return value of the last command
 */
static struct slot {
	struct apic_clock_timer timer;
	s64 every;
	unsigned int runs;
	s64 off;
	s64 most;
	s64 reading;
	s64 least;
	int cpu;
	int ret;
} slots[SLOTS];

static struct apic_clock_timer crowd[100];
static struct dentry *directory;
static DEFINE_MUTEX(lock);		/* one command at a time */
static int refusals[18];

/* The kernel's own reading of the clock. */
static s64 reading(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
		return ktime_get_real();
	case CLOCK_MONOTONIC_RAW:
		return ktime_get_raw();
	case CLOCK_BOOTTIME:
		return ktime_get_boottime();
	case CLOCK_TAI:
		return ktime_get_clocktai();
	default:
		return ktime_get();
	}
}

static void handler(unsigned long long now, unsigned long data)
{
	struct slot *slot = (struct slot *)data;
	struct apic_clock_timer *timer = &slot->timer;

	slot->least = min(slot->least, reading(timer->clock) - (s64)timer->when);
	slot->off = now - apic_timer_clock_to_tsc(timer->clock, timer->when, NULL);
	slot->reading = apic_timer_tsc_to_clock(timer->clock, now) - timer->when;
	if (abs(slot->off) > abs(slot->most))
		slot->most = slot->off;
	slot->cpu = smp_processor_id();
	slot->runs++;
	if (slot->every)
		slot->ret = add_apic_timer_at(timer, timer->clock, timer->when + slot->every);
}

static ktime_t from_now(clockid_t clock, s64 ms)
{
	return apic_timer_tsc_to_clock(clock, apic_timer_now()) + ms * NSEC_PER_MSEC;
}

static void refuse(void)
{
	static struct apic_clock_timer zero;
	struct apic_clock_timer *timer = &slots[0].timer;
	unsigned int i = 0;

	refusals[i++] = add_apic_timer_at(NULL, CLOCK_TAI, 0);
	refusals[i++] = add_apic_timer_at(&zero, CLOCK_TAI, 0);
	refusals[i++] = mod_apic_timer_at(&zero, 0);
	refusals[i++] = del_apic_timer_at(&zero);
	refusals[i++] = del_apic_timer_at_sync(&zero);
	refusals[i++] = mod_apic_timer_at(timer, 0);
	refusals[i++] = del_apic_timer_at(timer);
	refusals[i++] = add_apic_timer_at(timer, CLOCK_PROCESS_CPUTIME_ID, 0);
	refusals[i++] = add_apic_timer_at(timer, -1, 0);
	refusals[i++] = add_apic_timer_at_on(timer, CLOCK_TAI, 0, nr_cpu_ids);
	refusals[i++] = add_apic_timer_at(timer, CLOCK_TAI, KTIME_MAX);
	refusals[i++] = add_apic_timer_at(timer, CLOCK_TAI, KTIME_MAX);
	refusals[i++] = del_apic_timer_at_sync(timer);
	refusals[i++] = add_apic_timer_at(timer, CLOCK_MONOTONIC_RAW, KTIME_MAX);
	refusals[i++] = del_apic_timer_at(timer);
	refusals[i++] = del_apic_timer_at(timer);
	/* A quantile of no budget. */
	timer->timer.flags |= APIC_TIMER_COVER_99;
	refusals[i++] = add_apic_timer_at(timer, CLOCK_TAI, KTIME_MAX);
	refusals[i++] = mod_apic_timer_at(timer, KTIME_MAX);
	timer->timer.flags &= ~APIC_TIMER_COVER_MASK;
}

static int gather(void)
{
	ktime_t later = from_now(CLOCK_MONOTONIC, 3600 * MSEC_PER_SEC);
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < ARRAY_SIZE(crowd); i++)
		ret = add_apic_timer_at(&crowd[i], CLOCK_MONOTONIC, later);
	return ret;
}

static int perform(const char *verb, unsigned int n, int clock, long long ms, int cpu)
{
	struct slot *slot;

	if (!strcmp(verb, "refuse")) {
		refuse();
		return 0;
	}
	if (!strcmp(verb, "crowd"))
		return gather();
	if (!strcmp(verb, "adjust"))
		return clock_test_adjust(n, ms);
	if (!strcmp(verb, "single"))
		return clock_test_single(n, ms);
	if (!strcmp(verb, "group"))
		return clock_test_group(n, clock, ms);
	if (!strcmp(verb, "later"))
		return clock_test_group_later(n, clock, ms);
	if (!strcmp(verb, "foreign"))
		return clock_test_group_foreign(n);
	if (!strcmp(verb, "grow"))
		return clock_test_group_grow();
	if (!strcmp(verb, "cancel"))
		return clock_test_group_cancel(n);
	if (!strcmp(verb, "again"))
		return clock_test_group_again(n, clock);
	if (!strcmp(verb, "hold"))
		return clock_test_hold(n, clock);
	if (!strcmp(verb, "lost"))
		return clock_test_lost(n);
	if (!strcmp(verb, "patience"))
		return clock_test_patience(n, CLOCK_TEST_PATIENCE_CALLED);
	if (!strcmp(verb, "late"))
		return clock_test_patience(n, CLOCK_TEST_PATIENCE_LATE);
	if (!strcmp(verb, "answered"))
		return clock_test_patience(n, CLOCK_TEST_PATIENCE_ANSWERED);
	if (!strcmp(verb, "pending"))
		return clock_test_pending(n, clock);
	if (!strcmp(verb, "changed"))
		return clock_test_changed(n);
	if (!strcmp(verb, "rearm"))
		return clock_test_rearm(n, clock);
	if (!strcmp(verb, "move"))
		return clock_test_ring_move(n, clock);
	if (!strcmp(verb, "steps"))
		return clock_test_steps(n);
	if (!strcmp(verb, "stop"))
		return clock_test_stop(n);
	if (!strcmp(verb, "trust"))
		return clock_test_trust(n);
	if (!strcmp(verb, "ring"))
		return clock_test_ring(n);
	if (!strcmp(verb, "stretch"))
		return clock_test_stretch(n, clock);
	if (!strcmp(verb, "bracket"))
		return clock_test_bracket(n, clock);
	if (!strncmp(verb, "phc_", 4))
		return clock_test_phc(verb, n, clock, ms);
	if (n >= SLOTS)
		return -EINVAL;
	slot = &slots[n];
	slot->every = !strcmp(verb, "every") ? ms * NSEC_PER_MSEC : 0;
	if (!strcmp(verb, "arm") || slot->every) {
		slot->runs = 0;
		slot->most = 0;
		slot->least = S64_MAX;
		if (cpu < 0)
			slot->ret = add_apic_timer_at(&slot->timer, clock, from_now(clock, ms));
		else
			slot->ret = add_apic_timer_at_on(&slot->timer, clock,
							 from_now(clock, ms), cpu);
	} else if (!strcmp(verb, "mod")) {
		slot->ret = mod_apic_timer_at(&slot->timer, from_now(clock, ms));
	} else if (!strcmp(verb, "del")) {
		slot->ret = del_apic_timer_at(&slot->timer);
	} else if (!strcmp(verb, "del_sync")) {
		slot->ret = del_apic_timer_at_sync(&slot->timer);
	} else {
		return -EINVAL;
	}
	return 0;
}

static ssize_t command_write(struct file *file, const char __user *user, size_t size, loff_t *pos)
{
	int clock = CLOCK_MONOTONIC, cpu = -1, ret;
	char text[64] = {}, verb[16] = {};
	unsigned int n = 0;
	long long ms = 0;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, size))
		return -EFAULT;
	if (sscanf(text, "%15s %u %d %lld %d", verb, &n, &clock, &ms, &cpu) < 1)
		return -EINVAL;
	mutex_lock(&lock);
	ret = perform(verb, n, clock, ms, cpu);
	mutex_unlock(&lock);
	return ret ?: size;
}

static const struct file_operations command_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = command_write,
};

static int result_show(struct seq_file *file, void *unused)
{
	u64 common = apic_clock_common_now();
	unsigned int i;

	seq_printf(file, "common %llu tsc %llu\n", common, apic_timer_now());
	for (i = 0; i < SLOTS; i++)
		seq_printf(file, "slot %u ret %d runs %u off %lld most %lld reading %lld cpu %d pending %d least %lld\n",
			   i, slots[i].ret, READ_ONCE(slots[i].runs), slots[i].off, slots[i].most,
			   slots[i].reading, slots[i].cpu,
			   apic_clock_timer_pending(&slots[i].timer), slots[i].least);
	seq_puts(file, "refusals");
	for (i = 0; i < ARRAY_SIZE(refusals); i++)
		seq_printf(file, " %d", refusals[i]);
	seq_putc(file, '\n');
	clock_test_adjust_show(file);
	clock_test_single_show(file);
	clock_test_lost_show(file);
	clock_test_patience_show(file);
	clock_test_pending_show(file);
	clock_test_rearm_show(file);
	clock_test_ring_show(file);
	clock_test_steps_show(file);
	clock_test_stop_show(file);
	clock_test_stretch_show(file);
	clock_test_trust_show(file);
	clock_test_phc_show(file);
	clock_test_group_show(file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

/* Fail like a module that runs out of memory, or that finds the BTF of another kernel. */
static int notified(struct notifier_block *block, unsigned long state, void *module)
{
	return state == MODULE_STATE_COMING && refuse_loads ? NOTIFY_BAD : NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = notified };

static int __init clock_test_init(void)
{
	unsigned int i;
	int ret = register_module_notifier(&block);

	if (ret)
		return ret;
	for (i = 0; i < SLOTS; i++) {
		slots[i].timer.timer.function = handler;
		slots[i].timer.timer.data = (unsigned long)&slots[i];
		init_apic_clock_timer(&slots[i].timer);
		slots[i].timer.timer.flags = APIC_TIMER_EXACT;
		slots[i].timer.flags = i < AFTER ? 0 : APIC_CLOCK_AFTER;
	}
	for (i = 0; i < ARRAY_SIZE(crowd); i++) {
		crowd[i].timer.function = handler;
		init_apic_clock_timer(&crowd[i]);
	}
	clock_test_adjust_init();
	clock_test_phc_init();
	directory = debugfs_create_dir("apic_clock_test", NULL);
	debugfs_create_file("command", 0200, directory, NULL, &command_fops);
	debugfs_create_file("result", 0400, directory, NULL, &result_fops);
	return 0;
}

static void __exit clock_test_exit(void)
{
	unsigned int i;

	unregister_module_notifier(&block);
	debugfs_remove(directory);
	clock_test_hold_end();
	clock_test_ring_exit();
	clock_test_stretch_end();
	if (leave)
		return;
	clock_test_trust_exit();
	for (i = 0; i < SLOTS; i++) {
		slots[i].every = 0;
		del_apic_timer_at_sync(&slots[i].timer);
	}
	for (i = 0; i < ARRAY_SIZE(crowd); i++)
		del_apic_timer_at_sync(&crowd[i]);
	clock_test_group_free();
	clock_test_phc_exit();
}

module_init(clock_test_init);
module_exit(clock_test_exit);

MODULE_DESCRIPTION("Test of apic_clock's timers");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
