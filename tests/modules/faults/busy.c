// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_busy: a consumer that keeps every CPU's timers firing while it is loaded, and may
 * leave them pending when it is unloaded.
 */
#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/kmemleak.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/slab.h>

static unsigned int rate = 1000;
module_param(rate, uint, 0444);
MODULE_PARM_DESC(rate, "timers per second on each CPU; 0 for none");

static int only = -1;
module_param(only, int, 0444);
MODULE_PARM_DESC(only, "CPU to run timers on; -1 for all");

static unsigned int work;
module_param(work, uint, 0444);
MODULE_PARM_DESC(work, "time that each handler takes, in us");

static unsigned int waiting;
module_param(waiting, uint, 0444);
MODULE_PARM_DESC(waiting, "number of additional timers on all CPUs that wait for hours");

static bool leave;
module_param(leave, bool, 0444);
MODULE_PARM_DESC(leave, "leave timers pending at unload, as a faulty consumer does");

static DEFINE_PER_CPU(struct apic_timer_list, periodic);
static DEFINE_PER_CPU(unsigned long, ran);
static struct apic_timer_list *waiters;
static u64 period;

static unsigned long total(void)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(ran, cpu));
	return sum;
}

static int ran_get(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%lu\n", total());
}

static const struct kernel_param_ops ran_ops = { .get = ran_get };
module_param_cb(ran, &ran_ops, NULL, 0444);
MODULE_PARM_DESC(ran, "number of handlers run so far");

static void periodic_handler(unsigned long long now, unsigned long data)
{
	struct apic_timer_list *timer = (struct apic_timer_list *)data;
	u64 end = apic_timer_now() + apic_timer_us_to_tsc(work);

	this_cpu_inc(ran);
	while (apic_timer_now() < end)
		cpu_relax();
	apic_timer_forward(timer, now, period);
	add_apic_timer(timer);
}

static void waiting_handler(unsigned long long now, unsigned long data)
{
}

static void arm(void)
{
	struct apic_timer_list *timer;
	unsigned int i;
	int cpu;

	for_each_online_cpu(cpu) {
		if (!rate)
			break;
		timer = per_cpu_ptr(&periodic, cpu);
		timer->function = periodic_handler;
		timer->data = (unsigned long)timer;
		init_apic_timer(timer);
		timer->expires = apic_timer_now() + period;
		if (only < 0 || only == cpu)
			add_apic_timer_on(timer, cpu);
	}
	for (i = 0; i < waiting; i++) {
		cpu = i % num_online_cpus();
		waiters[i].function = waiting_handler;
		init_apic_timer(&waiters[i]);
		waiters[i].expires = apic_timer_now() +
			apic_timer_us_to_tsc(3600000000ULL + i / 3);
		add_apic_timer_on(&waiters[i], cpu);
	}
}

static void disarm(void)
{
	unsigned int i;
	int cpu;

	/* CPUs may have gone offline or come online since, and timers migrated. */
	for_each_possible_cpu(cpu)
		if (per_cpu(periodic, cpu).function)
			del_apic_timer_sync(per_cpu_ptr(&periodic, cpu));
	for (i = 0; i < waiting; i++)
		del_apic_timer_sync(&waiters[i]);
}

static int __init busy_init(void)
{
	waiters = kvcalloc(waiting, sizeof(*waiters), GFP_KERNEL);
	if (!waiters)
		return -ENOMEM;
	if (rate)
		period = div_u64(apic_timer_us_to_tsc(USEC_PER_SEC), rate);
	arm();
	return 0;
}

static void __exit busy_exit(void)
{
	if (!leave) {
		disarm();
		kvfree(waiters);
	} else if (waiting) {
		/* They are still pending, so their memory is not freed. */
		kmemleak_not_leak(waiters);
	}
}

module_init(busy_init);
module_exit(busy_exit);

MODULE_DESCRIPTION("Keeps apic_timer busy");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
