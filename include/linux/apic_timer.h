/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers whose function starts at a chosen TSC value, from the CPU's own
 * local APIC timer.
 *
 * A moment is an absolute TSC value in cycles (unsigned long long), the same
 * unit that rdtsc() returns. Use the helpers below to come from nanoseconds,
 * microseconds or ktime; every one of them saturates instead of wrapping.
 *
 * A TSC value means a moment within its epoch. When the TSC has counted through
 * a sleep of the machine, so do timers: those whose moment has passed run late,
 * once, on waking, and are counted as late or skipped as any other late shot.
 * When it has not (it started anew, or stood still), a new epoch begins, and
 * each pending timer is moved to keep the distance that it had when the machine
 * went to sleep, as a timer of CLOCK_MONOTONIC does. TSC values that are kept
 * elsewhere are for their owners to move: apic_timer_register_notifier().
 *
 * A timer that fires once, and one that fires again and again:
 *
 *	timer.function = handler;		also data, expires: kept by init
 *	init_apic_timer(&timer);
 *	timer.flags = APIC_TIMER_EXACT;		after init, which clears flags
 *	timer.expires = apic_timer_now() + apic_timer_us_to_tsc(100);
 *	ret = add_apic_timer(&timer);
 *
 *	period.start = apic_timer_now() + apic_timer_ns_to_tsc(period_ns);
 *	period.period_ns = period_ns;		n is 0: the first moment is @start
 *	timer.expires = period.start;
 *	ret = add_apic_timer(&timer);
 *
 *	and at the end of its handler:
 *	missed += apic_timer_forward_period(&timer, &period, now) - 1;
 *	add_apic_timer(&timer);
 *
 * Before the memory of a timer or the code of its handler goes away, delete it
 * by del_apic_timer_sync(), or by apic_timer_shutdown_sync() where others may
 * arm it. samples/ of the sources has modules that do all this.
 *
 * A mistake of the caller (a NULL pointer, a timer that isn't initialised, ...)
 * is refused: with the error below, counted in debugfs, and with one line in the
 * kernel log for each kind of mistake. It never is a WARN().
 */
#ifndef _LINUX_APIC_TIMER_H
#define _LINUX_APIC_TIMER_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/notifier.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/*
 * The number of this interface. It changes with whatever a module that was
 * built before would get wrong: the layout of a structure, what an argument or
 * a flag means.
 */
#define APIC_TIMER_API		1
/* Of a timer, which is part of the user's own structures. */
#define APIC_TIMER_SIZE		96	/* bytes */

/*
 * Each file that includes this header refers to a symbol that has both numbers
 * in its name, and apic_timer.ko exports the one of its own. So a module built
 * for another interface is not loaded, also by a kernel without
 * CONFIG_MODVERSIONS, and the kernel log tells what it is to be rebuilt for:
 * "hello: Unknown symbol built_for_apic_timer_api_1_size_96 (err -2)".
 */
#define apic_timer_api							\
	__PASTE(__PASTE(built_for_apic_timer_api_, APIC_TIMER_API),	\
		__PASTE(_size_, APIC_TIMER_SIZE))

extern const u32 apic_timer_api;

/* Not for who only wants to know what a timer looks like, as a live patch does. */
#ifndef APIC_TIMER_DECLARATIONS_ONLY
static const u32 *const apic_timer_api_wanted __used __initconst = &apic_timer_api;
#endif

/* Per-timer flags, for &struct apic_timer_list.flags. */

/* How exactly the moment is met; 0 means the module's default mode. */
#define APIC_TIMER_RAW		0x0001U	/* armed at @expires, no correction */
#define APIC_TIMER_MEAN		0x0002U	/* armed early by the mean error, by 100 us at most */
#define APIC_TIMER_EXACT	0x0003U	/* armed early, finished on the TSC */
#define APIC_TIMER_MODE_MASK	0x0003U
/* A shot that is already late is counted and skipped, not run. */
#define APIC_TIMER_SKIP_LATE	0x0004U

#define APIC_TIMER_FLAGS	(APIC_TIMER_MODE_MASK | APIC_TIMER_SKIP_LATE)

/* What &struct apic_timer_list.state holds; private to the module. */
#define APIC_TIMER_STATE_NEW	0x41500001U

/**
 * struct apic_timer_list - a timer
 * @next:	private: the next timer in a list of the same CPU
 * @prev:	private: the timer before it there
 * @expires:	moment at which @function starts, absolute TSC in cycles. Set it
 *		before add_apic_timer(); on a pending timer only
 *		mod_apic_timer() may change it, and a new epoch of the TSC.
 * @data:	passed to @function; private to the handler
 * @function:	the handler, see below
 * @flags:	APIC_TIMER_* bits, 0 by default. Set them after init_apic_timer()
 *		and while the timer isn't pending.
 * @spin_budget: most TSC cycles that one shot of this timer may wait on the
 *		TSC; 0 means the module's default. Only for %APIC_TIMER_EXACT.
 *		To be set when @flags are.
 *
 * The handler is called in hard interrupt context, with interrupts off, on the
 * timer's CPU, and with no lock of this module held. @now is the TSC at its first
 * instruction: the last one read, plus what the call takes at least. The timer is
 * not pending then. The handler may add, modify, delete or free it and any other
 * timer. It must not sleep nor enable interrupts, and must leave the preempt
 * count as it was; on PREEMPT_RT, too, it may take raw spinlocks only. Handlers
 * that have a CPU for themselves for longer than the parameter busy_us are held
 * back.
 *
 * With the source "hook" (a patched kernel, see &apic_timer_info.source) it is
 * called before irq_enter_rcu() and before the interrupt is acknowledged, to be
 * in time. What the kernel does on entry to an interrupt has not been done: on
 * an idle CPU, jiffies may be as old as the CPU has been idle, and so may be
 * what is reckoned from them, such as mod_timer(jiffies + 1). The kernel's
 * clock, ktime_get() and its like, is right everywhere. Code that is to run with
 * any source doesn't use jiffies, and leaves to an irq_work whatever needs the
 * kernel to be up to date.
 *
 * Initialise with init_apic_timer() or DEFINE_APIC_TIMER(). The first five
 * members are those of the 2001 interface, in its order.
 */
struct apic_timer_list {
	struct apic_timer_list *next, *prev;
	unsigned long long expires;
	unsigned long data;
	void (*function)(unsigned long long now, unsigned long data);

	unsigned int flags;
	unsigned int spin_budget;

	/* private: */
	unsigned int state;		/* base->lock; read without it */
	unsigned int cpu;		/* whose base->lock covers the timer */
	unsigned int prev_cpu;		/* of its latest run */
	unsigned int prev_run;		/* which run of prev_cpu's that is */
	unsigned int group;		/* base->lock; place in the queue */
	struct rb_node node;		/* base->lock */
};

static_assert(sizeof(struct apic_timer_list) == APIC_TIMER_SIZE);

/**
 * APIC_TIMER_INITIALIZER - static initialiser of a timer
 * @_function:	handler, see &struct apic_timer_list
 * @_data:	passed to the handler
 */
#define APIC_TIMER_INITIALIZER(_function, _data) {	\
		.function = (_function),		\
		.data = (_data),			\
		.state = APIC_TIMER_STATE_NEW,		\
	}

/**
 * DEFINE_APIC_TIMER - define a timer that needs no init_apic_timer()
 * @_name:	name of the variable
 * @_function:	handler, see &struct apic_timer_list
 * @_data:	passed to the handler
 *
 * It belongs to CPU 0 until it is armed: on another, the first add takes CPU 0's
 * lock too.
 */
#define DEFINE_APIC_TIMER(_name, _function, _data)	\
	struct apic_timer_list _name =			\
		APIC_TIMER_INITIALIZER(_function, _data)

/*
 * In short; module/core/timers/timer.c has the whole of it. All are for any context but NMI,
 * handlers too, which get -EPERM there; apic_timer_pending() is for NMI as well.
 * -EINVAL everywhere: the timer is NULL, or was never initialised.
 */

/* Before the first use; not while it is pending. Clears flags and spin_budget. */
void init_apic_timer(struct apic_timer_list *timer);

/*
 * Arm for @timer->expires, on this CPU or on @cpu; at once when that is past.
 * 0; -EBUSY: pending already; -ENODEV: the CPU takes no timers (it is offline or
 * going there), or the timer's module is being unloaded; -ESHUTDOWN: see
 * apic_timer_shutdown_sync(); -EINVAL, also: no function, unknown flags, a spin
 * budget in a mode that doesn't spin, no such CPU.
 */
int add_apic_timer(struct apic_timer_list *timer);
int add_apic_timer_on(struct apic_timer_list *timer, int cpu);

/*
 * Arm for @expires, pending or not, on the CPU where the timer was last. 1 when
 * it was pending, 0 when not; otherwise as add_apic_timer(), and for -ENODEV the
 * timer isn't pending any more.
 */
int mod_apic_timer(struct apic_timer_list *timer, unsigned long long expires);

/*
 * 1: it was pending, that shot won't run; 0: it wasn't; -EBUSY: it wasn't, and
 * its handler is running; -ENOENT: it never was armed. Waits for nothing.
 */
int del_apic_timer(struct apic_timer_list *timer);

/*
 * The same, and the handler is not running on return, so that never is -EBUSY.
 * The caller holds no lock that the handler takes. -EDEADLK: called from this
 * timer's handler, which can't be waited for.
 */
int del_apic_timer_sync(struct apic_timer_list *timer);

/*
 * The same, and for good: who tries to arm it from now on gets -ESHUTDOWN, until
 * it is initialised again. 0 also for a timer that never was armed.
 */
int apic_timer_shutdown_sync(struct apic_timer_list *timer);

/* Armed and not expired yet; may be outdated unless others are kept away. */
bool apic_timer_pending(const struct apic_timer_list *timer);

/*
 * Move @timer->expires on by whole periods (TSC cycles), to the first moment
 * after @now. Returns how many: 1 in time, more after an overrun, 0 when it is
 * still ahead. The timer is not pending: otherwise 0, and nothing is changed.
 */
u64 apic_timer_forward(struct apic_timer_list *timer, u64 now, u64 period);

/**
 * struct apic_timer_period - the moments start + n * period of a periodic timer
 * @start:	moment 0, absolute TSC in cycles
 * @period_ns:	period in nanoseconds, not 0
 * @n:		number of the present moment
 *
 * Moment n is computed from @start each time, so that rounding nanoseconds to
 * TSC cycles never adds up. To begin, set @start and @period_ns, leave @n 0, and
 * arm the timer for @start.
 */
struct apic_timer_period {
	u64 start;
	u64 period_ns;
	u64 n;
};

/* As apic_timer_forward(): sets @timer->expires to moment @period->n, moved on. */
u64 apic_timer_forward_period(struct apic_timer_list *timer,
			      struct apic_timer_period *period, u64 now);

/*
 * Any context, but for those with ktime: any but NMI. Distances are rounded down,
 * and what doesn't fit is U64_MAX or KTIME_MAX: never. ktime is CLOCK_MONOTONIC,
 * which is steered and the TSC is not: convert again when the moment comes near.
 */
u64 apic_timer_now(void);
u64 apic_timer_ns_to_tsc(u64 ns);
u64 apic_timer_us_to_tsc(u64 us);
u64 apic_timer_tsc_to_ns(u64 cycles);
u64 apic_timer_ktime_to_tsc(ktime_t time);
ktime_t apic_timer_tsc_to_ktime(u64 tsc);
u64 apic_timer_add_tsc(u64 tsc, u64 cycles);

/**
 * enum apic_timer_hardware - what the shots of a CPU are programmed into
 * @APIC_TIMER_HW_NONE:		nothing: the CPU takes no timers
 * @APIC_TIMER_HW_TSC_DEADLINE:	the LAPIC timer's TSC-deadline MSR
 * @APIC_TIMER_HW_ONESHOT:	the LAPIC timer's one-shot counter
 * @APIC_TIMER_HW_HRTIMER:	a kernel hrtimer (source "hrtimer")
 * @APIC_TIMER_HW_SIMULATED:	a simulated LAPIC timer (tests)
 */
enum apic_timer_hardware {
	APIC_TIMER_HW_NONE,
	APIC_TIMER_HW_TSC_DEADLINE,
	APIC_TIMER_HW_ONESHOT,
	APIC_TIMER_HW_HRTIMER,
	APIC_TIMER_HW_SIMULATED,
};

/**
 * enum apic_timer_tsc_kind - what the CPU promises about its TSC
 * @APIC_TIMER_TSC_PLAIN:	nothing: its rate may change with the CPU's
 * @APIC_TIMER_TSC_CONSTANT:	fixed rate, may stop in deep idle states
 * @APIC_TIMER_TSC_NONSTOP:	fixed rate, never stops
 */
enum apic_timer_tsc_kind {
	APIC_TIMER_TSC_PLAIN,
	APIC_TIMER_TSC_CONSTANT,
	APIC_TIMER_TSC_NONSTOP,
};

/**
 * struct apic_timer_info - what serves the timers of a CPU
 * @source:	name of the source: "hook", "proxy" or "hrtimer"
 * @hardware:	what a shot is programmed into
 * @x2apic:	the LAPIC is in x2APIC mode (MSR), otherwise xAPIC (MMIO)
 * @exclusive:	the kernel has no use for it: booted with nolapic_timer
 * @tsc_kind:	what the CPU promises about its TSC
 * @tsc_stable:	the kernel has found no fault with the TSC so far
 * @tsc_epoch:	TSC values taken while this was another number mean nothing
 *		now; 0 when apic_timer was loaded
 * @tsc_khz:	TSC frequency in kHz
 * @modes:	bit 1 << APIC_TIMER_RAW, _MEAN, _EXACT for each mode on offer
 */
struct apic_timer_info {
	const char *source;
	enum apic_timer_hardware hardware;
	bool x2apic;
	bool exclusive;
	enum apic_timer_tsc_kind tsc_kind;
	bool tsc_stable;
	unsigned int tsc_epoch;
	unsigned int tsc_khz;
	unsigned int modes;
};

/*
 * Any context. 0; -EINVAL: no such CPU, or @info is NULL; -ENODEV: it is offline
 * or takes no timers, and @info has what is known all the same.
 */
int apic_timer_query(int cpu, struct apic_timer_info *info);

/**
 * enum apic_timer_event - what a notifier is told, its second argument
 * @APIC_TIMER_TSC_UNSTABLE: the kernel has found a fault with the TSC: its rate,
 *	or CPUs out of step. Deadlines go on to be TSC values, but one taken on
 *	one CPU may be off on another. Told once, a second or so later; ask
 *	&apic_timer_info.tsc_stable for what was before.
 * @APIC_TIMER_TSC_EPOCH: a new epoch has begun, and pending timers were moved by
 *	&apic_timer_notice.shift
 */
enum apic_timer_event {
	APIC_TIMER_TSC_UNSTABLE,
	APIC_TIMER_TSC_EPOCH,
};

/**
 * struct apic_timer_notice - what a notifier is told, its third argument
 * @epoch:	the present epoch, see &apic_timer_info.tsc_epoch
 * @shift:	TSC now less TSC when the last epoch ended, in cycles: a value of
 *		then plus this keeps its distance. 0 if it goes on.
 */
struct apic_timer_notice {
	unsigned int epoch;
	s64 shift;
};

/*
 * @block->notifier_call gets an &enum apic_timer_event and a &struct
 * apic_timer_notice, valid during the call. It must not sleep, and for
 * %APIC_TIMER_TSC_EPOCH it runs with interrupts off while the machine wakes and
 * no other CPU runs: it may use timers, but not wait for another CPU.
 *
 * Both are for task context. 0; -EEXIST: registered already; -EINVAL: NULL, or
 * nothing to call. Once unregistered, no call is under way; -ENOENT: it wasn't.
 */
int apic_timer_register_notifier(struct notifier_block *block);
int apic_timer_unregister_notifier(struct notifier_block *block);

#endif /* _LINUX_APIC_TIMER_H */
