// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that go offline and return, and where their timers may therefore be.
 *
 * Each departure has a number and is recorded with the CPUs that take over: all online CPUs in
 * turn, see module/core/timers/drain.c. A caller that arms a timer notes torture_onoff_now()
 * before, with interrupts off or in an RCU read-side section: then the departures from that number
 * on are those that can have moved it. It is assumed that nothing else takes CPUs offline.
 */
#include <linux/bits.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "torture.h"

#define NOBODY		(-1)

/*
 * The last departures: the CPU, the CPUs that take over from it (those that fit a word), and
 * whether it is unknown if it has gone offline: its timers may have moved, or not.
 */
static struct departure {
	int cpu;
	unsigned long successors;
	bool unknown;
} departures[1024];

static u32 begun, ended;	/* departures */
static int away = NOBODY;	/* the CPU that is offline, going or coming */

static struct task_struct *task;
static unsigned long interval;	/* jiffies */
static unsigned long most;	/* requested departures, 0 for no limit */
static u32 state;

/**
 * torture_onoff_now() - number of completed departures
 *
 * Context: Interrupts off, or in an RCU read-side section, in which the timer is
 * armed.
 * Return: that number.
 */
u32 torture_onoff_now(void)
{
	/* Pairs with depart(): their outcome is visible. */
	return smp_load_acquire(&ended);
}

/**
 * torture_onoff_since() - whether any CPU has gone offline, or is going
 * @since:	earlier value of torture_onoff_now()
 *
 * Return: true if one has since then.
 */
bool torture_onoff_since(u32 since)
{
	return READ_ONCE(begun) != since;
}

/**
 * torture_onoff_away() - whether a CPU may reject timers
 * @cpu:	the CPU, or a negative number for any
 *
 * Context: In the section of torture_onoff_now(), after the rejection.
 * Return: true if it is offline, going or coming.
 */
bool torture_onoff_away(int cpu)
{
	int now = READ_ONCE(away);

	return now != NOBODY && (cpu < 0 || cpu == now);
}

/**
 * torture_onoff_may_be_on() - whether a timer may run on a CPU
 * @cpu:	the CPU that it was armed on
 * @since:	torture_onoff_now() before it was armed
 * @here:	the CPU that runs it
 *
 * Return: true if that is @cpu, or one that has taken over from it.
 */
bool torture_onoff_may_be_on(int cpu, u32 since, int here)
{
	u32 over = torture_onoff_now(), n;
	/* Pairs with depart(): those departures are recorded. */
	u32 last = smp_load_acquire(&begun);
	unsigned long where;

	/* Too long ago, or too many CPUs. */
	if (last - since >= ARRAY_SIZE(departures) || nr_cpu_ids > BITS_PER_LONG)
		return true;

	where = BIT(cpu);
	for (n = since; n != last; n++) {
		const struct departure *departure =
			&departures[n % ARRAY_SIZE(departures)];

		if (!(where & BIT(departure->cpu)))
			continue;
		where |= departure->successors;
		/* It is or was offline: its pending timers have left it. */
		if ((s32)(n - over) < 0 && !READ_ONCE(departure->unknown))
			where &= ~BIT(departure->cpu);
	}
	return where & BIT(here);
}

static unsigned long successors_of(int going)
{
	unsigned long successors = 0;
	int cpu;

	for_each_online_cpu(cpu)
		if (cpu != going && cpu < BITS_PER_LONG)
			successors |= BIT(cpu);
	return successors;
}

/* Return: whether the CPU is offline. */
static bool depart(int cpu)
{
	struct departure *departure =
		&departures[begun % ARRAY_SIZE(departures)];
	int ret;

	departure->cpu = cpu;
	departure->successors = successors_of(cpu);
	departure->unknown = false;
	WRITE_ONCE(away, cpu);
	/* Pairs with torture_onoff_may_be_on(): it is recorded. */
	smp_store_release(&begun, begun + 1);

	ret = remove_cpu(cpu);
	if (ret)
		WRITE_ONCE(departure->unknown, true);
	/* Pairs with torture_onoff_now(): its outcome is visible. */
	smp_store_release(&ended, ended + 1);
	/* A caller with the old number arms while the CPU is still offline. */
	synchronize_rcu();
	if (ret)
		torture_inc(STAYED);
	else
		torture_inc(OFFS);
	return !ret;
}

static void come_back(int cpu)
{
	int ret = add_cpu(cpu);

	if (ret)
		torture_fault("CPU %d does not come back online: %d", cpu, ret);
	else
		torture_steady_restart(cpu);
}

/* Return: a CPU that can go offline, or NOBODY. */
static int candidate(void)
{
	unsigned int i, first = (torture_random(&state) >> 8) %
				torture_cpu_count;

	for (i = 0; i < torture_cpu_count; i++) {
		int cpu = torture_cpus[(first + i) % torture_cpu_count];

		if (cpu_online(cpu) && cpu_is_hotpluggable(cpu))
			return cpu;
	}
	return NOBODY;
}

static void rest(void)
{
	schedule_timeout_interruptible(torture_random(&state) % interval + 1);
}

static int onoff(void *unused)
{
	while (!kthread_should_stop()) {
		int cpu = candidate();

		if (cpu == NOBODY || torture_onoff_done()) {
			schedule_timeout_interruptible(HZ);
			continue;
		}
		if (depart(cpu)) {
			rest();
			come_back(cpu);
			/* Refusals so far were right. */
			synchronize_rcu();
		}
		WRITE_ONCE(away, NOBODY);
		schedule_timeout_interruptible(interval);
	}
	return 0;
}

/**
 * torture_onoff_possible() - whether a CPU can go offline
 *
 * Return: true if a participating CPU can, and another stays.
 */
bool torture_onoff_possible(void)
{
	return num_online_cpus() > 1 && candidate() != NOBODY;
}

/**
 * torture_onoff_start() - begin to take CPUs offline
 * @interval_ms: time in between, ms; also the maximum time offline
 * @times:	maximum number of departures; 0 for no limit
 * @seed:	of the random numbers
 *
 * Return: 0 or -errno; call torture_onoff_stop() in both cases.
 */
int torture_onoff_start(unsigned int interval_ms, unsigned long times, u32 seed)
{
	state = seed * 2246822519U | 1;
	interval = max(msecs_to_jiffies(interval_ms), 1UL);
	most = times;
	task = kthread_run(onoff, NULL, "torture_onoff");
	return PTR_ERR_OR_ZERO(task);
}

/**
 * torture_onoff_done() - whether all requested departures have happened
 *
 * Return: true if so.
 */
bool torture_onoff_done(void)
{
	return most && torture_count(TORTURE_OFFS) >= most;
}

/**
 * torture_onoff_stop() - take no more CPUs offline; wait until all are back
 */
void torture_onoff_stop(void)
{
	if (!IS_ERR_OR_NULL(task))
		kthread_stop(task);
	task = NULL;
}
