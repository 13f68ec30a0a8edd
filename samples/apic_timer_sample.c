// SPDX-License-Identifier: GPL-2.0
/*
 * How apic_timer is used: one timer that fires once, one that fires
 * periodically, and one on another CPU. "modprobe apic_timer_sample" shows in the
 * kernel log how far from its moment each of them started.
 *
 * A handler runs in hard interrupt context: it should do what has to be done at
 * that moment and leave the rest, such as printing, to a work item. Here the
 * handlers note what they saw, and a work item prints it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

/* The periodic timer: so many shots, this far apart. */
#define SHOTS		5
#define PERIOD_NS	(10 * NSEC_PER_MSEC)

/* What a handler saw. */
struct shot {
	s64 error;		/* its start - expires, TSC cycles */
	unsigned int cpu;
};

static struct shot once, elsewhere, periodic[SHOTS];
static unsigned int shots;	/* periodic shots so far */
static u64 missed;		/* periods that had passed before their shot */
static struct apic_timer_period period = { .period_ns = PERIOD_NS };

static void report(struct work_struct *work)
{
	unsigned int i;

	pr_info("one-shot: error %lld cycles on CPU %u\n", once.error,
		once.cpu);
	pr_info("other CPU: error %lld cycles on CPU %u\n", elsewhere.error,
		elsewhere.cpu);
	for (i = 0; i < SHOTS; i++)
		pr_info("periodic %u: error %lld cycles on CPU %u\n", i,
			periodic[i].error, periodic[i].cpu);
	pr_info("done, %llu periods missed\n", missed);
}

static DECLARE_WORK(report_work, report);

/*
 * @data is the timer's own: here where to note the shot. @now is the TSC at
 * dispatch. The moment that was asked for is still in the timer's @expires.
 */
static void fire(unsigned long long now, unsigned long data);

static DEFINE_APIC_TIMER(once_timer, fire, (unsigned long)&once);
static DEFINE_APIC_TIMER(elsewhere_timer, fire, (unsigned long)&elsewhere);

static void fire(unsigned long long now, unsigned long data)
{
	struct shot *shot = (struct shot *)data;
	struct apic_timer_list *timer = shot == &once ? &once_timer :
							&elsewhere_timer;

	shot->error = now - timer->expires;
	shot->cpu = smp_processor_id();
}

/*
 * A periodic timer is one that its handler arms again. Moment n is computed
 * from the start of the period, so that rounding never adds up; after an
 * overrun the moments that have passed are skipped and counted.
 */
static void fire_periodic(unsigned long long now, unsigned long data);

static DEFINE_APIC_TIMER(periodic_timer, fire_periodic, 0);

static void fire_periodic(unsigned long long now, unsigned long data)
{
	periodic[shots].error = now - periodic_timer.expires;
	periodic[shots].cpu = smp_processor_id();

	if (++shots == SHOTS) {
		schedule_work(&report_work);
		return;
	}
	missed += apic_timer_forward_period(&periodic_timer, &period, now) - 1;
	add_apic_timer(&periodic_timer);
}

static void delete_timers(void)
{
	/* Waits for a handler that is running, also for one that re-arms. */
	del_apic_timer_sync(&once_timer);
	del_apic_timer_sync(&elsewhere_timer);
	del_apic_timer_sync(&periodic_timer);
	/* Nobody schedules it any more. */
	cancel_work_sync(&report_work);
}

static int __init sample_init(void)
{
	u64 now = apic_timer_now();
	struct apic_timer_info info;
	unsigned int cpu;
	int ret;

	/* In 2 ms, on the CPU that we happen to run on. */
	once_timer.expires = now + apic_timer_us_to_tsc(2000);
	ret = add_apic_timer(&once_timer);
	if (ret)
		return ret;

	/* In 3 ms on another CPU, if there is one. */
	cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	if (cpu >= nr_cpu_ids)
		cpu = 0;
	elsewhere_timer.expires = now + apic_timer_us_to_tsc(3000);
	ret = add_apic_timer_on(&elsewhere_timer, cpu);
	if (ret)
		goto err;

	/* In 10 ms, and then every 10 ms. */
	period.start = now + apic_timer_ns_to_tsc(PERIOD_NS);
	periodic_timer.expires = period.start;
	ret = add_apic_timer(&periodic_timer);
	if (ret)
		goto err;

	if (!apic_timer_query(cpu, &info))
		pr_info("CPU %u is served by source %s, TSC %u kHz\n", cpu,
			info.source, info.tsc_khz);
	return 0;

err:
	delete_timers();
	return ret;
}

static void __exit sample_exit(void)
{
	delete_timers();
}

module_init(sample_init);
module_exit(sample_exit);

MODULE_DESCRIPTION("One-shot, periodic and cross-CPU timers of apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
