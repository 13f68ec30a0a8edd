// SPDX-License-Identifier: GPL-2.0
/*
 * Common time: TSCs that stop, and the rate of TSCs that do not.
 *
 * Each CPU's TSC is compared with a counter that continues when the TSC stops (HPET or PM
 * timer), from time to time and, if the user asks for it, after each idle state. The TSC is
 * never written. The offset of a CPU is only a number, measured anew each time, so errors do not
 * add up. map.c does the arithmetic.
 *
 * The rate of the TSC is fitted from the same readings. A rate that changes by more than crystals
 * drift means that the TSC or the counter cannot be trusted. Where the TSC may stop, a change is
 * taken for stops until it has lasted.
 *
 * Each CPU reads its own TSC and the counter, with interrupts off. An interruption by an SMI or
 * a hypervisor between two reads makes them less exact, but not wrong.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/bits.h>
#include <linux/cpu.h>
#include <linux/cpuidle.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/seqlock.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/suspend.h>
#include <linux/tracepoint.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <asm/msr.h>

#include <trace/events/apic_clock.h>
#include <trace/events/power.h>

#include "map.h"
#include "reference.h"
#include "resync.h"
#include "skew.h"

static char *reference = "auto";
module_param(reference, charp, 0400);
MODULE_PARM_DESC(reference,
		 "counter to compare TSCs with: hpet, acpi_pm, none, or auto for the first one available, none in a virtual machine");

static unsigned int resync_ms = 10000;
module_param(resync_ms, uint, 0400);
MODULE_PARM_DESC(resync_ms,
		 "interval between comparisons of the TSC with the reference counter, in ms (10 to 10000)");

static bool follow_idle;
module_param(follow_idle, bool, 0400);
MODULE_PARM_DESC(follow_idle,
		 "compare the TSCs of all CPUs, also after each idle state, which takes about 10 us; for TSCs that stop in idle");

/* Reads of the counter in one comparison. */
#define READS		9
/* A read takes longer only if it is interrupted, or emulated; the latter happens to all. */
#define SLOW_US		20
/* Number of slow reads that a comparison makes. The CPU's timers wait meanwhile. */
#define SLOW_READS	2
#define RESYNC_MS_MIN	10
#define RESYNC_MS_MAX	10000
#define FS_PER_S	1000000000000000ULL

/* Kinds of faults that enter the verdict. */
#define FAULT_BREAK	BIT(0)	/* a TSC has stopped, or is ahead */
#define FAULT_PROVEN	BIT(1)	/* the same, by more than the error of the readings */
#define FAULT_MOVED	BIT(2)	/* the rate has changed */

/**
 * struct state - a CPU
 * @lock:	protects the members below; taken with interrupts off
 * @follow:	the CPU's TSC against common time
 * @last:	common time as last read: it never goes back
 */
struct state {
	raw_spinlock_t lock;
	struct apic_clock_follow follow;
	u64 last;
};

/**
 * struct base - values from which all CPUs compute common time
 * @scale:	common time by the counter
 * @rate:	bounds of the TSC's rate
 * @runs:	bounds of what is a rate, not a stop
 * @ns:		start of @scale, by the kernel's clock that is safe in any context
 */
struct base {
	struct apic_clock_scale scale;
	struct apic_clock_rate rate;
	struct apic_clock_rate runs;
	u64 ns;
};

static DEFINE_PER_CPU(struct state, states);
static const struct apic_clock_reference *counter;	/* NULL: none */
static u64 ticks_per_s;
static u64 slow_read;				/* cycles */
static bool probing;
static bool may_stop;				/* the TSC may stop in idle */
static void (*judge_soon)(void);		/* called after a new kind of fault */

static DEFINE_RAW_SPINLOCK(base_lock);
static seqcount_raw_spinlock_t base_seq = SEQCNT_RAW_SPINLOCK_ZERO(base_seq, &base_lock);
static struct base base;			/* base_lock, base_seq */

static DEFINE_MUTEX(resync_mutex);
static struct apic_clock_fit fit;		/* resync_mutex */
static int fit_cpu;				/* likewise: the CPU whose readings are used */
static u64 fit_breaks;				/* likewise: breaks of its TSC so far */
static u64 fit_reads;				/* likewise */
static bool asleep;				/* likewise, for writing */
static unsigned int faults;			/* likewise: kinds of faults that were found */

static void resync_work(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(work, resync_work);

static struct base read_base(void)
{
	unsigned int seq;
	struct base copy;

	do {
		seq = read_seqcount_begin(&base_seq);
		copy = base;
	} while (read_seqcount_retry(&base_seq, seq));
	return copy;
}

static void write_base(const struct base *to)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base_lock, flags);
	write_seqcount_begin(&base_seq);
	base = *to;
	write_seqcount_end(&base_seq);
	raw_spin_unlock_irqrestore(&base_lock, flags);
}

/**
 * struct here - a comparison on one CPU
 * @reading:	the reading
 * @ns:		its time, by the kernel's clock that is safe in any context and never steered
 * @breaks:	number of times that the TSC was found to have stopped, or ahead, so far
 */
struct here {
	struct apic_clock_reading reading;
	u64 ns;
	u64 breaks;
};

/* Compare this CPU's TSC with the counter. */
static void read_here(const struct base *from, struct here *here)
{
	u64 expected, before, after;
	unsigned int i, n, slow = 0;
	u32 raw;

	here->reading = (struct apic_clock_reading) {};
	here->ns = ktime_get_raw_fast_ns();
	/* Correct to less than half a round of the counter. */
	expected = apic_clock_expect(from->scale.ref, here->ns - from->ns, ticks_per_s);
	for (i = 0; i < READS && slow < SLOW_READS; i++) {
		before = rdtsc_ordered();
		raw = apic_clock_reference_read();
		after = rdtsc_ordered();
		apic_clock_reading_add(&here->reading, &from->rate, before,
				       apic_clock_extend(expected, raw, counter->bits), after);
		slow += after - before > slow_read;
		/* Vary the phase within the counter's tick. */
		for (n = 0; n < i; n++)
			rdtsc_ordered();
	}
}

/* Follow this CPU's TSC, with interrupts off. */
static void resync_here(void *data)
{
	struct state *state = this_cpu_ptr(&states);
	struct base from = read_base();
	struct here *here = data;

	lockdep_assert_irqs_disabled();
	read_here(&from, here);
	raw_spin_lock(&state->lock);
	apic_clock_follow_use(&state->follow, &from.scale, &from.runs, &here->reading);
	here->breaks = state->follow.stops + state->follow.ahead;
	raw_spin_unlock(&state->lock);
}

/* Tracepoint of the kernel: this CPU enters or leaves an idle state, interrupts on or off. */
static void idle(void *unused, unsigned int idle_state, unsigned int cpu)
{
	unsigned long flags;
	struct here here;

	if (idle_state != (unsigned int)PWR_EVENT_EXIT || READ_ONCE(asleep))
		return;
	local_irq_save(flags);
	resync_here(&here);
	local_irq_restore(flags);
}

/* From this reading on, give common time the present rate of the TSC. */
static void bend(const struct here *here)
{
	u64 ref = here->reading.ref;
	struct base next = base;

	lockdep_assert_held(&resync_mutex);
	/* Not the time now: the reading may be older than half a round of the counter, 2.3 s. */
	next.ns = here->ns;
	next.scale.common = apic_clock_scale_at(&base.scale, ref);
	next.scale.ref = ref;
	next.rate = fit.rate;
	next.runs = apic_clock_fit_runs(&fit, may_stop);
	next.scale.rate = apic_clock_rate_middle(&fit.rate);
	write_base(&next);
}

/* The TSC's rate by the kernel's frequency, which the kernel may refine. */
static u64 nominal_rate(void)
{
	u64 hz = apic_timer_us_to_tsc(USEC_PER_SEC);

	return mul_u64_u64_div_u64(hz * counter->period_fs, 1ULL << APIC_CLOCK_RATE_SHIFT,
				   FS_PER_S);
}

static void use_for_rate(int cpu, const struct here *here)
{
	/* If the counter loses ticks from time to time, the rate differs each time. */
	static DEFINE_RATELIMIT_STATE(limit, 3600 * HZ, 10);
	u64 was = apic_clock_rate_middle(&fit.rate);

	lockdep_assert_held(&resync_mutex);
	fit.nominal = nominal_rate();
	/* The TSC may have stopped in an idle state since the last reading that was used. */
	if (here->breaks != fit_breaks || cpu != fit_cpu)
		apic_clock_fit_break(&fit);
	fit_breaks = here->breaks;
	fit_cpu = cpu;
	if (!here->reading.reads || (s64)(here->reading.high - here->reading.low) < 0)
		return;
	fit_reads++;
	if (apic_clock_fit_use(&fit, &here->reading, ticks_per_s) && __ratelimit(&limit))
		pr_warn("according to counter %s the TSC's rate has changed: now %+lld ppb off the kernel's frequency, not %+lld ppb\n",
			counter->name, apic_clock_fit_ppb(&fit, apic_clock_rate_middle(&fit.rate)),
			apic_clock_fit_ppb(&fit, was));
	bend(here);
}

static void trace(int cpu)
{
	struct apic_clock_resync resync;
	s64 ppb;

	lockdep_assert_held(&resync_mutex);
	if (!trace_apic_clock_resync_enabled() || apic_clock_get_resync(cpu, &resync))
		return;
	ppb = apic_clock_fit_ppb(&fit, apic_clock_rate_middle(&fit.rate));
	trace_apic_clock_resync(cpu, &resync, ppb);
}

/* Return: whether there is a new kind of fault. */
static bool has_new_fault(void)
{
	const struct apic_clock_follow *follow;
	unsigned int was = faults;
	int cpu;

	lockdep_assert_held(&resync_mutex);
	/* Other CPUs may increment these numbers now; only whether they are 0 matters. */
	for_each_possible_cpu(cpu) {
		follow = &per_cpu(states, cpu).follow;
		faults |= READ_ONCE(follow->stops) || READ_ONCE(follow->ahead) ? FAULT_BREAK : 0;
		faults |= READ_ONCE(follow->proven) ? FAULT_PROVEN : 0;
	}
	faults |= fit.moved ? FAULT_MOVED : 0;
	return faults != was;
}

/**
 * apic_clock_resync_now() - compare the TSCs with the counter
 *
 * Context: Task; interrupts the CPUs.
 * Return: 0; -ENODEV if there is no such counter; -EBUSY while the machine suspends or resumes.
 */
int apic_clock_resync_now(void)
{
	struct here here;
	int cpu, first, ret = 0;
	bool found = false;

	if (!counter)
		return -ENODEV;
	cpus_read_lock();
	mutex_lock(&resync_mutex);
	if (asleep) {
		ret = -EBUSY;
		goto unlock;
	}
	first = cpumask_first(cpu_online_mask);
	for_each_online_cpu(cpu) {
		if (cpu != first && !follow_idle)
			break;
		smp_call_function_single(cpu, resync_here, &here, true);
		if (cpu == first)
			use_for_rate(cpu, &here);
		trace(cpu);
	}
	found = has_new_fault();
unlock:
	mutex_unlock(&resync_mutex);
	cpus_read_unlock();
	if (found)
		judge_soon();
	return ret;
}

/**
 * apic_clock_resync_moved() - account for a write to this CPU's TSC, which is no stop
 * @by:		cycles by which the TSC was set ahead
 *
 * Context: Interrupts off on all CPUs. Not on the CPU whose readings fit the rate.
 */
void apic_clock_resync_moved(s64 by)
{
	struct state *state = this_cpu_ptr(&states);

	lockdep_assert_irqs_disabled();
	raw_spin_lock(&state->lock);
	state->follow.offset -= by;
	raw_spin_unlock(&state->lock);
}

static void resync_work(struct work_struct *unused)
{
	apic_clock_resync_now();
	schedule_delayed_work(&work, msecs_to_jiffies(resync_ms));
}

/* Common time equals the TSC again, on each CPU. */
static void forget(void)
{
	struct state *state;
	unsigned long flags;
	int cpu;

	for_each_possible_cpu(cpu) {
		state = per_cpu_ptr(&states, cpu);
		raw_spin_lock_irqsave(&state->lock, flags);
		state->follow.known = false;
		state->last = 0;
		raw_spin_unlock_irqrestore(&state->lock, flags);
	}
}

/* Begin anew: common time equals the TSC, and the rate is the kernel's frequency. */
static void begin(void)
{
	struct base first = {};

	mutex_lock(&resync_mutex);
	apic_clock_fit_init(&fit, nominal_rate());
	fit_cpu = -1;
	preempt_disable();
	first.ns = ktime_get_raw_fast_ns();
	first.scale.ref = apic_clock_reference_read();
	first.scale.common = rdtsc_ordered();
	first.scale.step = apic_clock_tsc_step();
	preempt_enable();
	first.rate = fit.rate;
	first.runs = apic_clock_fit_runs(&fit, may_stop);
	first.scale.rate = fit.nominal;
	write_base(&first);
	forget();
	mutex_unlock(&resync_mutex);
}

static void set_asleep(bool to)
{
	mutex_lock(&resync_mutex);
	WRITE_ONCE(asleep, to);
	mutex_unlock(&resync_mutex);
}

/*
 * Neither the TSC nor the counter need have counted during a sleep. Between resume and the last of
 * these events CPUs leave idle states, while the old values are wrong.
 */
static int sleeps(struct notifier_block *block, unsigned long event, void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
		set_asleep(true);
		cancel_delayed_work_sync(&work);
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
		/* If the TSC has restarted, common time would stand still until it catches up. */
		if (counter)
			begin();
		else
			forget();
		set_asleep(false);
		if (counter)
			schedule_delayed_work(&work, 0);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block sleep_block = {
	.notifier_call = sleeps,
};

/**
 * apic_clock_get_resync() - get the known stops of a CPU's TSC
 * @cpu:	the CPU
 * @resync:	filled in
 *
 * Context: Any but NMI.
 * Return:
 * * %0 - @resync is filled in
 * * %-EINVAL - no such CPU, or @resync is NULL
 * * %-ENODEV - there is no counter to compare TSCs with
 * * %-ENODATA - this CPU's TSC was not compared yet
 */
int apic_clock_get_resync(int cpu, struct apic_clock_resync *resync)
{
	struct state *state;
	unsigned long flags;
	int ret = 0;

	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu) || !resync)
		return -EINVAL;
	if (!counter)
		return -ENODEV;
	state = per_cpu_ptr(&states, cpu);
	raw_spin_lock_irqsave(&state->lock, flags);
	if (state->follow.known)
		*resync = (struct apic_clock_resync) {
			.offset = state->follow.offset,
			.error = state->follow.error,
			.stops = state->follow.stops,
			.lost = state->follow.lost,
			.longest = state->follow.longest,
			.ahead = state->follow.ahead,
			.rejected = state->follow.rejected,
		};
	else
		ret = -ENODATA;
	raw_spin_unlock_irqrestore(&state->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_get_resync);

/**
 * apic_clock_common_now() - read common time on this CPU
 *
 * Common time continues when this CPU's TSC stops, as far as the stop was noticed: with the
 * parameter follow_idle at the end of each idle state, otherwise every resync_ms. Common time
 * never goes back on a CPU. Without a counter to compare TSCs with, it is the TSC.
 *
 * Context: Any but NMI.
 * Return: cycles.
 */
u64 apic_clock_common_now(void)
{
	struct state *state;
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	state = this_cpu_ptr(&states);
	raw_spin_lock(&state->lock);
	now = rdtsc_ordered();
	if (state->follow.known)
		now += state->follow.offset;
	if ((s64)(now - state->last) < 0)
		now = state->last;
	state->last = now;
	raw_spin_unlock(&state->lock);
	local_irq_restore(flags);
	return now;
}
EXPORT_SYMBOL_GPL(apic_clock_common_now);

/**
 * apic_clock_resync_judge() - add the known rate and stops to a verdict
 * @verdict:	its members about these are set
 *
 * Common time begins anew after a sleep, but earlier faults of a CPU's TSC still count.
 *
 * Context: Task, with the lock that keeps CPUs online.
 */
void apic_clock_resync_judge(struct apic_clock_verdict *verdict)
{
	const struct apic_clock_follow *follow;
	struct state *state;
	unsigned long flags;
	int cpu;

	for_each_online_cpu(cpu) {
		state = per_cpu_ptr(&states, cpu);
		follow = &state->follow;
		raw_spin_lock_irqsave(&state->lock, flags);
		verdict->stops += follow->stops;
		verdict->ahead += follow->ahead;
		verdict->proven += follow->proven;
		raw_spin_unlock_irqrestore(&state->lock, flags);
	}
	mutex_lock(&resync_mutex);
	if (counter && fit.fitted) {
		verdict->rate_known = true;
		verdict->rate_ppb = apic_clock_fit_ppb(&fit, apic_clock_rate_middle(&fit.rate));
		verdict->rate_error_ppb = apic_clock_fit_error_ppb(&fit);
	}
	verdict->rate_moved = fit.moved;
	mutex_unlock(&resync_mutex);
}

/**
 * apic_clock_resync_show() - show the rate, and the stops of all CPUs
 * @file:	debugfs file
 */
void apic_clock_resync_show(struct seq_file *file)
{
	struct apic_clock_resync resync;
	int cpu, ret;

	if (!counter) {
		seq_puts(file, "no counter\n");
		return;
	}
	mutex_lock(&resync_mutex);
	seq_printf(file, "counter %s, %llu ticks a second; compared %llu times\n", counter->name,
		   ticks_per_s, fit_reads);
	seq_printf(file, "rate %+lld ppb of the kernel's frequency, within %llu ppb; moved %u times\n",
		   apic_clock_fit_ppb(&fit, apic_clock_rate_middle(&fit.rate)),
		   apic_clock_fit_error_ppb(&fit), fit.moved);
	mutex_unlock(&resync_mutex);
	for_each_possible_cpu(cpu) {
		ret = apic_clock_get_resync(cpu, &resync);
		if (ret)
			seq_printf(file, "cpu %d: not known (%d)\n", cpu, ret);
		else
			seq_printf(file, "cpu %d: behind by %lld cycles, read within %llu; stops %llu, lost %llu, longest %llu; ahead %llu, rejected %llu\n",
				   cpu, resync.offset, resync.error, resync.stops, resync.lost,
				   resync.longest, resync.ahead, resync.rejected);
	}
}

static int check_parameters(void)
{
	if (resync_ms < RESYNC_MS_MIN || resync_ms > RESYNC_MS_MAX) {
		pr_err("resync_ms=%u is out of range: %u to %u ms\n", resync_ms, RESYNC_MS_MIN,
		       RESYNC_MS_MAX);
		return -EINVAL;
	}
	if (strcmp(reference, "auto") && strcmp(reference, "hpet") &&
	    strcmp(reference, "acpi_pm") && strcmp(reference, "none")) {
		pr_err("reference=%s must be auto, hpet, acpi_pm or none\n", reference);
		return -EINVAL;
	}
	return 0;
}

/**
 * apic_clock_resync_init() - start comparing TSCs, if there is a counter
 * @news:	called from a task when a comparison may change the verdict
 *
 * Return: 0, or an error.
 */
int apic_clock_resync_init(void (*news)(void))
{
	int cpu, ret = check_parameters();
	struct apic_timer_info info;

	if (ret)
		return ret;
	judge_soon = news;
	/* This is filled in even for a CPU that accepts no timers. */
	apic_timer_query(cpumask_first(cpu_online_mask), &info);
	slow_read = apic_timer_ns_to_tsc(SLOW_US * NSEC_PER_USEC);
	may_stop = follow_idle || info.tsc_kind != APIC_TIMER_TSC_NONSTOP;
	for_each_possible_cpu(cpu)
		raw_spin_lock_init(&per_cpu(states, cpu).lock);
	counter = apic_clock_reference_find(reference);
	if (counter) {
		ticks_per_s = div64_u64(FS_PER_S, counter->period_fs);
		begin();
	} else if (strcmp(reference, "none") && strcmp(reference, "auto")) {
		pr_warn("counter %s is not available: TSCs are not compared with any counter\n",
			reference);
	}
	ret = register_pm_notifier(&sleep_block);
	if (ret)
		goto no_notifier;
	if (!counter)
		return 0;
	if (follow_idle) {
		ret = register_trace_cpu_idle(idle, NULL);
		if (ret)
			goto no_probe;
		probing = true;
	}
	schedule_delayed_work(&work, 0);
	return 0;

no_probe:
	unregister_pm_notifier(&sleep_block);
no_notifier:
	if (counter)
		apic_clock_reference_put();
	counter = NULL;
	return ret;
}

/**
 * apic_clock_resync_exit() - stop comparing TSCs
 */
void apic_clock_resync_exit(void)
{
	unregister_pm_notifier(&sleep_block);
	if (!counter)
		return;
	if (probing) {
		unregister_trace_cpu_idle(idle, NULL);
		tracepoint_synchronize_unregister();
	}
	cancel_delayed_work_sync(&work);
	apic_clock_reference_put();
}
