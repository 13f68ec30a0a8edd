// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that arm themselves again and again, on each participating CPU: the kernel's own, which
 * must continue undisturbed, and one of ours, which nothing else touches. Each shot must run once,
 * not early, on its CPU, and not be lost.
 */
#include <linux/apic_timer.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/timer.h>

#include "compat/hrtimer.h"
#include "torture.h"

/* A timer that has not run for this long is lost. */
#define LOST_S	30
/*
 * One of ours is starved if it has not run for this long, while the kernel's on the same CPU
 * have run so often: a CPU that gets no time runs neither.
 */
#define STARVED_S	10
#define STARVED_SHOTS	500

/* Shots of the kernel's first kind on each CPU */
static DEFINE_PER_CPU(u32, kernel_shots);

struct steady;

/**
 * struct kind - a kind of timer
 * @name:	for messages
 * @ours:	whether apic_timer serves them
 * @counts:	its shots are counted in @kernel_shots
 * @now:	the current moment, in the kind's unit
 * @length:	µs in that unit
 * @start:	arm for the first time, on the timer's CPU, interrupts off
 * @cancel:	delete and wait for the handler; whether it was pending
 */
struct kind {
	const char *name;
	bool ours, counts;
	u64 (*now)(void);
	u64 (*length)(u64 us);
	void (*start)(struct steady *steady);
	bool (*cancel)(struct steady *steady);
};

/**
 * struct steady - a timer of a CPU
 * @apic:	one of these, for its kind
 * @hrtimer:	one of these
 * @timer:	one of these
 * @kind:	its kind
 * @armed:	a shot is due
 * @expires:	its moment, in the kind's unit
 * @cpu:	where it was armed
 * @since:	torture_onoff_now() then
 * @kernel:	the CPU's @kernel_shots then
 * @state:	random numbers
 */
struct steady {
	union {
		struct apic_timer_list apic;
		struct hrtimer hrtimer;
		struct timer_list timer;
	};
	const struct kind *kind;
	bool armed;
	u64 expires;
	int cpu;
	u32 since;
	u32 kernel;
	u32 state;
};

static void fault(const struct steady *steady, const char *what)
{
	torture_fault("%s of CPU %d: %s (expires %llu, now %llu, here CPU %d)",
		      steady->kind->name, steady->cpu, what, steady->expires,
		      steady->kind->now(), raw_smp_processor_id());
}

/* Choose the next shot, which is then armed here. */
static void choose(struct steady *steady)
{
	u64 us = torture_random(&steady->state) % torture_reach + 1;

	WRITE_ONCE(steady->cpu, smp_processor_id());
	steady->since = torture_onoff_now();
	WRITE_ONCE(steady->kernel, this_cpu_read(kernel_shots));
	WRITE_ONCE(steady->expires,
		   steady->kind->now() + steady->kind->length(us));
	WRITE_ONCE(steady->armed, true);
}

static bool in_place(const struct steady *steady)
{
	int here = smp_processor_id();

	if (steady->kind->ours)
		return torture_onoff_may_be_on(steady->cpu, steady->since,
					       here);
	/* Where the kernel moves its timers from an offline CPU is its own business. */
	return steady->cpu == here || torture_onoff_since(steady->since);
}

/* Handle a shot, at @now. Return: whether another was chosen. */
static bool shot(struct steady *steady, u64 now)
{
	if (!steady->armed)
		fault(steady, "ran without being armed");
	else if (now < steady->expires)
		fault(steady, "early");
	else if (!in_place(steady))
		fault(steady, "on another CPU");
	WRITE_ONCE(steady->armed, false);
	if (steady->kind->counts)
		this_cpu_inc(kernel_shots);
	torture_inc(STEADY);
	torture_inc(FATES);

	if (READ_ONCE(torture_over))
		return false;
	choose(steady);
	return true;
}

static void apic_handler(unsigned long long now, unsigned long data)
{
	struct steady *steady = (struct steady *)data;

	if (!shot(steady, now))
		return;
	steady->apic.expires = steady->expires;
	if (add_apic_timer(&steady->apic))
		fault(steady, "not armed again");
}

static void apic_start(struct steady *steady)
{
	steady->apic.function = apic_handler;
	steady->apic.data = (unsigned long)steady;
	init_apic_timer(&steady->apic);
	steady->apic.expires = steady->expires;
	if (add_apic_timer(&steady->apic))
		fault(steady, "not armed");
}

static bool apic_cancel(struct steady *steady)
{
	return del_apic_timer_sync(&steady->apic) == 1;
}

static enum hrtimer_restart hrtimer_handler(struct hrtimer *hrtimer)
{
	struct steady *steady = container_of(hrtimer, struct steady, hrtimer);

	if (!shot(steady, ktime_get_ns()))
		return HRTIMER_NORESTART;
	hrtimer_set_expires(hrtimer, ns_to_ktime(steady->expires));
	return HRTIMER_RESTART;
}

static void hrtimer_start_as(struct steady *steady, enum hrtimer_mode mode)
{
	apic_timer_hrtimer_setup(&steady->hrtimer, hrtimer_handler,
				 CLOCK_MONOTONIC, mode);
	hrtimer_start(&steady->hrtimer, ns_to_ktime(steady->expires), mode);
}

static void hard_start(struct steady *steady)
{
	hrtimer_start_as(steady, HRTIMER_MODE_ABS_PINNED_HARD);
}

static void soft_start(struct steady *steady)
{
	hrtimer_start_as(steady, HRTIMER_MODE_ABS_PINNED_SOFT);
}

static bool hrtimer_cancel_it(struct steady *steady)
{
	return hrtimer_cancel(&steady->hrtimer);
}

static u64 ns_length(u64 us)
{
	return us * NSEC_PER_USEC;
}

static void timer_handler(struct timer_list *timer)
{
	struct steady *steady = container_of(timer, struct steady, timer);

	if (shot(steady, jiffies))
		mod_timer(timer, steady->expires);
}

static void timer_start(struct steady *steady)
{
	timer_setup(&steady->timer, timer_handler, TIMER_PINNED);
	mod_timer(&steady->timer, steady->expires);
}

static bool timer_cancel(struct steady *steady)
{
	return timer_delete_sync(&steady->timer);
}

static u64 jiffies_now(void)
{
	return jiffies;
}

static u64 jiffies_length(u64 us)
{
	return usecs_to_jiffies(us);
}

static const struct kind kinds[] = {
	{ "apic_timer", true, false, apic_timer_now, apic_timer_us_to_tsc,
	  apic_start, apic_cancel },
	{ "hard hrtimer", false, true, ktime_get_ns, ns_length, hard_start,
	  hrtimer_cancel_it },
	{ "soft hrtimer", false, false, ktime_get_ns, ns_length, soft_start,
	  hrtimer_cancel_it },
	{ "timer_list", false, false, jiffies_now, jiffies_length, timer_start,
	  timer_cancel },
};

static DEFINE_PER_CPU(struct steady [ARRAY_SIZE(kinds)], steadies);

/* Runs on the timers' CPU. */
static void start_here(void *unused)
{
	struct steady *steady = *this_cpu_ptr(&steadies);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		choose(&steady[i]);
		kinds[i].start(&steady[i]);
	}
}

static void start(int cpu)
{
	if (smp_call_function_single(cpu, start_here, NULL, 1))
		torture_fault("CPU %d does not respond", cpu);
}

static void cancel(int cpu)
{
	struct steady *steady = *per_cpu_ptr(&steadies, cpu);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!steady[i].kind)
			continue;
		if (kinds[i].cancel(&steady[i])) {
			torture_inc(STEADY);
			torture_inc(FATES);
		} else if (steady[i].armed) {
			fault(&steady[i], "neither run nor pending");
		}
		/* torture_steady_check() may be reading. */
		WRITE_ONCE(steady[i].armed, false);
	}
}

/**
 * torture_steady_start() - start the timers on all CPUs
 * @seed:	of the random numbers
 *
 * Context: Task. torture_steady_stop() must follow.
 */
void torture_steady_start(u32 seed)
{
	unsigned int c, i;

	for (c = 0; c < torture_cpu_count; c++) {
		struct steady *steady = *per_cpu_ptr(&steadies,
						     torture_cpus[c]);

		for (i = 0; i < ARRAY_SIZE(kinds); i++) {
			steady[i].kind = &kinds[i];
			steady[i].state = (seed + c * ARRAY_SIZE(kinds) + i) *
					  3266489917U | 1;
		}
		start(torture_cpus[c]);
	}
}

/**
 * torture_steady_restart() - restart the timers of a CPU that is back
 * @cpu:	the CPU
 *
 * They moved when it went offline.
 *
 * Context: Task.
 */
void torture_steady_restart(int cpu)
{
	cancel(cpu);
	start(cpu);
}

static bool starved(const struct steady *steady, u64 now, u64 expires)
{
	/* Not always that of its place in @steadies: it may have moved. */
	int cpu = READ_ONCE(steady->cpu);
	u32 shots = READ_ONCE(per_cpu(kernel_shots, cpu)) - READ_ONCE(steady->kernel);

	return steady->kind->ours && shots > STARVED_SHOTS &&
	       now > expires + steady->kind->length(STARVED_S * USEC_PER_SEC);
}

/**
 * torture_steady_check() - look for timers that are lost, or starved
 *
 * Context: Task, now and then.
 */
void torture_steady_check(void)
{
	unsigned int c, i;

	for (c = 0; c < torture_cpu_count; c++) {
		struct steady *steady = *per_cpu_ptr(&steadies,
						     torture_cpus[c]);

		for (i = 0; i < ARRAY_SIZE(kinds); i++) {
			u64 expires = READ_ONCE(steady[i].expires);
			u64 lost = kinds[i].length(LOST_S * USEC_PER_SEC);
			u64 now = kinds[i].now();

			if (!READ_ONCE(steady[i].armed))
				continue;
			if (now > expires + lost)
				fault(&steady[i], "overdue");
			else if (starved(&steady[i], now, expires))
				fault(&steady[i], "starved while the kernel's run");
		}
	}
}

/**
 * torture_steady_stop() - stop the timers
 *
 * Context: Task; no CPU goes offline or returns any more.
 */
void torture_steady_stop(void)
{
	unsigned int c;

	for (c = 0; c < torture_cpu_count; c++)
		cancel(torture_cpus[c]);
}
