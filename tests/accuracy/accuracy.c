// SPDX-License-Identifier: GPL-2.0
/*
 * Make expiries of the live timers, and sum up their errors.
 *
 * Bounds hold in virtual time, where an instruction takes one TSC cycle; the module's parameter
 * virtual_time=1 says so. Elsewhere figures are only reported. What holds on every machine, for
 * example that an exact timer is never early, is expected everywhere.
 */
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "accuracy.h"

static bool virtual_time;
module_param(virtual_time, bool, 0444);
MODULE_PARM_DESC(virtual_time, "an instruction takes one TSC cycle: bounds have to hold");

static char *source;
module_param(source, charp, 0444);
MODULE_PARM_DESC(source, "of the timers, as expected");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the random distances: another one gives an independent sample");

/*
 * KUnit runs right after the initcalls, before the kernel has validated its clock: until then its
 * tick may be periodic, and it would stop the machine during the expiries to change to another
 * clock.
 */
#define SETTLED_MS	3000
/* A kernel that has not left the periodic tick by then keeps it. */
#define PERIODIC_MS	20000
/* For one expiry, in addition to its distance: only a lost one takes that long. */
#define PATIENCE_MS	2000

/**
 * accuracy_virtual_time() - whether bounds must hold
 *
 * Return: true in virtual time.
 */
bool accuracy_virtual_time(void)
{
	return virtual_time;
}
EXPORT_SYMBOL_GPL(accuracy_virtual_time);

/**
 * accuracy_source() - which source the timers are expected to have
 *
 * Return: its name; NULL if any will do.
 */
const char *accuracy_source(void)
{
	return source;
}
EXPORT_SYMBOL_GPL(accuracy_source);

/* The current row of expiries. */
static struct {
	struct apic_timer_list timer;
	unsigned int cpu;
	u64 near, span, pause;		/* distances, TSC cycles */
	unsigned int warm_up, shots, done;
	bool counts;			/* the next one */
	s64 *errors, *arguments;
	int ret;
	struct rnd_state random;
	struct completion end;
} row;

/**
 * accuracy_seed() - begin a sequence of random numbers
 * @random:	the same in each case
 */
void accuracy_seed(struct rnd_state *random)
{
	prandom_seed_state(random, seed);
}
EXPORT_SYMBOL_GPL(accuracy_seed);

/**
 * accuracy_cpu() - the CPU of this case's expiries
 *
 * Return: the CPU.
 */
unsigned int accuracy_cpu(void)
{
	return row.cpu;
}
EXPORT_SYMBOL_GPL(accuracy_cpu);

/**
 * accuracy_plan() - the row of expiries that most cases use
 * @name:	for the reader
 * @flags:	APIC_TIMER_* bits of the timer
 *
 * Return: a plan for expiries at random distances of 20 to 1,020 us.
 */
struct accuracy_plan accuracy_plan(const char *name, unsigned int flags)
{
	return (struct accuracy_plan) {
		.name = name,
		.flags = flags,
		.near_ns = 20 * NSEC_PER_USEC,
		.far_ns = 1020 * NSEC_PER_USEC,
		.warm_up = ACCURACY_WARM_UP,
		.shots = ACCURACY_SHOTS,
	};
}
EXPORT_SYMBOL_GPL(accuracy_plan);

/* Distance of the next expiry, in TSC cycles. */
static u64 random_distance(void)
{
	return row.near + mul_u64_u32_shr(row.span,
					  prandom_u32_state(&row.random), 32);
}

/* Not inlined, so that the handler saves or moves nothing before it reads the TSC. */
static noinline void next_shot(u64 now, u64 tsc)
{
	u64 distance = row.pause;

	if (row.counts && row.done >= row.warm_up) {
		row.errors[row.done - row.warm_up] = tsc - row.timer.expires;
		row.arguments[row.done - row.warm_up] = now - tsc;
	}
	if (row.counts && ++row.done == row.warm_up + row.shots) {
		complete(&row.end);
		return;
	}
	row.counts = !row.counts || !row.pause;
	if (row.counts)
		distance = random_distance();
	row.ret = mod_apic_timer(&row.timer, tsc + distance);
	if (row.ret)
		complete(&row.end);
}

static void shot(unsigned long long now, unsigned long data)
{
	u64 tsc = rdtsc_ordered();

	next_shot(now, tsc);
}

static bool settled(void)
{
	return ktime_get_boottime() >= ms_to_ktime(SETTLED_MS) &&
	       hrtimer_resolution < TICK_NSEC;
}

/**
 * accuracy_init() - before each case: wait until the kernel's clock has settled
 * @test:	the case, skipped if it never settles or this CPU accepts no timers
 *
 * Return: 0.
 */
int accuracy_init(struct kunit *test)
{
	struct apic_timer_info info;

	while (!settled()) {
		if (ktime_get_boottime() >= ms_to_ktime(PERIODIC_MS))
			kunit_skip(test, "the kernel's tick is periodic");
		msleep(20);
	}
	row.cpu = raw_smp_processor_id();
	if (apic_timer_query(row.cpu, &info))
		kunit_skip(test, "CPU %u does not accept timers", row.cpu);
	init_apic_timer(&row.timer);
	return 0;
}
EXPORT_SYMBOL_GPL(accuracy_init);

/**
 * accuracy_exit() - after each case
 * @test:	the case
 */
void accuracy_exit(struct kunit *test)
{
	del_apic_timer_sync(&row.timer);
}
EXPORT_SYMBOL_GPL(accuracy_exit);

/**
 * accuracy_need_mode() - skip the case if a mode is not available
 * @test:	the case
 * @flags:	of the timer; mode 0 is always available
 */
void accuracy_need_mode(struct kunit *test, unsigned int flags)
{
	unsigned int mode = flags & APIC_TIMER_MODE_MASK;
	struct apic_timer_info info;

	KUNIT_ASSERT_EQ(test, 0, apic_timer_query(row.cpu, &info));
	if (mode && !(info.modes & BIT(mode)))
		kunit_skip(test, "source %s has no mode %u", info.source, mode);
}
EXPORT_SYMBOL_GPL(accuracy_need_mode);

static int by_value(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

/* The smallest error that @tenths of a thousand do not exceed. */
static s64 quantile(const s64 *sorted, unsigned int n, unsigned int tenths)
{
	return sorted[DIV_ROUND_UP(n * tenths, 1000) - 1];
}

/**
 * accuracy_figures() - summarise many errors
 * @errors:	TSC cycles; sorted afterwards
 * @n:		their number, not 0
 * @figures:	filled in
 */
void accuracy_figures(s64 *errors, unsigned int n,
		      struct accuracy_figures *figures)
{
	s64 sum = 0, from_mean;
	u64 squares = 0;
	unsigned int i;

	sort(errors, n, sizeof(*errors), by_value, NULL);
	for (i = 0; i < n; i++)
		sum += errors[i];
	figures->mean = div_s64(sum * 100, n);
	for (i = 0; i < n; i++) {
		from_mean = errors[i] * 100 - figures->mean;
		squares += from_mean * from_mean;
	}
	figures->sd = int_sqrt64(div_u64(squares, n));
	figures->n = n;
	figures->min = errors[0];
	figures->p50 = quantile(errors, n, 500);
	figures->p99 = quantile(errors, n, 990);
	figures->p999 = quantile(errors, n, 999);
	figures->max = errors[n - 1];
}
EXPORT_SYMBOL_GPL(accuracy_figures);

/**
 * accuracy_report() - print figures
 * @test:	the case
 * @name:	of the measurement
 * @figures:	TSC cycles
 */
void accuracy_report(struct kunit *test, const char *name,
		     const struct accuracy_figures *figures)
{
	u64 mean = abs(figures->mean);

	kunit_info(test, "%s: n %u, min %lld, p50 %lld, p99 %lld, p99.9 %lld, max %lld, mean %s%llu.%02llu, sd %lld.%02lld\n",
		   name, figures->n, figures->min, figures->p50, figures->p99,
		   figures->p999, figures->max, figures->mean < 0 ? "-" : "",
		   mean / 100, mean % 100, figures->sd / 100,
		   figures->sd % 100);
}
EXPORT_SYMBOL_GPL(accuracy_report);

/**
 * accuracy_run() - run a row of expiries, and report the errors
 * @test:	the case, ended here if an expiry is lost
 * @plan:	the row
 *
 * Return: the figures.
 */
struct accuracy_result accuracy_run(struct kunit *test,
				    const struct accuracy_plan *plan)
{
	unsigned int ms = (plan->warm_up + plan->shots) *
		div_u64(plan->far_ns + plan->pause_ns, NSEC_PER_MSEC) +
		PATIENCE_MS;
	struct accuracy_result result;
	unsigned long left;

	accuracy_need_mode(test, plan->flags);
	row.near = apic_timer_ns_to_tsc(plan->near_ns);
	row.span = apic_timer_ns_to_tsc(plan->far_ns) - row.near + 1;
	row.pause = apic_timer_ns_to_tsc(plan->pause_ns);
	row.warm_up = plan->warm_up;
	row.shots = plan->shots;
	row.counts = !row.pause;
	row.done = 0;
	row.errors = kunit_kcalloc(test, plan->shots, sizeof(s64), GFP_KERNEL);
	row.arguments = kunit_kcalloc(test, plan->shots, sizeof(s64), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, row.errors);
	KUNIT_ASSERT_NOT_NULL(test, row.arguments);
	accuracy_seed(&row.random);
	init_completion(&row.end);

	row.timer.function = shot;
	row.timer.flags = plan->flags;
	row.timer.spin_budget = plan->spin_budget;
	row.timer.expires = apic_timer_now() + apic_timer_us_to_tsc(100);
	KUNIT_ASSERT_EQ(test, 0, add_apic_timer_on(&row.timer, row.cpu));
	left = wait_for_completion_timeout(&row.end, msecs_to_jiffies(ms));
	del_apic_timer_sync(&row.timer);
	KUNIT_ASSERT_EQ(test, 0, row.ret);
	KUNIT_ASSERT_NE_MSG(test, 0, left, "%s: expiry %u is lost", plan->name,
			    row.done);

	accuracy_figures(row.errors, row.shots, &result.error);
	accuracy_figures(row.arguments, row.shots, &result.argument);
	accuracy_report(test, plan->name, &result.error);
	return result;
}
EXPORT_SYMBOL_GPL(accuracy_run);

MODULE_DESCRIPTION("Expiries of apic_timer's timers, for KUnit suites");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
