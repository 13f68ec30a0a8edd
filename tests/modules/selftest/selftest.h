/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SELFTEST_H
#define _APIC_TIMER_SELFTEST_H

#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/processor.h>
#include <linux/types.h>

/**
 * struct selftest - a case while it runs
 * @failed:	an expectation was not met
 * @failure:	the first one
 * @notes:	figures for the reader
 */
struct selftest {
	bool failed;
	char failure[256];
	char notes[8192];
};

/**
 * struct selftest_case - a case of the table
 * @name:	as written to debugfs
 * @run:	called in task context, bound to the first CPU
 * @cpus:	number of CPUs that it needs
 */
struct selftest_case {
	const char *name;
	void (*run)(struct selftest *test);
	unsigned int cpus;
};

/* The lab reads these lines to know the cases without booting anything. */
#define CASE_CPUS(_name, _cpus)	{ .name = #_name, .run = _name, .cpus = _cpus }
#define CASE(_name)		CASE_CPUS(_name, 1)
#define CASE_SMP(_name)		CASE_CPUS(_name, 2)

/* The table's parts, each terminated by an empty element. */
extern const struct selftest_case selftest_bounded_cases[];
extern const struct selftest_case selftest_bulk_cases[];
extern const struct selftest_case selftest_change_cases[];
extern const struct selftest_case selftest_clock_cases[];
extern const struct selftest_case selftest_cost_cases[];
extern const struct selftest_case selftest_cross_cases[];
extern const struct selftest_case selftest_fence_cases[];
extern const struct selftest_case selftest_handler_cases[];
extern const struct selftest_case selftest_hotplug_cases[];
extern const struct selftest_case selftest_legacy_cases[];
extern const struct selftest_case selftest_lost_cases[];
extern const struct selftest_case selftest_period_cases[];
extern const struct selftest_case selftest_refuse_cases[];
extern const struct selftest_case selftest_shot_cases[];
extern const struct selftest_case selftest_shutdown_cases[];
extern const struct selftest_case selftest_skew_cases[];
extern const struct selftest_case selftest_sync_cases[];
extern const struct selftest_case selftest_unit_cases[];

/* Expectations: if not met, they are false and the case has failed. Task context. */
#define EXPECT(test, condition)						\
	selftest_expect(test, !!(condition), __FILE__, __LINE__, #condition)

#define EXPECT_EQ(test, a, b)						\
({									\
	s64 _a = (a), _b = (b);						\
									\
	selftest_compare(test, _a == _b, __FILE__, __LINE__,		\
			 #a " == " #b, _a, _b);				\
})

/* Unsigned: moments and distances. */
#define EXPECT_GE(test, a, b)						\
({									\
	u64 _a = (a), _b = (b);						\
									\
	selftest_compare(test, _a >= _b, __FILE__, __LINE__,		\
			 #a " >= " #b, _a, _b);				\
})

bool selftest_expect(struct selftest *test, bool ok, const char *file, int line,
		     const char *what);
bool selftest_compare(struct selftest *test, bool ok, const char *file,
		      int line, const char *what, s64 a, s64 b);
__printf(2, 3)
void selftest_note(struct selftest *test, const char *format, ...);

/* Time limit for expected events: only a lost shot takes that long. */
#define SELFTEST_PATIENCE_MS 20000

/* Sleep until @condition holds; false if it does not within the limit. */
#define selftest_wait(condition)					\
({									\
	unsigned int _left = SELFTEST_PATIENCE_MS;			\
									\
	while (!(condition) && _left--)					\
		selftest_sleep_ms(1);					\
	!!(condition);							\
})

/* Like selftest_wait(), but in any context, and for 5 s at most. */
#define selftest_spin_until(condition)					\
({									\
	u64 _limit = apic_timer_now() + apic_timer_us_to_tsc(5000000);	\
									\
	while (!(condition) && apic_timer_now() < _limit)		\
		cpu_relax();						\
	!!(condition);							\
})

void selftest_sleep_ms(unsigned int ms);
void selftest_spin_us(unsigned int us);

/* Faults found by a handler. */
#define SHOT_EARLY	0x1	/* it began before its moment */
#define SHOT_CONTEXT	0x2	/* not in hard interrupt context, interrupts off */
#define SHOT_NOW	0x4	/* it was passed a moment in the future */
#define SHOT_OVERLAP	0x8	/* it ran on two CPUs at once */

/*
 * Maximum number of TSC cycles that this moment may be in the future: now and then, above all
 * where the TSC counts in steps, a call takes less than the minimum measured.
 */
#define SHOT_NOW_MARGIN	8

/**
 * struct selftest_shot - a timer that records what its handler sees
 * @timer:	the timer, set up by selftest_shot_init()
 * @due:	the handler must not be called before this TSC
 * @then:	called by the handler, may be NULL
 * @context:	for @then
 * @limit:	for @then
 * @ret:	for @then
 * @runs:	complete runs of the handler
 * @inside:	handlers running
 * @faults:	SHOT_* bits
 * @now:	moment passed to the last handler
 * @cpu:	where it ran
 * @order:	number of its run among all timers
 */
struct selftest_shot {
	struct apic_timer_list timer;
	u64 due;
	void (*then)(struct selftest_shot *shot);
	void *context;
	unsigned int limit;
	int ret;
	atomic_t runs;
	atomic_t inside;
	atomic_t faults;
	u64 now;
	int cpu;
	int order;
};

void selftest_shot_init(struct selftest_shot *shot,
			void (*then)(struct selftest_shot *shot));
void selftest_shot_due(struct selftest_shot *shot, u64 tsc);
void selftest_shot_due_us(struct selftest_shot *shot, unsigned int us);
void selftest_shot_handler(unsigned long long now, unsigned long data);

/* It ran @count times, without faults. */
#define EXPECT_RUNS(test, shot, count)					\
	selftest_expect_runs(test, shot, count, __FILE__, __LINE__, #shot)

bool selftest_expect_runs(struct selftest *test,
			  const struct selftest_shot *shot, int count,
			  const char *file, int line, const char *name);

u32 selftest_random(void);

/* In first.S: a handler that reads the TSC first of all; and the function it calls. */
void selftest_first(unsigned long long now, unsigned long data);
void selftest_first_ran(unsigned long long now, unsigned long data, u64 tsc);

#endif /* _APIC_TIMER_SELFTEST_H */
