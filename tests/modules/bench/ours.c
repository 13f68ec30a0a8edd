// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_bench_ours: apic_timer in each of its modes, for apic_timer_bench.
 */
#include <linux/apic_timer.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/preempt.h>

#include "bench.h"
#include "period.h"

static u64 wanted;	/* TSC at which the current shot should start */

static void shot_handler(unsigned long long now, unsigned long data)
{
	u64 tsc = rdtsc_ordered();

	bench_shot(tsc, tsc - wanted);
}

static DEFINE_APIC_TIMER(timer, shot_handler, 0);

static int shot_arm(u64 ns)
{
	wanted = apic_timer_add_tsc(rdtsc_ordered(), apic_timer_ns_to_tsc(ns));
	return min(mod_apic_timer(&timer, wanted), 0);
}

static int start(unsigned int mode, u64 ns, u64 spin_ns)
{
	int ret;

	timer.flags = mode;
	timer.spin_budget = min_t(u64, apic_timer_ns_to_tsc(spin_ns), UINT_MAX);
	preempt_disable();
	ret = shot_arm(ns);
	preempt_enable();
	return ret;
}

static void shot_stop(void)
{
	del_apic_timer_sync(&timer);
}

static void ops_handler(unsigned long long now, unsigned long data)
{
	bench_expired();
}

static u64 ops_moment(u64 ns)
{
	return apic_timer_add_tsc(rdtsc_ordered(), apic_timer_ns_to_tsc(ns));
}

static int ops_add(void *data, u64 moment)
{
	struct apic_timer_list *t = data;

	t->expires = moment;
	return add_apic_timer(t);
}

static void ops_modify(void *data, u64 moment)
{
	mod_apic_timer(data, moment);
}

static void ops_del(void *data)
{
	del_apic_timer(data);
}

/* X(name, flag) */
#define MODES(X)			\
	X(raw, APIC_TIMER_RAW)		\
	X(mean, APIC_TIMER_MEAN)	\
	X(exact, APIC_TIMER_EXACT)

#define FUNCTIONS(mode, flag)						\
static int start_##mode(u64 ns, u64 spin_ns)				\
{									\
	return start(flag, ns, spin_ns);				\
}									\
									\
static void init_##mode(void *data)					\
{									\
	struct apic_timer_list *t = data;				\
									\
	t->function = ops_handler;					\
	init_apic_timer(t);						\
	t->flags = flag;						\
}

MODES(FUNCTIONS)

static struct bench_shots shots[] = {
#define SHOTS(mode, flag) {						\
	.name = "apic_timer_" #mode, .start = start_##mode,		\
	.arm = shot_arm, .stop = shot_stop,				\
},
	MODES(SHOTS)
};

static struct bench_ops ops[] = {
#define OPS(mode, flag) {						\
	.name = "apic_timer_" #mode,					\
	.size = sizeof(struct apic_timer_list), .init = init_##mode,	\
	.moment = ops_moment, .add = ops_add, .modify = ops_modify,	\
	.del = ops_del,							\
},
	MODES(OPS)
};

static u64 read_now(void)
{
	return apic_timer_now();
}

static u64 read_monotonic(void)
{
	return apic_timer_tsc_to_clock(CLOCK_MONOTONIC, rdtsc_ordered());
}

static u64 read_tai(void)
{
	return apic_timer_tsc_to_clock(CLOCK_TAI, rdtsc_ordered());
}

static struct bench_read reads[] = {
	{ .name = "apic_timer_now", .read = read_now },
	{ .name = "tsc_to_monotonic", .read = read_monotonic },
	{ .name = "tsc_to_tai", .read = read_tai },
};

static int __init ours_init(void)
{
	unsigned int i;
	int ret = bench_period_init();

	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(reads); i++)
		bench_register_read(&reads[i]);
	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		bench_register_shots(&shots[i]);
		bench_register_ops(&ops[i]);
	}
	return 0;
}

static void __exit ours_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		bench_unregister_ops(&ops[i]);
		bench_unregister_shots(&shots[i]);
	}
	for (i = 0; i < ARRAY_SIZE(reads); i++)
		bench_unregister_read(&reads[i]);
	bench_period_exit();
}

module_init(ours_init);
module_exit(ours_exit);

MODULE_DESCRIPTION("apic_timer's timers, measured by apic_timer_bench");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
