// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_rival: one more clock event device for a CPU, with a higher rating than any other. A
 * thread on another CPU handles its events: it reads the clock now and then and sends an
 * interrupt.
 */
#include <linux/clockchips.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/smp.h>
#include <linux/string.h>

#include <asm/irq_regs.h>

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU of the device; another CPU must be online");

static int rating = 100000;
module_param(rating, int, 0444);
MODULE_PARM_DESC(rating, "rating of the device");

static bool later;
module_param(later, bool, 0444);
MODULE_PARM_DESC(later, "the device appears when the CPU comes online, not by loading");

static unsigned long events;
module_param(events, ulong, 0444);
MODULE_PARM_DESC(events, "number of kernel events served by the device");

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

/* Runs on its CPU, in an interrupt without registers for the tick to read. */
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
		/* Failure because the last interrupt is still in flight is fine. */
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
	unsigned long flags;

	local_irq_save(flags);
	clockevents_config_and_register(&rival, NSEC_PER_SEC, 1000, LONG_MAX);
	local_irq_restore(flags);
}

static enum cpuhp_state state;

/*
 * Set whether the kernel may broadcast by the CPU's LAPIC device once that is not its tick device:
 * the kernel would not return it.
 */
static void let_broadcast(bool let)
{
	static struct clock_event_device probe;
	struct clock_event_device *device;

	probe = (struct clock_event_device) {
		.name = "apic_timer_rival_probe",
		.features = CLOCK_EVT_FEAT_DUMMY,
		.cpumask = cpumask_of(cpu),
		.irq = -1,
	};
	clockevents_register_device(&probe);
	/* It is the first, so the list head is before it. */
	list_for_each_entry(device, probe.list.prev, list) {
		if (device == &probe || !str_has_prefix(device->name, "lapic") ||
		    !cpumask_equal(device->cpumask, cpumask_of(cpu)))
			continue;
		if (let)
			device->features &= ~CLOCK_EVT_FEAT_C3STOP;
		else
			device->features |= CLOCK_EVT_FEAT_C3STOP;
		break;
	}
	clockevents_unbind_device(&probe, cpu);
}

static int online(unsigned int new)
{
	if (new != cpu)
		return 0;
	let_broadcast(false);
	add(NULL);
	return 0;
}

static int __init rival_init(void)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, cpu);

	if (cpu >= nr_cpu_ids || !cpu_online(cpu) || other >= nr_cpu_ids)
		return -ENODEV;
	due = U64_MAX;
	INIT_LIST_HEAD(&rival.list);
	INIT_CSD(&kick, event, NULL);
	rival.rating = rating;
	rival.cpumask = cpumask_of(cpu);
	watcher = kthread_create(watch, NULL, "rival");
	if (IS_ERR(watcher))
		return PTR_ERR(watcher);
	kthread_bind(watcher, other);
	wake_up_process(watcher);
	if (later)
		state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "rival:online",
						  online, NULL);
	else
		smp_call_function_single(cpu, add, NULL, true);
	return 0;
}

static void __exit rival_exit(void)
{
	if (later) {
		cpuhp_remove_state_nocalls(state);
		let_broadcast(true);
	}
	clockevents_unbind_device(&rival, cpu);
	kthread_stop(watcher);
	smp_call_function_single(cpu, nothing, NULL, true);
}

module_init(rival_init);
module_exit(rival_exit);

MODULE_DESCRIPTION("A clock event device that wants to be first");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
