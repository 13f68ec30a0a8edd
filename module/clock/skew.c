// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the difference between the TSCs of two CPUs.
 *
 * The CPUs send each other messages through memory, in both roles, and each round trip bounds the
 * difference: see bounds.h. Because timers may be pending, interrupts are off only for a few round
 * trips at a time, some microseconds. The narrowest bounds need not come from one burst.
 *
 * Each CPU is measured against the reference, the first online CPU. A CPU is measured when it
 * comes online, when the user asks for all CPUs, and again skew_period_s after the last time, when
 * it and the reference are idle. A third measurement, between a CPU and its neighbour, closes a
 * ring: if the three do not fit together, one of them is wrong.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/seqlock.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <asm/msr.h>

#include <trace/events/apic_clock.h>

#include "bounds.h"
#include "skew.h"

static unsigned int skew_period_s = 600;
module_param(skew_period_s, uint, 0400);
MODULE_PARM_DESC(skew_period_s,
		 "interval at which a CPU's TSC is compared with the reference CPU's, in s; up to twice as long while either is busy (0 to 86400; 0: never)");

/* Number of round trips in one burst, and in total for each role. */
#define BURST		16
#define ROUNDS		320
/* Number of TSC steps by which round trips may differ and still count as equally fast. */
#define SLACK_STEPS	2
/* Time after which a burst is abandoned: the other CPU may be a host thread that does not run. */
#define PATIENCE_US	500
/* Number of reads of the TSC that determine its step. */
#define READS		256
/* Number of attempts if the difference changes during the measurement. */
#define TRIES		3
/* Number of checks per period whether CPUs that are due are idle. */
#define CHECKS		10

/* Alone in its cache line, and in the adjacent line that is fetched with it. */
struct message {
	u64 value;
} __aligned(128);

/**
 * struct exchange - one burst of messages between two CPUs
 * @call:	message to the CPU that answers: number of the round trip
 * @answer:	its answer: its TSC
 * @ready:	number of the two CPUs that have arrived
 * @over:	one of the CPUs has given up, or the burst is complete
 * @first:	CPU that begins
 * @second:	CPU that answers
 * @rounds:	complete round trips
 * @t1:		for each round trip: TSC of @first before it
 * @t2:		TSC of @second
 * @t3:		TSC of @first after it
 */
struct exchange {
	struct message call;
	struct message answer;
	atomic_t ready;
	bool over;
	int first, second;
	unsigned int rounds;
	u64 t1[BURST], t2[BURST], t3[BURST];
};

/**
 * struct known - last measurement of a CPU
 * @skew:	measured skew
 * @ret:	0 if @skew is valid, otherwise the error
 * @tried:	TSC of the last measurement, successful or not; measure_mutex
 */
struct known {
	struct apic_clock_skew skew;
	int ret;
	u64 tried;
};

static DEFINE_MUTEX(measure_mutex);	/* one measurement at a time */
static struct exchange exchange;	/* measure_mutex */
static struct cpumask both;		/* measure_mutex: the CPUs of an exchange */
static DEFINE_RAW_SPINLOCK(known_lock);
static seqcount_raw_spinlock_t known_seq = SEQCNT_RAW_SPINLOCK_ZERO(known_seq, &known_lock);
static DEFINE_PER_CPU(struct known, known);	/* known_lock, known_seq */
static enum cpuhp_state hotplug_state;
static void (*judge_soon)(void);	/* after a measurement */

static void measure_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(soon_work, measure_work);
/* Deferrable: does not wake an idle CPU. */
static DECLARE_DEFERRABLE_WORK(period_work, measure_work);

/*
 * Wait for the other CPU. Return: false if it does not arrive. PAUSE lets it arrive sooner if both
 * CPUs are threads that take turns: of an emulator, a host or a core.
 */
static bool meet(struct exchange *x, u64 limit)
{
	atomic_inc(&x->ready);
	while (atomic_read(&x->ready) < 2) {
		if (READ_ONCE(x->over) || rdtsc() > limit)
			return false;
		cpu_relax();
	}
	return true;
}

/*
 * No PAUSE in these loops: it takes longer than the message that is measured. Each loop reads the
 * TSC only after it has waited for some time, when the round trip is too slow to be useful.
 */
static noinline void call(struct exchange *x, u64 limit)
{
	unsigned int i, spins;
	u64 t1, t2, t3, last;

	/* The other CPU sets @over if it gave up, before we arrived or while we were held up. */
	for (i = 0; i < BURST; i++) {
		last = READ_ONCE(x->answer.value);
		t1 = rdtsc_ordered();
		WRITE_ONCE(x->call.value, i + 1);
		for (spins = 1; (t2 = READ_ONCE(x->answer.value)) == last; spins++)
			if (!(spins % 1024)) {
				if (READ_ONCE(x->over) || rdtsc() > limit)
					return;
				cpu_relax();
			}
		t3 = rdtsc_ordered();
		x->t1[i] = t1;
		x->t2[i] = t2;
		x->t3[i] = t3;
		x->rounds = i + 1;
	}
}

static noinline void answer(struct exchange *x, u64 limit)
{
	unsigned int i, spins;

	/* The other CPU sets @over, unless it does not run. It must not wait for us then either. */
	for (i = 0; i < BURST; i++) {
		for (spins = 1; READ_ONCE(x->call.value) != i + 1; spins++)
			if (!(spins % 1024) && (READ_ONCE(x->over) || rdtsc() > limit)) {
				WRITE_ONCE(x->over, true);
				return;
			}
		WRITE_ONCE(x->answer.value, rdtsc_ordered());
	}
}

static void take_part(void *arg)
{
	struct exchange *x = arg;
	u64 limit = rdtsc() + apic_timer_us_to_tsc(PATIENCE_US);

	lockdep_assert_irqs_disabled();
	if (smp_processor_id() == x->first) {
		if (meet(x, limit))
			call(x, limit);
		WRITE_ONCE(x->over, true);
	} else if (smp_processor_id() == x->second) {
		if (!meet(x, limit))
			WRITE_ONCE(x->over, true);
		else
			answer(x, limit);
	}
}

/* Run one burst. Both CPUs are online and stay online. */
static void exchange_burst(struct exchange *x, int first, int second)
{
	lockdep_assert_held(&measure_mutex);
	memset(x, 0, sizeof(*x));
	x->first = first;
	x->second = second;
	cpumask_clear(&both);
	cpumask_set_cpu(first, &both);
	cpumask_set_cpu(second, &both);
	on_each_cpu_mask(&both, take_part, x, true);
}

/**
 * struct steps - steps in which a CPU's TSC counts
 * @quantum:	greatest common divisor of the differences between reads
 * @value:	one of the values
 */
struct steps {
	u64 quantum;
	u64 value;
};

static void read_steps(void *arg)
{
	struct steps *steps = arg;
	u64 first = rdtsc_ordered(), quantum = 0;
	unsigned int i;

	for (i = 0; i < READS; i++)
		quantum = apic_clock_gcd(quantum, rdtsc_ordered() - first);
	steps->quantum = quantum;
	steps->value = first;
}

/**
 * apic_clock_tsc_step() - measure the step in which this CPU's TSC counts
 *
 * Context: Any.
 * Return: the step in cycles; by chance it may be a multiple of the true step.
 */
u64 apic_clock_tsc_step(void)
{
	struct steps steps;

	read_steps(&steps);
	return steps.quantum;
}

static void use(struct apic_clock_bounds *bounds, const struct exchange *x, bool reverse)
{
	unsigned int i;

	for (i = 0; i < x->rounds; i++) {
		if (reverse)
			apic_clock_bounds_add_reverse(bounds, x->t1[i], x->t2[i], x->t3[i]);
		else
			apic_clock_bounds_add(bounds, x->t1[i], x->t2[i], x->t3[i]);
	}
}

/* Measure the bounds of the difference between the TSCs of two CPUs. */
static int measure_pair(int a, int b, struct apic_clock_bounds *bounds)
{
	unsigned int go;

	lockdep_assert_held(&measure_mutex);
	for (go = 0; go < 2 * ROUNDS / BURST; go++) {
		bool reverse = go % 2;

		exchange_burst(&exchange, reverse ? b : a, reverse ? a : b);
		use(bounds, &exchange, reverse);
	}
	if (bounds->rounds < BURST)
		return -ETIMEDOUT;
	return apic_clock_bounds_contradict(bounds) ? -ESTALE : 0;
}

static int measure(int reference, int cpu, struct apic_clock_skew *skew)
{
	const struct apic_clock_bounds none = APIC_CLOCK_BOUNDS_NONE;
	struct apic_clock_bounds bounds;
	struct steps a, b;
	int ret, try;

	smp_call_function_single(reference, read_steps, &a, true);
	smp_call_function_single(cpu, read_steps, &b, true);
	for (try = 0; try < TRIES; try++) {
		bounds = none;
		bounds.slack = SLACK_STEPS * max3(a.quantum, b.quantum, 1ULL);
		ret = measure_pair(reference, cpu, &bounds);
		if (ret != -ESTALE)
			break;
	}

	/* Fill it in even after a failure, for the trace event. */
	*skew = (struct apic_clock_skew) {
		.reference = reference,
		.low = bounds.low,
		.high = bounds.high,
		.quantum = apic_clock_gcd(a.quantum, b.quantum),
		.rounds = bounds.rounds,
		.measured = apic_timer_now(),
	};
	div64_u64_rem(b.value, max(skew->quantum, 1ULL), &skew->residue);
	div64_u64_rem(a.value, max(skew->quantum, 1ULL), &a.value);
	if (!ret)
		skew->offset = apic_clock_bounds_snap(&bounds, skew->quantum, skew->residue +
						      skew->quantum - a.value);
	return ret;
}

/* Measure only the step of the reference. */
static void measure_reference(struct apic_clock_skew *skew)
{
	struct steps steps;

	smp_call_function_single(skew->reference, read_steps, &steps, true);
	skew->quantum = steps.quantum;
	div64_u64_rem(steps.value, max(steps.quantum, 1ULL), &skew->residue);
	skew->measured = apic_timer_now();
}

static bool is_apart(const struct apic_clock_skew *skew)
{
	return skew->low > 0 || skew->high < 0;
}

/* A host that moves virtual CPUs may move many of them between two measurements. */
static DEFINE_RATELIMIT_STATE(moved_limit, 3600 * HZ, 10);
static DEFINE_RATELIMIT_STATE(moves_limit, 3600 * HZ, 10);
static DEFINE_RATELIMIT_STATE(ring_limit, 3600 * HZ, 10);

/* Remember a measurement. Return: whether it may change the verdict. */
static bool remember(int cpu, const struct apic_clock_skew *skew, int ret)
{
	struct known *was = per_cpu_ptr(&known, cpu);
	unsigned long flags;
	bool moved, news;

	raw_spin_lock_irqsave(&known_lock, flags);
	news = ret != was->ret || (!ret && is_apart(skew) != is_apart(&was->skew));
	moved = !ret && !was->ret && was->skew.reference == skew->reference &&
		(was->skew.low > skew->high || was->skew.high < skew->low);
	write_seqcount_begin(&known_seq);
	was->ret = ret;
	if (!ret)
		was->skew = *skew;
	write_seqcount_end(&known_seq);
	if (ret != -ENODATA)
		was->tried = skew->measured;
	raw_spin_unlock_irqrestore(&known_lock, flags);
	/* A CPU that goes offline was not measured. */
	if (ret != -ENODATA)
		trace_apic_clock_skew(cpu, skew, ret);
	if (moved && __ratelimit(&moved_limit))
		pr_info("CPU %d: TSC has moved since its last measurement: now %lld cycles ahead of CPU %d\n",
			cpu, skew->offset, skew->reference);
	if (ret == -ESTALE && __ratelimit(&moves_limit))
		pr_warn("CPU %d: TSC moved against that of CPU %d during the measurement\n",
			cpu, skew->reference);
	return news || moved;
}

/* Return: 0 if the ring of CPU, neighbour and reference closes, or could not be measured. */
static int check_ring(int reference, int a, int b)
{
	struct apic_clock_bounds pair = APIC_CLOCK_BOUNDS_NONE, from_a = {}, from_b = {};
	struct apic_clock_skew x, y;

	if (apic_clock_get_skew(a, &x) || apic_clock_get_skew(b, &y) || measure_pair(a, b, &pair))
		return 0;
	from_a.low = x.low;
	from_a.high = x.high;
	from_b.low = y.low;
	from_b.high = y.high;
	if (apic_clock_bounds_ring(&from_a, &from_b, &pair))
		return 0;
	if (__ratelimit(&ring_limit))
		pr_warn("CPUs %d, %d and %d: the measured differences of their TSCs contradict each other\n",
			reference, a, b);
	remember(b, &y, -ESTALE);
	return -ESTALE;
}

/**
 * struct idle - whether a CPU is idle
 * @measurer:	task that will measure the CPU, which does not count
 * @idle:	set: no other task runs on the CPU, or waits to run
 */
struct idle {
	const struct task_struct *measurer;
	bool idle;
};

static void ask_whether_idle(void *arg)
{
	struct idle *idle = arg;

	idle->idle = is_idle_task(current) ||
		     (current == idle->measurer && single_task_running());
}

static bool is_idle(int cpu)
{
	struct idle idle = { .measurer = current };

	smp_call_function_single(cpu, ask_whether_idle, &idle, true);
	return idle.idle;
}

static u64 seconds(unsigned int s)
{
	return apic_timer_us_to_tsc((u64)s * USEC_PER_SEC);
}

/* Time between two checks whether CPUs are due for a measurement, s. */
static unsigned int check_s(void)
{
	return max(skew_period_s / CHECKS, 1U);
}

/* The CPU was measured recently; or it or the reference is busy, and there is still time. */
static bool is_put_off(int reference, int cpu)
{
	/* A value of another epoch may be ahead; the difference then looks like a long time. */
	u64 age = apic_timer_now() - per_cpu(known, cpu).tried;

	lockdep_assert_held(&measure_mutex);
	/* Tolerate half the time between two checks, because work is not exactly on time. */
	if (age < seconds(skew_period_s) - seconds(check_s()) / 2)
		return true;
	return age < seconds(2 * skew_period_s) && !(is_idle(reference) && is_idle(cpu));
}

/* Measure all online CPUs, or with @turn only those that are due. */
static int measure_cpus(bool turn)
{
	struct apic_clock_skew skew;
	int cpu, reference, last = -1, ret, error = 0;
	bool any = false;

	cpus_read_lock();
	mutex_lock(&measure_mutex);
	reference = cpumask_first(cpu_online_mask);
	for_each_possible_cpu(cpu) {
		if (turn && cpu_online(cpu) && is_put_off(reference, cpu))
			continue;
		skew = (struct apic_clock_skew) { .reference = reference };
		ret = 0;
		if (!cpu_online(cpu))
			ret = -ENODATA;
		else if (cpu == reference)
			measure_reference(&skew);
		else
			ret = measure(reference, cpu, &skew);
		remember(cpu, &skew, ret);
		if (!cpu_online(cpu))
			continue;
		/* Waiting for a CPU that does not arrive takes some 40 ms. */
		cond_resched();
		any = true;
		if (ret)
			error = ret;
		if (ret || cpu == reference)
			continue;
		if (last >= 0)
			error = check_ring(reference, last, cpu) ?: error;
		last = cpu;
	}
	mutex_unlock(&measure_mutex);
	cpus_read_unlock();
	/* Judging interrupts all CPUs. */
	if (any)
		judge_soon();
	return error;
}

/**
 * apic_clock_skew_measure_all() - measure all online CPUs
 *
 * Context: Task.
 * Return: 0; the error of the last CPU that could not be measured.
 */
int apic_clock_skew_measure_all(void)
{
	return measure_cpus(false);
}

static void measure_work(struct work_struct *work)
{
	measure_cpus(work == &period_work.work);
	if (skew_period_s)
		schedule_delayed_work(&period_work, check_s() * HZ);
}

/**
 * apic_clock_get_skew() - get the skew of a CPU's TSC against the reference CPU's
 * @cpu:	the CPU
 * @skew:	filled in
 *
 * Context: Any but NMI.
 * Return:
 * * %0 - @skew is filled in
 * * %-EINVAL - no such CPU, or @skew is NULL
 * * %-ENODATA - the CPU is offline, or was not measured yet
 * * %-ETIMEDOUT - it did not run together with the reference for long enough
 * * %-ESTALE - the two TSCs moved against each other during the measurement
 */
int apic_clock_get_skew(int cpu, struct apic_clock_skew *skew)
{
	const struct known *found;
	unsigned int seq;
	int ret;

	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu) || !skew)
		return -EINVAL;
	found = per_cpu_ptr(&known, cpu);
	do {
		seq = read_seqcount_begin(&known_seq);
		ret = found->ret;
		*skew = found->skew;
	} while (read_seqcount_retry(&known_seq, seq));
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_get_skew);

/**
 * apic_clock_measure_skew() - measure the skew of a CPU's TSC against the reference CPU's
 * @cpu:	the CPU
 * @skew:	filled in
 *
 * Interrupts are off on both CPUs for some microseconds at a time.
 *
 * Context: Task; may sleep.
 * Return: as apic_clock_get_skew().
 */
int apic_clock_measure_skew(int cpu, struct apic_clock_skew *skew)
{
	struct apic_clock_skew found = {};
	int ret = 0;
	bool news;

	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu) || !skew)
		return -EINVAL;
	cpus_read_lock();
	mutex_lock(&measure_mutex);
	found.reference = cpumask_first(cpu_online_mask);
	if (!cpu_online(cpu))
		ret = -ENODATA;
	else if (cpu == found.reference)
		measure_reference(&found);
	else
		ret = measure(found.reference, cpu, &found);
	news = remember(cpu, &found, ret);
	mutex_unlock(&measure_mutex);
	cpus_read_unlock();
	/* Judging interrupts all CPUs. If built in, callers may run before our initialisation. */
	if (news && judge_soon)
		judge_soon();
	*skew = found;
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_measure_skew);

static int cpu_came(unsigned int cpu)
{
	/* This callback holds the lock that measuring needs. */
	schedule_delayed_work(&soon_work, HZ);
	return 0;
}

static int cpu_goes(unsigned int cpu)
{
	const struct apic_clock_skew none = {};

	/* Another CPU may be the reference from now on. */
	remember(cpu, &none, -ENODATA);
	schedule_delayed_work(&soon_work, HZ);
	return 0;
}

/**
 * apic_clock_skew_init() - measure all CPUs soon, and each CPU that comes online
 * @news:	called from a task when a measurement may change the verdict
 *
 * Return: 0, or an error.
 */
int apic_clock_skew_init(void (*news)(void))
{
	int cpu, ret;

	if (skew_period_s > 86400) {
		pr_err("skew_period_s=%u is out of range: 0 to 86400 s\n", skew_period_s);
		return -EINVAL;
	}
	judge_soon = news;
	for_each_possible_cpu(cpu)
		per_cpu(known, cpu).ret = -ENODATA;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "apic_clock:online", cpu_came, cpu_goes);
	if (ret < 0)
		return ret;
	hotplug_state = ret;
	return 0;
}

/**
 * apic_clock_skew_exit() - stop measuring
 */
void apic_clock_skew_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
	cancel_delayed_work_sync(&soon_work);
	cancel_delayed_work_sync(&period_work);
}
