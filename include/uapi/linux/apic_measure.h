/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/apic_measure: instruments of the program apic-timer, private to it.
 *
 * One process at a time may have the device open. Each ioctl() measures on the
 * CPU of the caller, which must bind itself to one, and returns when it is done
 * or a signal arrives. It runs no code of the caller; the measurements are built
 * in. A structure that changes must change its size and hence its command
 * number, so that a program of another version gets -ENOTTY.
 */
#ifndef _UAPI_LINUX_APIC_MEASURE_H
#define _UAPI_LINUX_APIC_MEASURE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define APIC_MEASURE_IOC	0xD8

#define APIC_MEASURE_LOOP	_IOWR(APIC_MEASURE_IOC, 1, struct apic_measure_loop)
#define APIC_MEASURE_PERIODIC	_IOWR(APIC_MEASURE_IOC, 2, struct apic_measure_periodic)
#define APIC_MEASURE_CHAIN	_IOW(APIC_MEASURE_IOC, 3, struct apic_measure_chain)
#define APIC_MEASURE_PORT	_IOWR(APIC_MEASURE_IOC, 4, struct apic_measure_port)
#define APIC_MEASURE_COST	_IOW(APIC_MEASURE_IOC, 5, struct apic_measure_cost)

/* State of the caches before each shot. */
enum apic_measure_cache {
	APIC_MEASURE_WARM,	/* as they are */
	APIC_MEASURE_WALK,	/* walk_kib KiB of other memory have been read */
	APIC_MEASURE_FLUSH,	/* the instrument's own code and data have been flushed */
	APIC_MEASURE_CACHES,
};

/* How the TSC is compared with a target. */
enum apic_measure_way {
	APIC_MEASURE_RDTSC,	/* RDTSC, in one cache line */
	APIC_MEASURE_ACROSS,	/* RDTSC, across two lines */
	APIC_MEASURE_RDTSCP,
	APIC_MEASURE_RDMSR,	/* of IA32_TIME_STAMP_COUNTER */
	APIC_MEASURE_LFENCE,	/* LFENCE; RDTSC */
	APIC_MEASURE_PAUSE,	/* PAUSE; RDTSC */
	APIC_MEASURE_COUNTED,	/* RDTSC, then a counted loop for the last part */
	APIC_MEASURE_TABLE,	/* RDTSC, after a delay of the target modulo a turn */
	APIC_MEASURE_WAYS,
};

#define APIC_MEASURE_STEP_MAX	128

/**
 * struct apic_measure_loop - wait for a TSC value, many times
 * @way:	&enum apic_measure_way
 * @cache:	&enum apic_measure_cache
 * @walk_kib:	for %APIC_MEASURE_WALK
 * @count:	number of shots
 * @least:	TSC cycles from the start of shot 0 to its target; of shot i, it is
 *		@least + i modulo @spread
 * @spread:	see @least
 * @errors:	address of @count __s32; each receives the first RDTSC after the
 *		loop less the target
 * @turn:	out: TSC cycles of 1,024 turns of the counted loop
 * @step:	in: for %APIC_MEASURE_TABLE: TSC cycles of a turn of the loop, 1 to
 *		%APIC_MEASURE_STEP_MAX; otherwise 0
 *
 * Errors: -EOPNOTSUPP: this machine lacks the instruction.
 */
struct apic_measure_loop {
	__u32 way;
	__u32 cache;
	__u32 walk_kib;
	__u32 count;
	__u32 least;
	__u32 spread;
	__u64 errors;
	__u32 turn;
	__u32 step;
};

/* What the CPU does between two expiries. */
enum apic_measure_behind {
	APIC_MEASURE_BEHIND_IDLE,
	APIC_MEASURE_BEHIND_NOP,
	APIC_MEASURE_BEHIND_CPUID,	/* completes all instructions before it */
	APIC_MEASURE_BEHINDS,
};

/* Which samples are stored. All are counted. */
enum apic_measure_keep {
	APIC_MEASURE_KEEP_ALL,
	APIC_MEASURE_KEEP_OUTLIERS,	/* with an error or a body above @bound */
	APIC_MEASURE_KEEP_NONE,
	APIC_MEASURE_KEEPS,
};

/**
 * struct apic_measure_sample - one expiry
 * @error:	TSC that the handler is passed, see &struct apic_timer_list, less the
 *		expiry
 * @body:	TSC cycles from there until the sample of the previous expiry
 *		was stored; for an outlier, its number instead
 */
struct apic_measure_sample {
	__s32 error;
	__u32 body;
};

#define APIC_MEASURE_BUCKETS	24

/**
 * struct apic_measure_counts - a histogram in three cache lines
 * @early:	values below 0
 * @largest:	the largest value
 * @bucket:	values of 0, of 1, 2 to 3, 4 to 7, ...; the last bucket has all
 *		larger values
 */
struct apic_measure_counts {
	__u32 early;
	__u32 largest;
	__u32 bucket[APIC_MEASURE_BUCKETS];
};

/**
 * struct apic_measure_periodic - a periodic timer
 * @mode:	1 raw, 2 mean, 3 exact: as the flags of a timer
 * @behind:	&enum apic_measure_behind
 * @cache:	&enum apic_measure_cache
 * @walk_kib:	for %APIC_MEASURE_WALK
 * @keep:	&enum apic_measure_keep
 * @bound:	TSC cycles, for %APIC_MEASURE_KEEP_OUTLIERS
 * @count:	number of expiries, and of samples that @samples has room for
 * @period_ns:	nanoseconds between two expiries
 * @samples:	address of the samples
 * @kept:	out: number of samples stored
 * @missed:	out: expiries left out because an earlier one was too late
 * @errors:	out: histogram of all errors
 * @bodies:	out: histogram of all bodies
 */
struct apic_measure_periodic {
	__u32 mode;
	__u32 behind;
	__u32 cache;
	__u32 walk_kib;
	__u32 keep;
	__u32 bound;
	__u32 count;
	__u32 period_ns;
	__u64 samples;
	__u32 kept;
	__u32 missed;
	struct apic_measure_counts errors;
	struct apic_measure_counts bodies;
};

/* How an interrupt wakes the waiting thread. */
enum apic_measure_route {
	APIC_MEASURE_DIRECT,	/* its handler wakes the thread */
	APIC_MEASURE_TASKLET,
	APIC_MEASURE_IRQ_WORK,
	APIC_MEASURE_BH,	/* workqueue in softirq context: from 6.9 */
	APIC_MEASURE_THREAD,	/* SCHED_FIFO, as for a threaded interrupt */
	APIC_MEASURE_HIGHPRI,	/* workqueue, WQ_HIGHPRI */
	APIC_MEASURE_WORK,	/* workqueue */
	APIC_MEASURE_ROUTES,
};

enum apic_measure_trigger {
	APIC_MEASURE_APIC,	/* a timer of apic_timer, mode exact */
	APIC_MEASURE_HRTIMER,	/* an hrtimer, in hard interrupt context */
	APIC_MEASURE_APIC_MEAN,	/* a timer of apic_timer, mode mean */
	APIC_MEASURE_APIC_RAW,	/* the same, mode raw */
	APIC_MEASURE_TRIGGERS,
};

/**
 * struct apic_measure_chain - what each later read() measures
 * @route:	&enum apic_measure_route
 * @trigger:	&enum apic_measure_trigger
 * @least_ns:	nanoseconds from read() to the interrupt: uniformly distributed
 *		from here ...
 * @most_ns:	... to here
 * @seed:	seed of the distances, not 0
 *
 * Errors: -EOPNOTSUPP: this kernel lacks the route.
 */
struct apic_measure_chain {
	__u32 route;
	__u32 trigger;
	__u32 least_ns;
	__u32 most_ns;
	__u64 seed;
};

/**
 * struct apic_measure_record - one interrupt, from read(); TSC values
 * @number:	0, 1, ... since the last %APIC_MEASURE_CHAIN
 * @expires:	when it was due
 * @entry:	TSC that its handler reads first
 * @exit:	its handler's end
 * @deferred:	start of the deferred procedure, 0: there is none
 */
struct apic_measure_record {
	__u64 number;
	__u64 expires;
	__u64 entry;
	__u64 exit;
	__u64 deferred;
};

/* Accesses whose cost is measured. */
enum apic_measure_access {
	APIC_MEASURE_NOTHING,	/* the measurement itself */
	APIC_MEASURE_CPUID_LEAF,
	APIC_MEASURE_MSR_TSC,
	APIC_MEASURE_OUT_80,	/* the port of the BIOS's POST codes */
	APIC_MEASURE_IN_61,	/* system control port B */
	APIC_MEASURE_RTC,	/* OUT 0x70, IN 0x71: a register of the clock */
	APIC_MEASURE_PM_TIMER,	/* IN of the ACPI timer */
	APIC_MEASURE_HPET,	/* memory read of the HPET's counter */
	APIC_MEASURE_PCI_CONFIG,	/* vendor of 0000:00:00.0 */
	APIC_MEASURE_ACCESSES,
};

/**
 * struct apic_measure_port - cost of an access to hardware
 * @access:	&enum apic_measure_access
 * @count:	number of times
 * @cycles:	address of @count __u32 for TSC cycles
 *
 * Errors: -ENODEV: this machine has no such hardware.
 */
struct apic_measure_port {
	__u32 access;
	__u32 count;
	__u64 cycles;
};

/* Operations on a timer. */
enum apic_measure_operation {
	APIC_MEASURE_ADD,	/* add a timer that is not the first to expire */
	APIC_MEASURE_DELETE,	/* delete the timer added last */
	APIC_MEASURE_MODIFY,	/* move a pending timer to another moment, not the first */
	APIC_MEASURE_OLDER,	/* delete one of the timers that were pending before */
	APIC_MEASURE_OPERATIONS,
};

#define APIC_MEASURE_PENDING_MAX	100000

/**
 * struct apic_measure_cost - cost of an operation on a timer
 * @operation:	&enum apic_measure_operation
 * @trigger:	whose timer: %APIC_MEASURE_APIC or %APIC_MEASURE_HRTIMER
 * @pending:	number of other timers that are pending, up to
 *		%APIC_MEASURE_PENDING_MAX; for %APIC_MEASURE_OLDER at least 1.
 *		They expire in 1 to 2 hours.
 * @count:	number of times
 * @seed:	seed of the moments, not 0
 * @cycles:	address of @count __u32 for TSC cycles, less the cost of two reads
 *		of the TSC
 */
struct apic_measure_cost {
	__u32 operation;
	__u32 trigger;
	__u32 pending;
	__u32 count;
	__u64 seed;
	__u64 cycles;
};

#endif /* _UAPI_LINUX_APIC_MEASURE_H */
