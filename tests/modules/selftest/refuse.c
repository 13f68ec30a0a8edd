// SPDX-License-Identifier: GPL-2.0
/*
 * Misuse: each call returns its error and does no harm.
 */
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/notifier.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#include "selftest.h"

static void add_twice(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	local_irq_disable();
	selftest_shot_due_us(&shot, 2000);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), -EBUSY);
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, 0), -EBUSY);
	/* Not even for another moment. */
	shot.timer.expires += apic_timer_us_to_tsc(USEC_PER_SEC);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), -EBUSY);
	EXPECT(test, apic_timer_pending(&shot.timer));
	local_irq_enable();

	EXPECT_RUNS(test, &shot, 1);
	selftest_sleep_ms(5);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 0);
}

/* Memory filled with @byte is not a timer. */
static void expect_no_timer(struct selftest *test, int byte)
{
	struct apic_timer_list timer;

	memset(&timer, byte, sizeof(timer));
	timer.function = selftest_shot_handler;
	EXPECT_EQ(test, add_apic_timer(&timer), -EINVAL);
	EXPECT_EQ(test, add_apic_timer_on(&timer, 0), -EINVAL);
	EXPECT_EQ(test, mod_apic_timer(&timer, 0), -EINVAL);
	EXPECT_EQ(test, del_apic_timer(&timer), -EINVAL);
	EXPECT_EQ(test, del_apic_timer_sync(&timer), -EINVAL);
	EXPECT(test, !apic_timer_pending(&timer));
}

static void zeroed_memory(struct selftest *test)
{
	expect_no_timer(test, 0);
}

/* Like slab's poison of freed and uninitialised memory; and all ones. */
static void poisoned_memory(struct selftest *test)
{
	expect_no_timer(test, 0x6b);
	expect_no_timer(test, 0x5a);
	expect_no_timer(test, 0xa5);
	expect_no_timer(test, 0xff);
}

static void null_pointer(struct selftest *test)
{
	EXPECT_EQ(test, add_apic_timer(NULL), -EINVAL);
	EXPECT_EQ(test, add_apic_timer_on(NULL, 0), -EINVAL);
	EXPECT_EQ(test, mod_apic_timer(NULL, 0), -EINVAL);
	EXPECT_EQ(test, del_apic_timer(NULL), -EINVAL);
	EXPECT_EQ(test, del_apic_timer_sync(NULL), -EINVAL);
}

/* NULL for other than timers, or in calls without an error result: also rejected. */
static void null_pointer_elsewhere(struct selftest *test)
{
	struct apic_timer_period period = { .period_ns = 1000 };
	struct notifier_block empty = {};
	struct selftest_shot shot;
	ktime_t time;

	selftest_shot_init(&shot, NULL);
	init_apic_timer(NULL);
	EXPECT_EQ(test, apic_timer_clock_now(CLOCK_TAI, NULL, &time), -EINVAL);
	EXPECT_EQ(test, apic_timer_clock_now(CLOCK_TAI, &time, NULL), -EINVAL);
	EXPECT(test, !apic_timer_pending(NULL));
	EXPECT_EQ(test, apic_timer_query(0, NULL), -EINVAL);
	EXPECT_EQ(test, apic_timer_register_notifier(NULL), -EINVAL);
	EXPECT_EQ(test, apic_timer_register_notifier(&empty), -EINVAL);
	EXPECT_EQ(test, apic_timer_unregister_notifier(NULL), -EINVAL);
	EXPECT_EQ(test, apic_timer_unregister_notifier(&empty), -ENOENT);
	EXPECT_EQ(test, apic_timer_forward(NULL, U64_MAX, 1), 0);
	EXPECT_EQ(test, apic_timer_forward_period(NULL, &period, U64_MAX), 0);
	EXPECT_EQ(test, apic_timer_forward_period(&shot.timer, NULL, U64_MAX), 0);
}

/* The expiry of a timer in the queue does not change. */
static void forward_pending(struct selftest *test)
{
	struct apic_timer_period period = { .period_ns = 1000 };
	struct selftest_shot shot;
	u64 expires;

	selftest_shot_init(&shot, NULL);
	expires = apic_timer_now() + apic_timer_us_to_tsc(3600000000ULL);
	shot.timer.expires = expires;
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, apic_timer_forward(&shot.timer, U64_MAX - 1, 1000), 0);
	EXPECT_EQ(test, apic_timer_forward_period(&shot.timer, &period, expires), 0);
	EXPECT_EQ(test, shot.timer.expires, expires);
	EXPECT_EQ(test, period.n, 0);
	EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 1);

	EXPECT_EQ(test, apic_timer_forward(&shot.timer, expires + 500, 1000), 1);
	EXPECT_EQ(test, shot.timer.expires, expires + 1000);
}

/* A handler that arms its timer again would run forever: it is rejected. */
static void forward_by_nothing(struct selftest *test)
{
	struct apic_timer_period period = {};
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	shot.timer.expires = 1000;
	EXPECT_EQ(test, apic_timer_forward(&shot.timer, 2000, 0), 0);
	EXPECT_EQ(test, apic_timer_forward_period(&shot.timer, &period, 2000), 0);
	EXPECT_EQ(test, shot.timer.expires, 1000);
}

/* All three ways of arming are rejected with @error. */
static void expect_refused(struct selftest *test, struct selftest_shot *shot,
			   int error)
{
	EXPECT_EQ(test, add_apic_timer(&shot->timer), error);
	EXPECT_EQ(test, add_apic_timer_on(&shot->timer, 0), error);
	EXPECT_EQ(test, mod_apic_timer(&shot->timer, 0), error);
	EXPECT(test, !apic_timer_pending(&shot->timer));
	EXPECT_EQ(test, del_apic_timer_sync(&shot->timer), -ENOENT);
	EXPECT_EQ(test, atomic_read(&shot->runs), 0);
}

static void no_function(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	shot.timer.function = NULL;
	expect_refused(test, &shot, -EINVAL);
}

static void unknown_flags(struct selftest *test)
{
	struct selftest_shot shot;
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (BIT(bit) & APIC_TIMER_FLAGS)
			continue;
		selftest_shot_init(&shot, NULL);
		shot.timer.flags = BIT(bit) | APIC_TIMER_RAW;
		expect_refused(test, &shot, -EINVAL);
	}
}

/* Armed, and deleted before its moment. */
static void expect_armed(struct selftest *test, struct selftest_shot *shot)
{
	shot->timer.expires = U64_MAX;
	EXPECT_EQ(test, add_apic_timer(&shot->timer), 0);
	EXPECT_EQ(test, del_apic_timer_sync(&shot->timer), 1);
}

static void every_mode(struct selftest *test)
{
	struct apic_timer_info info;
	struct selftest_shot shot;
	unsigned int mode;

	EXPECT_EQ(test, apic_timer_query(0, &info), 0);
	for (mode = APIC_TIMER_RAW; mode <= APIC_TIMER_EXACT; mode++) {
		EXPECT(test, info.modes & BIT(mode));
		selftest_shot_init(&shot, NULL);
		shot.timer.flags = mode;
		expect_armed(test, &shot);
		shot.timer.flags |= APIC_TIMER_SKIP_LATE;
		expect_armed(test, &shot);
		shot.timer.flags |= APIC_TIMER_UNDISTURBED;
		expect_armed(test, &shot);
	}
}

/* A spin budget is for the modes that spin, or for the module's default. */
static void spin_budget(struct selftest *test)
{
	struct selftest_shot shot;
	unsigned int mode;

	for (mode = 0; mode <= APIC_TIMER_EXACT; mode++) {
		selftest_shot_init(&shot, NULL);
		shot.timer.flags = mode | APIC_TIMER_SKIP_LATE;
		shot.timer.spin_budget = 1;
		if (!mode || mode == APIC_TIMER_EXACT)
			expect_armed(test, &shot);
		else
			expect_refused(test, &shot, -EINVAL);
	}
}

static void no_such_cpu(struct selftest *test)
{
	int cpus[] = { -1, INT_MIN, INT_MAX, nr_cpu_ids };
	struct apic_timer_info info;
	struct selftest_shot shot;
	unsigned int i;

	selftest_shot_init(&shot, NULL);
	for (i = 0; i < ARRAY_SIZE(cpus); i++) {
		EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpus[i]),
			  -EINVAL);
		EXPECT_EQ(test, apic_timer_query(cpus[i], &info), -EINVAL);
	}
	EXPECT(test, !apic_timer_pending(&shot.timer));
}

/* Delete timers that were never armed, that have run, and that were deleted. */
static void delete_not_pending(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	EXPECT_EQ(test, del_apic_timer(&shot.timer), -ENOENT);
	EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), -ENOENT);

	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 0);
	EXPECT_EQ(test, del_apic_timer(&shot.timer), 0);

	shot.timer.expires = U64_MAX;
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, del_apic_timer(&shot.timer), 1);
	EXPECT_EQ(test, del_apic_timer(&shot.timer), 0);
	EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 0);
}

static void wait_for_oneself(struct selftest_shot *shot)
{
	shot->ret = del_apic_timer_sync(&shot->timer);
}

static void deadlock_is_refused(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, wait_for_oneself);
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.ret, -EDEADLK);
	del_apic_timer_sync(&shot.timer);
}

/* The handler cannot be waited for, but its new shot is deleted. */
static void arm_and_wait_for_oneself(struct selftest_shot *shot)
{
	mod_apic_timer(&shot->timer, shot->now);
	shot->ret = del_apic_timer_sync(&shot->timer);
}

static void deadlock_deletes(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, arm_and_wait_for_oneself);
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.ret, -EDEADLK);
	EXPECT(test, !apic_timer_pending(&shot.timer));
	selftest_sleep_ms(5);
	EXPECT_RUNS(test, &shot, 1);
	del_apic_timer_sync(&shot.timer);
}

static struct {
	struct selftest_shot shot;
	int add, add_on, mod, del, del_sync;
	bool done;
} nmi;

static int nmi_handler(unsigned int cmd, struct pt_regs *regs)
{
	if (nmi.done)
		return NMI_DONE;
	nmi.add = add_apic_timer(&nmi.shot.timer);
	nmi.add_on = add_apic_timer_on(&nmi.shot.timer, 0);
	nmi.mod = mod_apic_timer(&nmi.shot.timer, 0);
	nmi.del = del_apic_timer(&nmi.shot.timer);
	nmi.del_sync = del_apic_timer_sync(&nmi.shot.timer);
	nmi.done = true;
	return NMI_HANDLED;
}

static void called_from_nmi(struct selftest *test)
{
	memset(&nmi, 0, sizeof(nmi));
	selftest_shot_init(&nmi.shot, NULL);
	if (!EXPECT_EQ(test, register_nmi_handler(NMI_LOCAL, nmi_handler, 0,
						  "apic_timer_selftest"), 0))
		return;
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
	EXPECT(test, selftest_wait(READ_ONCE(nmi.done)));
	unregister_nmi_handler(NMI_LOCAL, "apic_timer_selftest");

	EXPECT_EQ(test, nmi.add, -EPERM);
	EXPECT_EQ(test, nmi.add_on, -EPERM);
	EXPECT_EQ(test, nmi.mod, -EPERM);
	EXPECT_EQ(test, nmi.del, -EPERM);
	EXPECT_EQ(test, nmi.del_sync, -EPERM);
	EXPECT_EQ(test, del_apic_timer_sync(&nmi.shot.timer), -ENOENT);
}

const struct selftest_case selftest_refuse_cases[] = {
	CASE(add_twice),
	CASE(zeroed_memory),
	CASE(poisoned_memory),
	CASE(null_pointer),
	CASE(null_pointer_elsewhere),
	CASE(forward_pending),
	CASE(forward_by_nothing),
	CASE(no_function),
	CASE(unknown_flags),
	CASE(every_mode),
	CASE(spin_budget),
	CASE(no_such_cpu),
	CASE(delete_not_pending),
	CASE(deadlock_is_refused),
	CASE(deadlock_deletes),
	CASE(called_from_nmi),
	{}
};
