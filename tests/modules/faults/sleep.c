// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_sleep: timers that are pending while the machine sleeps, or while the kernel marks
 * the TSC unstable, and their results.
 *
 * Driven through /sys/kernel/debug/apic_timer_sleep/:
 *
 *	arm	write N: on each CPU three timers for N ms from now, one of them
 *		to be skipped if it is late and one with a handler that wakes the
 *		machine from suspend to idle, and one for 1000 s from now
 *	report	what each timer has done, and what the notifier has received
 *	unstable	write anything: the kernel marks the TSC unstable
 *
 * With the parameters, the TSC is marked unstable when a function returns. The return is delayed
 * until the notifier was called.
 */
#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/suspend.h>
#include <asm/tsc.h>

#define FAR_MS	1000000
/*
 * Maximum time until a notifier is called after a change of the TSC, and for its effects. The
 * other CPU, on which they happen, may be held up for most of a second.
 */
#define NOTICE_MS	5000
#define ACT_MS		1500

static char *after;
module_param(after, charp, 0444);
MODULE_PARM_DESC(after, "function on whose return the kernel marks the TSC unstable");

static int times = 1;
module_param(times, int, 0444);
MODULE_PARM_DESC(times, "number of returns until then");

enum kind { RUNS, SKIPS, WAKES, FAR, KINDS };

static const char * const names[] = { "runs", "skips", "wakes", "far" };

struct shot {
	struct apic_timer_list timer;
	unsigned int runs;
	u64 late;
	int cpu;
};

static DEFINE_PER_CPU(struct shot [KINDS], shots);
static unsigned int seen[2];
static struct apic_timer_notice last;
static struct dentry *directory;

static void handler(unsigned long long now, unsigned long data)
{
	struct shot *shot = (struct shot *)data;

	shot->late = now - shot->timer.expires;
	shot->cpu = smp_processor_id();
	WRITE_ONCE(shot->runs, shot->runs + 1);
	if (shot == &per_cpu(shots, shot->cpu)[WAKES])
		pm_system_wakeup();
}

static int arm_set(void *unused, u64 ms)
{
	u64 now = apic_timer_now();
	unsigned int cpu, kind;
	struct shot *shot;
	int ret;

	for_each_online_cpu(cpu) {
		for (kind = 0; kind < KINDS; kind++) {
			shot = &per_cpu(shots, cpu)[kind];
			del_apic_timer_sync(&shot->timer);
			shot->runs = 0;
			shot->late = 0;
			shot->timer.expires = now +
				apic_timer_us_to_tsc(1000 * (kind == FAR ? FAR_MS : ms));
			ret = add_apic_timer_on(&shot->timer, cpu);
			if (ret)
				return ret;
		}
	}
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(arm_fops, NULL, arm_set, "%llu\n");

static int unstable_set(void *unused, u64 value)
{
	mark_tsc_unstable("a test wants so");
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(unstable_fops, NULL, unstable_set, "%llu\n");

static u64 to_ms(u64 cycles)
{
	return div_u64(apic_timer_tsc_to_ns(cycles), NSEC_PER_MSEC);
}

static int report_show(struct seq_file *file, void *unused)
{
	unsigned int cpu, kind;

	for_each_online_cpu(cpu) {
		for (kind = 0; kind < KINDS; kind++) {
			struct shot *shot = &per_cpu(shots, cpu)[kind];
			bool pending = apic_timer_pending(&shot->timer);
			u64 expires = shot->timer.expires;
			u64 now = apic_timer_now();

			seq_printf(file, "%s runs %u cpu %d pending %d late_ms %llu left_ms %llu\n",
				   names[kind], READ_ONCE(shot->runs),
				   shot->cpu, pending, to_ms(shot->late),
				   pending && expires > now ?
					to_ms(expires - now) : 0);
		}
	}
	seq_printf(file, "notified unstable %u epoch %u number %u shift %lld\n",
		   seen[APIC_TIMER_TSC_UNSTABLE], seen[APIC_TIMER_TSC_EPOCH],
		   last.epoch, last.shift);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(report);

static int notified(struct notifier_block *block, unsigned long event,
		    void *notice)
{
	seen[event]++;
	last = *(const struct apic_timer_notice *)notice;
	return NOTIFY_OK;
}

static struct notifier_block block = { .notifier_call = notified };

/* Runs with preemption off: another CPU has to call the notifier, and to act on the change. */
static int returned(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	unsigned int waited;

	if (--times)
		return 0;
	mark_tsc_unstable("a test wants so");
	for (waited = 0; waited < NOTICE_MS && !READ_ONCE(seen[APIC_TIMER_TSC_UNSTABLE]); waited++)
		mdelay(1);
	mdelay(ACT_MS);
	return 0;
}

static struct kretprobe probe = { .handler = returned };

static int __init sleep_init(void)
{
	unsigned int cpu, kind;
	int ret;

	for_each_possible_cpu(cpu) {
		for (kind = 0; kind < KINDS; kind++) {
			struct shot *shot = &per_cpu(shots, cpu)[kind];

			init_apic_timer(&shot->timer);
			shot->timer.function = handler;
			shot->timer.data = (unsigned long)shot;
			if (kind == SKIPS)
				shot->timer.flags = APIC_TIMER_SKIP_LATE;
		}
	}
	ret = apic_timer_register_notifier(&block);
	if (ret)
		return ret;
	probe.kp.symbol_name = after;
	ret = after ? register_kretprobe(&probe) : 0;
	if (ret) {
		apic_timer_unregister_notifier(&block);
		return ret;
	}
	directory = debugfs_create_dir("apic_timer_sleep", NULL);
	debugfs_create_file("arm", 0200, directory, NULL, &arm_fops);
	debugfs_create_file("report", 0400, directory, NULL, &report_fops);
	debugfs_create_file("unstable", 0200, directory, NULL, &unstable_fops);
	return 0;
}

static void __exit sleep_exit(void)
{
	unsigned int cpu, kind;

	if (after)
		unregister_kretprobe(&probe);
	debugfs_remove(directory);
	apic_timer_unregister_notifier(&block);
	for_each_possible_cpu(cpu)
		for (kind = 0; kind < KINDS; kind++)
			del_apic_timer_sync(&per_cpu(shots, cpu)[kind].timer);
}

module_init(sleep_init);
module_exit(sleep_exit);

MODULE_DESCRIPTION("Test of apic_timer: timers pending while the machine sleeps");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
