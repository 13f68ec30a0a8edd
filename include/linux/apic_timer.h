/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers whose function starts at a chosen TSC value, from the CPU's own
 * local APIC timer.
 *
 * A moment is an absolute TSC value in cycles (unsigned long long), the same
 * unit that rdtsc() returns. The helpers below convert from nanoseconds,
 * microseconds and ktime; all of them saturate instead of wrapping.
 *
 * A TSC value denotes a moment within its epoch. If the TSC has counted through
 * a sleep of the machine, timers whose moment has passed run late, once, on
 * waking, and are counted like any other late expiry. If the TSC restarted or
 * stopped, a new epoch begins: each pending timer is moved so that it keeps the
 * distance that it had when the machine went to sleep, as timers of
 * CLOCK_MONOTONIC do. A module that keeps TSC values of its own has to move
 * them itself, see apic_timer_register_notifier().
 *
 * A one-shot timer and a periodic one:
 *
 *	timer.function = handler;		also data, expires: kept by init
 *	init_apic_timer(&timer);
 *	timer.flags = APIC_TIMER_EXACT;		after init, which clears flags
 *	timer.expires = apic_timer_now() + apic_timer_us_to_tsc(100);
 *	ret = add_apic_timer(&timer);
 *
 *	period.start = apic_timer_now() + apic_timer_ns_to_tsc(period_ns);
 *	period.period_ns = period_ns;		n is 0: the first moment is start
 *	timer.expires = period.start;
 *	ret = add_apic_timer(&timer);
 *
 *	and at the end of its handler:
 *	now = max(now, timer.expires);		it may be early in mode mean
 *	n = apic_timer_forward_period(&timer, &period, now);
 *	missed += n ? n - 1 : 0;		0: a sleep has restarted the TSC; the
 *						series waits for the old moment, unless a
 *						notifier has moved period.start: see
 *						%APIC_TIMER_TSC_EPOCH
 *	add_apic_timer(&timer);
 *
 * Before the memory of a timer or the code of its handler goes away, delete the
 * timer with del_apic_timer_sync(), or with apic_timer_shutdown_sync() where
 * other code may arm it. samples/ in the sources has modules that do all this.
 *
 * Misuse (a NULL pointer, a timer that is not initialised, ...) is refused with
 * the error given below, counted in debugfs, and logged once per kind of
 * mistake. It never triggers a WARN(). apic_timer_query() and the conversions
 * only return the error if there is no such CPU or clock.
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
 * Number of this interface. It changes whenever a module built for the previous
 * one would misbehave: with the layout of a structure, or the meaning of an
 * argument or of a flag.
 */
#define APIC_TIMER_API		1
/* Size of a timer, which is embedded in structures of the caller. */
#define APIC_TIMER_SIZE		96	/* bytes */

/*
 * Each file that includes this header refers to a symbol that has both numbers
 * in its name; apic_timer.ko exports the symbol that has its own numbers. A
 * module that was built for another interface is therefore not loaded, not even
 * by a kernel without CONFIG_MODVERSIONS, and the kernel log says what it was
 * built for:
 * "hello: Unknown symbol built_for_apic_timer_api_1_size_96 (err -2)".
 */
#define apic_timer_api							\
	__PASTE(__PASTE(built_for_apic_timer_api_, APIC_TIMER_API),	\
		__PASTE(_size_, APIC_TIMER_SIZE))

extern const u32 apic_timer_api;

/* Defined by code that needs the declarations only, such as a live patch. */
#ifndef APIC_TIMER_DECLARATIONS_ONLY
static const u32 *const apic_timer_api_wanted __used __initconst = &apic_timer_api;
#endif

/* Per-timer flags, for &struct apic_timer_list.flags. */

/* Accuracy mode; 0 means the module's default. */
#define APIC_TIMER_RAW		0x0001U	/* fires at @expires, no correction */
#define APIC_TIMER_MEAN		0x0002U	/* fires early by the mean latency, at most 100 us */
#define APIC_TIMER_EXACT	0x0003U	/* fires early, then spins on the TSC; never early */
#define APIC_TIMER_MODE_MASK	0x0003U
/*
 * Do not call the handler if it would start later than the parameter late_ns. The timer
 * is not pending then: a handler that arms its timer again ends its series that way.
 */
#define APIC_TIMER_SKIP_LATE	0x0004U

/*
 * Quantile of the latency that the lead of mode exact covers, instead of the
 * parameter lead_quantile: 90, 99 or 99.9 %. A lower one spins less; expiries
 * with a higher latency are late. Needs a @spin_budget, which limits the lead
 * as usual.
 */
#define APIC_TIMER_COVER_90	0x0008U
#define APIC_TIMER_COVER_99	0x0010U
#define APIC_TIMER_COVER_999	0x0018U
#define APIC_TIMER_COVER_MASK	0x0018U

/*
 * Protect a timer of mode raw or mean as mode exact protects its timers: from the
 * kernel's events (parameter defer_ns) and from deep idle states (latency_qos). For a
 * handler that spins until a moment of its own, and has learnt how much earlier its timer
 * has to expire.
 */
#define APIC_TIMER_UNDISTURBED	0x0020U

#define APIC_TIMER_FLAGS	(APIC_TIMER_MODE_MASK | APIC_TIMER_SKIP_LATE | \
				 APIC_TIMER_COVER_MASK | APIC_TIMER_UNDISTURBED)

/* Initial &struct apic_timer_list.state; private to the module. */
#define APIC_TIMER_STATE_NEW	0x41500001U
/* Initial cpu of a static timer: no CPU has used it so far; private to the module. */
#define APIC_TIMER_CPU_NONE	0xfffeU

/**
 * struct apic_timer_list - a timer
 * @next:	private: the next timer in a list of the same CPU
 * @prev:	private: the timer before it there
 * @expires:	moment at which @function starts, absolute TSC in cycles. Set it
 *		before add_apic_timer(). While the timer is pending, only
 *		mod_apic_timer() and a new epoch of the TSC change it.
 * @data:	passed to @function; private to the handler
 * @function:	the handler, see below. Set it and @data while the timer is not
 *		pending.
 * @flags:	APIC_TIMER_* bits, 0 by default. Set them after init_apic_timer()
 *		and while the timer is not pending.
 * @spin_budget: maximum number of TSC cycles that one expiry of this timer may
 *		spin on the TSC; 0 means the module's default. Only for
 *		%APIC_TIMER_EXACT. Set it under the same conditions as @flags.
 *
 * The handler is called in hard interrupt context, with interrupts off, on the
 * timer's CPU, and with no lock of this module held. @now is the last TSC value
 * read before the call, plus the duration of the call where that is certain, in
 * an emulator. Elsewhere the handler's first instruction is some tens of cycles
 * later; "make spin" measures how many. The timer is no longer pending. The
 * handler may add, modify, delete or free it and any other timer. It must not
 * sleep or enable interrupts, and must leave the preempt count as it was. It may
 * take raw spinlocks only, as it runs in hard interrupt context on PREEMPT_RT as
 * well. Handlers that keep a CPU busy for longer than the parameter busy_us
 * without a break are throttled.
 *
 * With the source "hook" (a patched kernel, see &apic_timer_info.source) the
 * handler is called before irq_enter_rcu() and before the interrupt is
 * acknowledged. The kernel has not done its work on interrupt entry yet: on an
 * idle CPU, jiffies may be as old as the idle period, and anything computed from
 * them, such as mod_timer(jiffies + 1), is off by as much. The kernel's clocks,
 * ktime_get() and the like, are right everywhere. Code that has to work with any
 * source does not use jiffies in a handler, and defers work that needs up-to-date
 * jiffies to an irq_work.
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
	unsigned long long key;		/* base->lock; @expires as added: sorts the queue */
	unsigned int state;		/* base->lock; read without it */
	unsigned short cpu;		/* CPU whose base->lock covers the timer */
	short group;			/* base->lock; place in the queue */
	unsigned int prev_cpu;		/* of its latest run */
	unsigned int prev_run;		/* number of that run on prev_cpu */
	struct rb_node node;		/* base->lock */
};

static_assert(sizeof(struct apic_timer_list) == APIC_TIMER_SIZE);

/**
 * APIC_TIMER_INITIALIZER - initialise a timer statically
 * @_function:	handler, see &struct apic_timer_list
 * @_data:	passed to the handler
 */
#define APIC_TIMER_INITIALIZER(_function, _data) {	\
		.function = (_function),		\
		.data = (_data),			\
		.state = APIC_TIMER_STATE_NEW,		\
		.cpu = APIC_TIMER_CPU_NONE,		\
	}

/**
 * DEFINE_APIC_TIMER - define a timer that needs no init_apic_timer()
 * @_name:	name of the variable
 * @_function:	handler, see &struct apic_timer_list
 * @_data:	passed to the handler
 */
#define DEFINE_APIC_TIMER(_name, _function, _data)	\
	struct apic_timer_list _name =			\
		APIC_TIMER_INITIALIZER(_function, _data)

/*
 * Context, unless stated otherwise: any but NMI, handlers included. In NMI,
 * functions that return an error return -EPERM; apic_timer_pending() and
 * apic_timer_forward() may be called there. -EINVAL from any of them means that
 * the timer is NULL or was never initialised.
 */

/*
 * Initialise a timer before its first use; not while it is pending, nor while its
 * handler may be running. Keeps @expires, @data and @function; clears @flags and
 * @spin_budget.
 */
void init_apic_timer(struct apic_timer_list *timer);

/*
 * Arm a timer for @timer->expires, on this CPU or on @cpu. If that moment has
 * passed, the timer runs at once. When its CPU goes offline, a timer migrates to
 * another CPU, keeps its expiry, and stays there. Return:
 *   0		armed
 *   -EBUSY	it is pending already
 *   -ENODEV	the CPU does not accept timers (offline, going offline, or its
 *		hardware timer could not be taken), or the timer's module is being
 *		unloaded
 *   -ESHUTDOWN	see apic_timer_shutdown_sync()
 *   -EINVAL	also: no function, unknown flags, a spin budget in a mode that
 *		does not spin, APIC_TIMER_COVER_* without a spin budget, no such
 *		CPU
 */
int add_apic_timer(struct apic_timer_list *timer);
int add_apic_timer_on(struct apic_timer_list *timer, int cpu);

/*
 * Arm a timer for @expires, whether pending or not, on the CPU that it was last
 * armed on; on this CPU if that one is offline or the timer was never armed.
 * Return:
 *   1		it was pending
 *   0		it was not pending
 *   otherwise	as add_apic_timer(); after -ENODEV the timer is not pending
 */
int mod_apic_timer(struct apic_timer_list *timer, unsigned long long expires);

/*
 * Delete a timer without waiting for its handler. Return:
 *   1		it was pending, and will not run
 *   0		it was not pending
 *   -EBUSY	it was not pending, and its handler is running
 *   -ENOENT	it was never armed
 */
int del_apic_timer(struct apic_timer_list *timer);

/*
 * Delete a timer and wait until its handler has returned on every CPU. The caller
 * must not hold a lock that the handler takes. Return: as del_apic_timer(), but
 * never -EBUSY, and
 *   -EDEADLK	called from the handler of this timer, which cannot wait for
 *		itself; the timer is not pending
 */
int del_apic_timer_sync(struct apic_timer_list *timer);

/*
 * Delete a timer as del_apic_timer_sync() does, and keep it from being armed
 * again: arming fails with -ESHUTDOWN until the timer is initialised again.
 * Also returns 0 for a timer that was never armed.
 */
int apic_timer_shutdown_sync(struct apic_timer_list *timer);

/*
 * Check whether a timer is armed and has not expired yet. The answer may be
 * outdated at once unless the caller keeps other code away from the timer. It
 * stays true while the timer migrates from a CPU that goes offline.
 */
bool apic_timer_pending(const struct apic_timer_list *timer);

/*
 * Advance @timer->expires by whole periods (TSC cycles) to the first moment after
 * @now. Returns the number of periods: 1 if the caller is in time, more after an
 * overrun, 0 if @expires is still ahead. A handler of mode mean may start before
 * @expires; if it passes max(now, @expires) as @now, it does not run twice for the
 * same moment. Refused for a pending timer and for a period of 0: returns 0 and
 * changes nothing.
 */
u64 apic_timer_forward(struct apic_timer_list *timer, u64 now, u64 period);

/**
 * struct apic_timer_period - the moments start + n * period of a periodic timer
 * @start:	moment 0, absolute TSC in cycles. After a sleep in which the TSC
 *		restarted, it may lie before the TSC's zero: read as an s64, it is
 *		then negative
 * @period_ns:	period in nanoseconds, not 0
 * @n:		number of the present moment
 *
 * Moment n is always computed from @start, so that errors from rounding
 * nanoseconds to TSC cycles do not accumulate. To begin, set @start and
 * @period_ns, leave @n 0, and arm the timer for @start.
 */
struct apic_timer_period {
	u64 start;
	u64 period_ns;
	u64 n;
};

/*
 * Same as apic_timer_forward(), for moment @period->n: advances both @period->n and
 * @expires.
 */
u64 apic_timer_forward_period(struct apic_timer_list *timer,
			      struct apic_timer_period *period, u64 now);

/*
 * Clocks and conversions. Context: any, NMI included except for the functions
 * that take or return a ktime. Distances are rounded down. A result that does
 * not fit is U64_MAX or KTIME_MAX, which means never.
 *
 * The kernel's clocks (CLOCK_MONOTONIC, which is ktime, CLOCK_MONOTONIC_RAW,
 * CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_TAI) are converted with the parameters by
 * which the kernel computes them from the TSC. Where the TSC is the kernel's
 * clocksource, the result is exact: the first TSC value at which the clock reads
 * the moment. Elsewhere *@error receives the maximum error of the result in cycles.
 * NTP steers the clocks, and administrators set them: convert again shortly before
 * the moment, or use <linux/apic_clock.h>.
 */
u64 apic_timer_now(void);
u64 apic_timer_ns_to_tsc(u64 ns);
u64 apic_timer_us_to_tsc(u64 us);
u64 apic_timer_tsc_to_ns(u64 cycles);
u64 apic_timer_ktime_to_tsc(ktime_t time);
ktime_t apic_timer_tsc_to_ktime(u64 tsc);
u64 apic_timer_clock_to_tsc(clockid_t clock, ktime_t when, u64 *error);
ktime_t apic_timer_tsc_to_clock(clockid_t clock, u64 tsc);
int apic_timer_clock_now(clockid_t clock, ktime_t *earliest, ktime_t *latest);
u64 apic_timer_add_tsc(u64 tsc, u64 cycles);

/*
 * Keep the kernel's own events, such as its tick, away from this CPU until the
 * moment @until (absolute TSC): those due within the parameter defer_ns before
 * @until are deferred to it, each of them once only. For code that runs at a
 * chosen moment outside a handler, such as a thread that a handler wakes; call it
 * in that handler, with @until shortly after the moment. Return:
 *   0		the fence stands, or @until has passed
 *   -ERANGE	@until is further ahead than twice defer_ns, and than 200 us
 *   -EOPNOTSUPP apic_timer does not deliver the kernel's events here, or
 *		defer_ns is 0
 *   -ENODEV	this CPU does not accept timers
 */
int apic_timer_fence(u64 until);

/*
 * Get the level of this CPU's throttle, that is, for how long handlers have kept it
 * busy without a break: 0 not for long, 1 for a quarter of the parameter busy_us or
 * more, 2 for half of it or more. After the whole of busy_us, no handler runs for at least
 * as long. A handler that spins until a moment of its own should spin no longer than usual
 * at level 1, and leave its work to softirq or a thread at level 2. Call it in a
 * handler, or with interrupts off.
 */
unsigned int apic_timer_busy(void);

/*
 * Get how much earlier than the moment code that waits itself may end its wait, because it
 * then calls a function: @least, if every call took that long, and always will, otherwise
 * 0. Measure many calls in the same place, with interrupts off: @least and @most, TSC
 * cycles. Task context or a handler.
 */
u64 apic_timer_certain_cost(u64 least, u64 most);

/**
 * enum apic_timer_hardware - hardware that the timers of a CPU are programmed into
 * @APIC_TIMER_HW_NONE:		none: the CPU does not accept timers
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
 * enum apic_timer_tsc_kind - what the CPU guarantees about its TSC
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
 * struct apic_timer_info - source and hardware of the timers of a CPU
 * @source:	name of the source: "hook", "proxy" or "hrtimer"
 * @hardware:	what an expiry is programmed into
 * @x2apic:	the LAPIC is in x2APIC mode (MSR), otherwise xAPIC (MMIO)
 * @exclusive:	the kernel was booted with nolapic_timer, and does not use the
 *		LAPIC timer
 * @tsc_kind:	what the CPU guarantees about its TSC
 * @tsc_stable:	the kernel has not marked the TSC unstable
 * @tsc_epoch:	number of the present epoch, 0 when apic_timer is loaded. TSC
 *		values of another epoch mean nothing now.
 * @tsc_khz:	TSC frequency in kHz
 * @modes:	bit 1 << APIC_TIMER_RAW, _MEAN, _EXACT for each mode available
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
 * Describe the timers of a CPU. Any context, NMI included. Return:
 *   0		@info is filled in
 *   -EINVAL	no such CPU, or @info is NULL
 *   -ENODEV	the CPU is offline or does not accept timers; @info is filled in
 *		as far as known
 */
int apic_timer_query(int cpu, struct apic_timer_info *info);

/**
 * enum apic_timer_event - second argument of a notifier: what has happened
 * @APIC_TIMER_TSC_UNSTABLE: the kernel has marked the TSC unstable: its rate is
 *	off, or CPUs are out of step. Deadlines are still TSC values, but a value
 *	taken on one CPU may be off on another. Notified once, about a second
 *	later, or when the CPU that checks wakes; &apic_timer_info.tsc_stable
 *	says at once, also whether it happened before the notifier was
 *	registered.
 * @APIC_TIMER_TSC_EPOCH: a new epoch has begun, and pending timers were moved by
 *	&apic_timer_notice.shift
 */
enum apic_timer_event {
	APIC_TIMER_TSC_UNSTABLE,
	APIC_TIMER_TSC_EPOCH,
};

/**
 * struct apic_timer_notice - third argument of a notifier
 * @epoch:	the present epoch, see &apic_timer_info.tsc_epoch
 * @shift:	cycles to add to a TSC value of the previous epoch so that it keeps
 *		its distance: TSC now less TSC when that epoch ended. 0 if the
 *		epoch goes on.
 */
struct apic_timer_notice {
	unsigned int epoch;
	s64 shift;
};

/*
 * Register and unregister a notifier; task context. @block->notifier_call
 * receives an &enum apic_timer_event and a &struct apic_timer_notice, which is
 * valid during the call. It must not sleep. For %APIC_TIMER_TSC_EPOCH it runs with
 * interrupts off while the machine wakes and no other CPU runs: it may use timers,
 * but not wait for another CPU. When unregistering returns, no call is running.
 * Return:
 *   0		done
 *   -EEXIST	it is registered already
 *   -ENOENT	it is not registered
 *   -EINVAL	@block is NULL, or has no function to call
 */
int apic_timer_register_notifier(struct notifier_block *block);
int apic_timer_unregister_notifier(struct notifier_block *block);

struct cpumask;

/*
 * Call @move on each of @cpus to write to its TSC or its TSC_ADJUST, with interrupts
 * off on all CPUs; task context. TSC values that were read on these CPUs before are
 * invalid afterwards. Return:
 *   0		done
 *   -EBUSY	timers are pending on one of @cpus: nothing was done
 *   -ENODEV	one of @cpus is offline: nothing was done
 *   -EOPNOTSUPP without high resolution timers the kernel's own events would be late
 *   -EINVAL	@move is NULL, or there are no CPUs
 */
int apic_timer_move_tsc(const struct cpumask *cpus, void (*move)(void));

#endif /* _LINUX_APIC_TIMER_H */
