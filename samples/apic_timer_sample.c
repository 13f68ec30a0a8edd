// SPDX-License-Identifier: GPL-2.0
/*
 * How to use apic_timer: a one-shot timer, a periodic one, and one on another CPU. After
 * "insmod samples/apic_timer_sample.ko", the kernel log shows the error of each: how long
 * after its expiry its handler started.
 *
 * A handler runs in hard interrupt context: it should only do work that has to be
 * done at that moment, and leave the rest, such as printing, to a work item. Here
 * the handlers record their data, and a work item prints it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <linux/workqueue.h>

/* The periodic timer: number of expiries, and period. */
#define EXPIRIES		5
#define PERIOD_NS	(10 * NSEC_PER_MSEC)

/* Data recorded by a handler. */
struct expiry {
	s64 error;		/* its start - expires, TSC cycles */
	unsigned int cpu;
};

static struct expiry once, elsewhere, periodic[EXPIRIES];
static unsigned int expiries;	/* of the periodic timer so far */
static u64 missed;		/* moments that had passed before their handler could run */
static struct apic_timer_period period = { .period_ns = PERIOD_NS };

static void report(struct work_struct *work)
{
	unsigned int i;

	pr_info("one-shot: error %lld cycles on CPU %u\n", once.error,
		once.cpu);
	pr_info("other CPU: error %lld cycles on CPU %u\n", elsewhere.error,
		elsewhere.cpu);
	for (i = 0; i < EXPIRIES; i++)
		pr_info("periodic %u: error %lld cycles on CPU %u\n", i,
			periodic[i].error, periodic[i].cpu);
	pr_info("done, %llu periods missed\n", missed);
}

static DECLARE_WORK(report_work, report);

/*
 * @data belongs to the user of the timer: here it points to the record. @now is the
 * last TSC value read before the call. The timer's @expires is still the requested
 * moment.
 */
static void fire(unsigned long long now, unsigned long data);

static DEFINE_APIC_TIMER(once_timer, fire, (unsigned long)&once);
static DEFINE_APIC_TIMER(elsewhere_timer, fire, (unsigned long)&elsewhere);

static void fire(unsigned long long now, unsigned long data)
{
	struct expiry *expiry = (struct expiry *)data;
	struct apic_timer_list *timer = expiry == &once ? &once_timer :
							  &elsewhere_timer;

	expiry->error = now - timer->expires;
	expiry->cpu = smp_processor_id();
}

/*
 * The handler of a periodic timer arms it again. Moment n is computed from the start,
 * so that rounding errors do not accumulate. After an overrun, the moments that have
 * passed are skipped and counted.
 */
static void fire_periodic(unsigned long long now, unsigned long data);

static DEFINE_APIC_TIMER(periodic_timer, fire_periodic, 0);

static void fire_periodic(unsigned long long now, unsigned long data)
{
	u64 n;

	periodic[expiries].error = now - periodic_timer.expires;
	periodic[expiries].cpu = smp_processor_id();

	if (++expiries == EXPIRIES) {
		schedule_work(&report_work);
		return;
	}
	/* In mode mean, the handler may be early, and would run for the same moment again. */
	now = max(now, periodic_timer.expires);
	n = apic_timer_forward_period(&periodic_timer, &period, now);
	/*
	 * 0 if a sleep has restarted the TSC: the series then waits for the old moment.
	 * apic_timer_sample_period.c follows that.
	 */
	if (n)
		missed += n - 1;
	add_apic_timer(&periodic_timer);
}

static void delete_timers(void)
{
	/* Wait for a running handler too, even if it arms its timer again. */
	del_apic_timer_sync(&once_timer);
	del_apic_timer_sync(&elsewhere_timer);
	del_apic_timer_sync(&periodic_timer);
	/* No handler schedules it any more. */
	cancel_work_sync(&report_work);
}

static int __init sample_init(void)
{
	u64 now = apic_timer_now();
	struct apic_timer_info info;
	unsigned int cpu;
	int ret;

	/* In 2 ms, on the CPU that runs this code. */
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
