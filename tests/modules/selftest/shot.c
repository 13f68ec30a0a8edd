// SPDX-License-Identifier: GPL-2.0
/*
 * One shot, and many, run at the right time and place, and in the right order.
 */
#include <linux/completion.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <asm/cpufeature.h>
#include <asm/ibt.h>
#include <asm/msr.h>

#include "selftest.h"

/* Initialised at build time, never passed to init_apic_timer(). */
static atomic_t static_runs;

static void static_handler(unsigned long long now, unsigned long data)
{
	if (data == 42)
		atomic_inc(&static_runs);
}

static DEFINE_APIC_TIMER(static_timer, static_handler, 42);

static void static_initialiser(struct selftest *test)
{
	atomic_set(&static_runs, 0);
	EXPECT(test, !apic_timer_pending(&static_timer));
	static_timer.expires = apic_timer_now() + apic_timer_us_to_tsc(100);
	EXPECT_EQ(test, add_apic_timer(&static_timer), 0);
	EXPECT(test, selftest_wait(atomic_read(&static_runs) == 1));
	EXPECT_EQ(test, del_apic_timer_sync(&static_timer), 0);
	EXPECT_EQ(test, atomic_read(&static_runs), 1);
}

static void init_keeps_arguments(struct selftest *test)
{
	struct apic_timer_list timer;

	memset(&timer, 0x5a, sizeof(timer));
	timer.expires = 12345;
	timer.data = 67890;
	timer.function = selftest_shot_handler;
	init_apic_timer(&timer);
	EXPECT_EQ(test, timer.expires, 12345);
	EXPECT_EQ(test, timer.data, 67890);
	EXPECT(test, timer.function == selftest_shot_handler);
	EXPECT_EQ(test, timer.flags, 0);
	EXPECT_EQ(test, timer.spin_budget, 0);
	EXPECT(test, !apic_timer_pending(&timer));
}

static void one_shot(struct selftest *test)
{
	struct selftest_shot shot;
	u64 before;

	selftest_shot_init(&shot, NULL);
	EXPECT(test, !apic_timer_pending(&shot.timer));
	local_irq_disable();
	selftest_shot_due_us(&shot, 2000);
	before = apic_timer_now();
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT(test, apic_timer_pending(&shot.timer));
	local_irq_enable();

	EXPECT_RUNS(test, &shot, 1);
	EXPECT(test, !apic_timer_pending(&shot.timer));
	EXPECT_EQ(test, shot.cpu, smp_processor_id());
	EXPECT_GE(test, shot.now, before);
	EXPECT_GE(test, shot.now, shot.timer.expires);
	EXPECT_GE(test, apic_timer_now(), shot.now);

	/* Once means once. */
	selftest_sleep_ms(5);
	EXPECT_RUNS(test, &shot, 1);
}

/* A timer is used again and again without another initialisation. */
static void again_and_again(struct selftest *test)
{
	struct selftest_shot shot;
	int i;

	selftest_shot_init(&shot, NULL);
	for (i = 1; i <= 100 && !test->failed; i++) {
		selftest_shot_due_us(&shot, 50);
		EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
		EXPECT_RUNS(test, &shot, i);
	}
	del_apic_timer_sync(&shot.timer);
}

/* From a distance of 0 to 100 ms. */
static void every_distance(struct selftest *test)
{
	static const unsigned int us[] = {
		0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000,
		10000, 20000, 50000, 100000,
	};
	struct selftest_shot shot;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(us) && !test->failed; i++) {
		selftest_shot_init(&shot, NULL);
		selftest_shot_due_us(&shot, us[i]);
		EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
		EXPECT_RUNS(test, &shot, 1);
		del_apic_timer_sync(&shot.timer);
	}
}

/* Each distance that could depend on a single cycle. */
static void every_cycle(struct selftest *test)
{
	struct selftest_shot shot;
	unsigned int cycles;

	for (cycles = 0; cycles < 300 && !test->failed; cycles++) {
		selftest_shot_init(&shot, NULL);
		selftest_shot_due(&shot, apic_timer_now() + cycles * cycles);
		EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
		EXPECT_RUNS(test, &shot, 1);
		del_apic_timer_sync(&shot.timer);
	}
}

static void past_runs_at_once(struct selftest *test)
{
	u64 past[] = { 0, 1, apic_timer_now() / 2, apic_timer_now() };
	struct selftest_shot shot;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(past) && !test->failed; i++) {
		selftest_shot_init(&shot, NULL);
		shot.timer.expires = past[i];
		EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
		EXPECT_RUNS(test, &shot, 1);
		del_apic_timer_sync(&shot.timer);
	}
}

#define MANY 500

/* Handlers ran in the order of the moments: shots are in the order of adding. */
static void expect_order(struct selftest *test, struct selftest_shot *shots)
{
	int i, j;

	for (i = 0; i < MANY; i++)
		EXPECT_RUNS(test, &shots[i], 1);
	for (i = 0; i < MANY && !test->failed; i++)
		for (j = i + 1; j < MANY; j++)
			if (shots[i].timer.expires <= shots[j].timer.expires)
				EXPECT_GE(test, shots[j].order, shots[i].order);
			else
				EXPECT_GE(test, shots[i].order, shots[j].order);
}

/* @spread: of the moments, in us */
static void many(struct selftest *test, unsigned int spread)
{
	struct selftest_shot *shots = kvcalloc(MANY, sizeof(*shots), GFP_KERNEL);
	unsigned int us;
	u64 start;
	int i;

	if (!EXPECT(test, shots))
		return;
	/* All are pending before the first can run. */
	local_irq_disable();
	start = apic_timer_now() + apic_timer_us_to_tsc(2000);
	for (i = 0; i < MANY; i++) {
		selftest_shot_init(&shots[i], NULL);
		us = selftest_random() % (spread + 1);
		selftest_shot_due(&shots[i], start + apic_timer_us_to_tsc(us));
	}
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(test, add_apic_timer(&shots[i].timer), 0);
	local_irq_enable();
	expect_order(test, shots);
	for (i = 0; i < MANY; i++)
		del_apic_timer_sync(&shots[i].timer);
	kvfree(shots);
}

static void order_of_moments(struct selftest *test)
{
	many(test, 20000);
}

/* Few moments for many timers. */
static void order_with_ties(struct selftest *test)
{
	many(test, 20);
}

static void order_of_equals(struct selftest *test)
{
	many(test, 0);
}

/* Farther than the hardware counts at once, so reached by hops. */
static void far_shots(struct selftest *test)
{
	static const unsigned int ms[] = { 400, 1100, 2500, 5000 };
	struct selftest_shot shots[ARRAY_SIZE(ms)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ms); i++) {
		selftest_shot_init(&shots[i], NULL);
		selftest_shot_due_us(&shots[i], ms[i] * 1000);
		EXPECT_EQ(test, add_apic_timer(&shots[i].timer), 0);
	}
	for (i = 0; i < ARRAY_SIZE(ms); i++) {
		EXPECT_RUNS(test, &shots[i], 1);
		selftest_note(test, "at %u ms: %llu cycles late\n", ms[i],
			      shots[i].now - shots[i].timer.expires);
		del_apic_timer_sync(&shots[i].timer);
	}
}

static void never_comes(struct selftest *test)
{
	struct selftest_shot never[3], shot;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(never); i++) {
		selftest_shot_init(&never[i], NULL);
		never[i].timer.expires = U64_MAX - i;
		EXPECT_EQ(test, add_apic_timer(&never[i].timer), 0);
	}

	/* And it does not disturb others. */
	selftest_shot_init(&shot, NULL);
	selftest_shot_due_us(&shot, 50000);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);

	for (i = 0; i < ARRAY_SIZE(never); i++) {
		EXPECT(test, apic_timer_pending(&never[i].timer));
		EXPECT_EQ(test, del_apic_timer_sync(&never[i].timer), 1);
		EXPECT_EQ(test, atomic_read(&never[i].runs), 0);
	}
}

#define FIRST_SHOTS	300

/* A row of shots, each armed by the previous one's handler. */
static struct {
	struct apic_timer_list timer;
	unsigned int done;
	s64 error[FIRST_SHOTS];
	s64 now[FIRST_SHOTS];
	struct completion end;
} first;

noinline void selftest_first_ran(unsigned long long now, unsigned long data,
				 u64 tsc)
{
	u64 distance = apic_timer_us_to_tsc(20 + selftest_random() % 200);

	first.error[first.done] = tsc - first.timer.expires;
	first.now[first.done] = now - tsc;
	if (++first.done == FIRST_SHOTS ||
	    mod_apic_timer(&first.timer, tsc + distance +
			   selftest_random() % 64) < 0)
		complete(&first.end);
}

static notrace void first_untraced(unsigned long long now, unsigned long data)
{
	u64 tsc = rdtsc();

	selftest_first_ran(now, data, tsc);
}

static void first_ordered(unsigned long long now, unsigned long data)
{
	u64 tsc = rdtsc_ordered();

	selftest_first_ran(now, data, tsc);
}

static int first_compare(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

static const struct {
	const char *name;
	unsigned int flags, budget;
} first_ways[] = {
	{ "raw", APIC_TIMER_RAW },
	{ "mean", APIC_TIMER_MEAN },
	{ "exact", APIC_TIMER_EXACT },
	/* Too late to wait. */
	{ "exact_late", APIC_TIMER_EXACT, 1 },
};

static void first_row(struct selftest *test, unsigned int way, const char *name,
		      void (*function)(unsigned long long now,
				       unsigned long data))
{
	bool exact = first_ways[way].flags == APIC_TIMER_EXACT;
	unsigned long patience = msecs_to_jiffies(SELFTEST_PATIENCE_MS);
	const s64 *error = first.error, *now = first.now;

	init_apic_timer(&first.timer);
	first.timer.function = function;
	first.timer.flags = first_ways[way].flags;
	first.timer.spin_budget = first_ways[way].budget;
	first.timer.expires = apic_timer_now() + apic_timer_us_to_tsc(100);
	first.done = 0;
	init_completion(&first.end);
	EXPECT_EQ(test, add_apic_timer(&first.timer), 0);
	EXPECT(test, wait_for_completion_timeout(&first.end, patience));
	del_apic_timer_sync(&first.timer);
	if (!EXPECT_EQ(test, first.done, FIRST_SHOTS))
		return;

	sort(first.error, FIRST_SHOTS, sizeof(s64), first_compare, NULL);
	sort(first.now, FIRST_SHOTS, sizeof(s64), first_compare, NULL);
	selftest_note(test, "%s, %s: error %lld to %lld, p50 %lld, p99 %lld; now %lld to %lld\n",
		      first_ways[way].name, name, error[0],
		      error[FIRST_SHOTS - 1], error[FIRST_SHOTS / 2],
		      error[FIRST_SHOTS - 1 - FIRST_SHOTS / 100], now[0],
		      now[FIRST_SHOTS - 1]);
	if (exact)
		EXPECT(test, error[0] >= 0);
	EXPECT(test, now[FIRST_SHOTS - 1] <= 0);
}

/*
 * For any handler and any way to it: in mode exact it does not start early, and never gets a
 * moment in the future. The lab judges the rest.
 */
static void first_instruction(struct selftest *test)
{
	unsigned long bare = (unsigned long)selftest_first;
	unsigned int way;

	/* As written in assembler, without ENDBR. */
	OPTIMIZER_HIDE_VAR(bare);
	if (!IS_ENABLED(CONFIG_CFI_CLANG) && !IS_ENABLED(CONFIG_CFI) &&
	    !cpu_feature_enabled(X86_FEATURE_IBT))
		bare += ENDBR_INSN_SIZE;

	for (way = 0; way < ARRAY_SIZE(first_ways); way++) {
		first_row(test, way, "bare", (void *)bare);
		first_row(test, way, "assembler", selftest_first);
		first_row(test, way, "untraced", first_untraced);
		first_row(test, way, "ordered", first_ordered);
	}
}

const struct selftest_case selftest_shot_cases[] = {
	CASE(static_initialiser),
	CASE(init_keeps_arguments),
	CASE(one_shot),
	CASE(again_and_again),
	CASE(every_distance),
	CASE(every_cycle),
	CASE(past_runs_at_once),
	CASE(order_of_moments),
	CASE(order_with_ties),
	CASE(order_of_equals),
	CASE(far_shots),
	CASE(never_comes),
	CASE(first_instruction),
	{}
};
