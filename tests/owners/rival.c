// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_rival: one more clock event device for a CPU, better than any
 * other by its rating. Its events are seen to by a thread of another CPU, which
 * looks at the clock now and then and interrupts.
 */
#include <linux/clockchips.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/smp.h>

#include <asm/irq_regs.h>

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "whose device it is; another has to be online");

static int rating = 100000;
module_param(rating, int, 0444);
MODULE_PARM_DESC(rating, "of the device");

static unsigned long events;
module_param(events, ulong, 0444);
MODULE_PARM_DESC(events, "of the kernel's that it has served");

static struct task_struct *watcher;
static call_single_data_t kick;
static u64 due;		/* CLOCK_MONOTONIC in ns, U64_MAX for none */

static int set_next_event(unsigned long ns, struct clock_event_device *device)
{
	WRITE_ONCE(due, ktime_get_ns() + ns);
	return 0;
}

static int set_stopped(struct clock_event_device *device)
{
	WRITE_ONCE(due, U64_MAX);
	return 0;
}

static struct clock_event_device rival = {
	.name = "apic_timer_rival",
	.features = CLOCK_EVT_FEAT_ONESHOT,
	.irq = -1,
	.set_next_event = set_next_event,
	.set_state_oneshot = set_stopped,
	.set_state_oneshot_stopped = set_stopped,
	.set_state_shutdown = set_stopped,
};

/* On its CPU, by an interrupt that has no registers for the tick to look at. */
static void event(void *unused)
{
	static struct pt_regs none;
	struct pt_regs *before;

	if (clockevent_state_detached(&rival) || READ_ONCE(due) > ktime_get_ns())
		return;
	WRITE_ONCE(due, U64_MAX);
	events++;
	before = set_irq_regs(&none);
	rival.event_handler(&rival);
	set_irq_regs(before);
}

static int watch(void *unused)
{
	while (!kthread_should_stop()) {
		/* Failing as the last interrupt is on its way is as good. */
		if (READ_ONCE(due) <= ktime_get_ns())
			smp_call_function_single_async(cpu, &kick);
		usleep_range(50, 100);
	}
	return 0;
}

static void nothing(void *unused)
{
}

static void add(void *unused)
{
	clockevents_config_and_register(&rival, NSEC_PER_SEC, 1000, LONG_MAX);
}

static int __init rival_init(void)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, cpu);

	if (cpu >= nr_cpu_ids || !cpu_online(cpu) || other >= nr_cpu_ids)
		return -ENODEV;
	due = U64_MAX;
	INIT_CSD(&kick, event, NULL);
	rival.rating = rating;
	rival.cpumask = cpumask_of(cpu);
	watcher = kthread_create(watch, NULL, "rival");
	if (IS_ERR(watcher))
		return PTR_ERR(watcher);
	kthread_bind(watcher, other);
	wake_up_process(watcher);
	smp_call_function_single(cpu, add, NULL, true);
	return 0;
}

static void __exit rival_exit(void)
{
	clockevents_unbind_device(&rival, cpu);
	kthread_stop(watcher);
	smp_call_function_single(cpu, nothing, NULL, true);
}

module_init(rival_init);
module_exit(rival_exit);

MODULE_DESCRIPTION("A clock event device that wants to be first");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
