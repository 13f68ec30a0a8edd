/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/apic_timer: sleep until a TSC value, and use timers with read() and
 * poll().
 *
 * The device has one command per operation. Each takes a structure that begins
 * with its own size as the caller knows it. A structure longer than the kernel's
 * is accepted if the fields that the kernel does not know are zero (otherwise
 * -E2BIG); fields that a shorter structure lacks read as zero. Layouts are the
 * same for 32-bit callers.
 *
 * A moment is an unsigned 64-bit value in the unit of its clock: TSC cycles, or
 * nanoseconds of CLOCK_MONOTONIC, in the caller's time namespace, or of CLOCK_TAI.
 * TSC values are valid within one epoch: a new one begins after the TSC has
 * restarted or stopped in a sleep of the machine. Epochs are numbered from 1; 0
 * stands for any epoch.
 */
#ifndef _UAPI_LINUX_APIC_TIMER_H
#define _UAPI_LINUX_APIC_TIMER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define APIC_TIMER_IOC		0xD7

/* The structures carry their size, hence not _IOWR(). */
#define APIC_TIMER_QUERY	_IO(APIC_TIMER_IOC, 0)
#define APIC_TIMER_SLEEP	_IO(APIC_TIMER_IOC, 1)
#define APIC_TIMER_ARM		_IO(APIC_TIMER_IOC, 2)
/* A command for io_uring (IORING_OP_URING_CMD), not for ioctl(). */
#define APIC_TIMER_URING_WAIT	_IO(APIC_TIMER_IOC, 3)

/* Clocks. */
#define APIC_TIMER_CLOCK_TSC		0	/* cycles */
#define APIC_TIMER_CLOCK_MONOTONIC	1	/* ns */
#define APIC_TIMER_CLOCK_TAI		2	/* ns */

/* &struct apic_timer_device.cpu for the CPU of the caller. */
#define APIC_TIMER_CPU_THIS		0xffffffffU

/* &struct apic_timer_device.tsc_flags and &struct apic_timer_page.flags. */
#define APIC_TIMER_TSC_IS_CONSTANT	0x0001	/* fixed rate */
#define APIC_TIMER_TSC_IS_NONSTOP	0x0002	/* counts in every idle state */
#define APIC_TIMER_TSC_IS_STABLE	0x0004	/* not marked unstable */
#define APIC_TIMER_TSC_IS_CLOCK		0x0008	/* the kernel's clocks run on it */

/**
 * struct apic_timer_device - %APIC_TIMER_QUERY: describe the device
 * @size:	in: sizeof(struct apic_timer_device)
 * @cpu:	in: CPU to describe, %APIC_TIMER_CPU_THIS for the caller's; out:
 *		number of that CPU
 * @epoch:	out: present epoch of the TSC
 * @tsc_khz:	out: frequency of the TSC in kHz
 * @tsc_flags:	out: %APIC_TIMER_TSC_IS_*
 * @hardware:	out: hardware that expiries are programmed into: 0 nothing, 1
 *		TSC-deadline MSR, 2 one-shot counter, 3 a kernel hrtimer, 4 a
 *		simulation
 * @modes:	out: bit n for each accuracy mode n that the CPU has
 * @rate:	out: limit of a user's wake-ups per second and CPU
 * @burst:	out: limit of wake-ups in one burst
 * @pending:	out: limit of a user's pending sleepers and timers
 * @budget_max:	out: limit of &struct apic_timer_sleep.budget, TSC cycles
 * @ring_entries: out: number of receipts that a ring has room for
 * @ring_offset: out: offset to map the ring at
 * @source:	out: source of the interrupts: "proxy", "hook", "hrtimer"
 *
 * Errors: -EINVAL: there is no such CPU, or size too small; -E2BIG as below.
 */
struct apic_timer_device {
	__u32 size;
	__u32 cpu;
	__u32 epoch;
	__u32 tsc_khz;
	__u32 tsc_flags;
	__u32 hardware;
	__u32 modes;
	__u32 rate;
	__u32 burst;
	__u32 pending;
	__u32 budget_max;
	__u32 ring_entries;
	__u64 ring_offset;
	char source[16];
};

/* &struct apic_timer_sleep.flags */
/*
 * Let the kernel wait for the moment itself, for callers that do not do so in
 * user space. They return a little late, by the time that the way out of the
 * kernel takes; less so if they set @began. Then they are early if the way out has
 * become much shorter, as when the CPU's clock has risen. Without @began they never are,
 * whatever other threads of the file report.
 */
#define APIC_TIMER_SLEEP_KERNEL_FINISH	0x0001
/* Fail with -ETIME if the moment has passed, instead of ending the sleep. */
#define APIC_TIMER_SLEEP_SKIP_LATE	0x0002
/* Do not keep the kernel's own timer events away from the last part of the wait. */
#define APIC_TIMER_SLEEP_NO_FENCE	0x0004
/* End the sleep with -EINTR when a signal has been handled, whether or not SA_RESTART is set. */
#define APIC_TIMER_SLEEP_NO_RESTART	0x0008

/* &struct apic_timer_sleep.result */
#define APIC_TIMER_SLEPT		0x0001	/* left the CPU; the moment was far enough */
#define APIC_TIMER_SLEPT_FENCED		0x0002	/* the fence was asked for */
#define APIC_TIMER_SLEPT_LATE		0x0004	/* the moment had passed on return */

/**
 * struct apic_timer_sleep - %APIC_TIMER_SLEEP: sleep until shortly before a moment
 * @size:	in: sizeof(struct apic_timer_sleep)
 * @flags:	in: %APIC_TIMER_SLEEP_*
 * @expires:	in: the moment
 * @clock:	in: %APIC_TIMER_CLOCK_*
 * @epoch:	in: epoch that a TSC value belongs to, 0: the present one; out: the
 *		present one
 * @began:	in: the TSC that the same thread read right after its last call with
 *		this file; 0 if it did not. The kernel learns from it how long its
 *		way out takes.
 * @budget:	in: maximum number of TSC cycles by which the thread may return
 *		early; 0: 20 us
 * @cpu:	out: CPU that the thread returned on
 * @tsc:	out: the moment as a TSC value. Wait until the TSC reaches it: only
 *		then has the moment arrived.
 * @woken:	out: TSC when the timer's interrupt was handled, 0: no sleep
 * @resumed:	out: TSC when the thread ran again
 * @lead:	out: TSC cycles from the armed moment to @tsc
 * @result:	out: %APIC_TIMER_SLEPT*
 *
 * The thread returns early, by the time that its wake-up may take, unless
 * %APIC_TIMER_SLEEP_KERNEL_FINISH is set; user/apic_timer_user.h waits for the rest.
 * When a signal interrupts a call, the call is restarted after the handler, because
 * the moment is absolute. It fails with -EINTR if the signal's action has no
 * SA_RESTART, or if %APIC_TIMER_SLEEP_NO_RESTART is set. Errors:
 *
 *   -ESTALE	the present epoch is not @epoch; @epoch returns the present one
 *   -ETIME	the moment has passed, and %APIC_TIMER_SLEEP_SKIP_LATE is set
 *   -EAGAIN	the user's limit of wake-ups per second is exceeded
 *   -EBUSY	the user's limit of sleepers and timers is exceeded
 *   -ENODEV	no CPU accepts timers
 *   -EINVAL	unknown flags or clock, size too small, or @budget above
 *		&struct apic_timer_device.budget_max
 *   -E2BIG	a field that this kernel does not know is not 0
 */
struct apic_timer_sleep {
	__u32 size;
	__u32 flags;
	__u64 expires;
	__u32 clock;
	__u32 epoch;
	__u64 began;
	__u32 budget;
	__u32 cpu;
	__u64 tsc;
	__u64 woken;
	__u64 resumed;
	__u32 lead;
	__u32 result;
};

/**
 * struct apic_timer_arm - %APIC_TIMER_ARM: arm, change or disarm the file's timer
 * @size:	in: sizeof(struct apic_timer_arm)
 * @flags:	in: 0
 * @expires:	in: first expiry; 0 disarms
 * @interval:	in: distance between further expiries in the unit of the clock,
 *		0: none
 * @clock:	in: %APIC_TIMER_CLOCK_*
 * @epoch:	in: epoch that a TSC value belongs to, 0: the present one; out: the
 *		present one
 *
 * read() blocks until the timer has expired, and returns the number of expirations
 * since the last read() or ARM as a __u64: more than 1 is an overrun. If several
 * threads wait in read(), an expiry wakes the one that has waited longest; an epoll
 * that has the file with EPOLLEXCLUSIVE counts as such a thread. poll() reports %POLLIN
 * after an expiry. If @epoch was given, and another epoch begins before the timer is
 * disarmed or its only expiry is read, read() fails with -ESTALE and poll() reports
 * %POLLERR until the next ARM.
 *
 * Changing a timer that has not expired costs none of the user's wake-ups on the CPU
 * that armed it; on another CPU, it costs one there, and the one of the former CPU is
 * lost. It also costs one once an interrupt has converted the moment again, which happens
 * for clocks other than the TSC, a second after ARM at the latest. An interval shorter
 * than the user's rate allows loses no expirations: there are fewer interrupts, and each
 * counts several.
 *
 * Errors: as for %APIC_TIMER_SLEEP, except -ETIME: if the moment has passed, the timer
 * expires at once. After an error other than -EINVAL, -E2BIG, -ESTALE and -EINTR, the timer
 * may be disarmed. -EINTR: a signal was handled while another ARM of the file was under way,
 * and its action has no SA_RESTART.
 */
struct apic_timer_arm {
	__u32 size;
	__u32 flags;
	__u64 expires;
	__u64 interval;
	__u32 clock;
	__u32 epoch;
};

/**
 * struct apic_timer_uring - %APIC_TIMER_URING_WAIT: complete at a moment
 * @expires:	the moment
 * @clock:	%APIC_TIMER_CLOCK_*
 * @epoch:	epoch that a TSC value belongs to, 0: the present one
 *
 * The 16 bytes of the submission's cmd field. Any number may be pending for a file,
 * within the user's limits. The completion's result is 0, or an error as for
 * %APIC_TIMER_ARM; -EOPNOTSUPP on kernels before 6.7, which cannot cancel commands: let
 * the ring poll() the file there. Commands are cancelled with -ECANCELED when their
 * ring is closed or their thread calls execve().
 */
struct apic_timer_uring {
	__u64 expires;
	__u32 clock;
	__u32 epoch;
};

/**
 * struct apic_timer_page - time page, mapped read-only at offset 0
 * @version:	of the layout, 1; later versions add fields
 * @seq:	odd while the page changes; changes with each update of the page
 * @tsc_khz:	frequency of the TSC in kHz
 * @epoch:	present epoch of the TSC
 * @flags:	%APIC_TIMER_TSC_IS_*; without _CLOCK, do not use the fields
 *		below
 * @mult:	CLOCK_MONOTONIC of the initial time namespace at TSC value t is
 *		@mono + (((t - @tsc) * @mult + @mono_shifted) >> @shift), in ns
 * @shift:	see @mult
 * @reserved:	0
 * @tsc:	see @mult; not later than now
 * @mono:	see @mult
 * @mono_shifted: see @mult; less than 1 << @shift
 * @tai:	CLOCK_TAI - CLOCK_MONOTONIC, ns
 *
 * The kernel rewrites the page with every update of its clocks, about HZ times a
 * second. Read it like data under a sequence counter: read again if @seq was odd or has
 * changed.
 */
struct apic_timer_page {
	__u32 version;
	__u32 seq;
	__u32 tsc_khz;
	__u32 epoch;
	__u32 flags;
	__u32 mult;
	__u32 shift;
	__u32 reserved;
	__u64 tsc;
	__u64 mono;
	__u64 mono_shifted;
	__u64 tai;
};

/* Where the ring of receipts is mapped, read-only; it has the sleeps since the first mapping. */
#define APIC_TIMER_RING_OFFSET	0x100000
/* Offset of the first receipt from &struct apic_timer_ring, bytes. */
#define APIC_TIMER_RING_FIRST	4096

/**
 * struct apic_timer_ring - header of a file's ring of receipts
 * @version:	of the layout, 1
 * @entries:	number of receipts that the ring has room for, a power of 2
 * @head:	number of the next receipt; receipt n is at n % @entries. The kernel
 *		overwrites the oldest receipt: a copy of receipt n is valid if @head
 *		is still less than n + @entries afterwards.
 */
struct apic_timer_ring {
	__u32 version;
	__u32 entries;
	__u64 head;
};

/**
 * struct apic_timer_receipt - record of one sleep
 * @tsc:	requested moment
 * @woken:	TSC when the interrupt was handled, 0: no sleep
 * @resumed:	TSC when the thread ran again
 * @began:	@began of the thread's next call, 0 until then
 * @lead:	TSC cycles from the armed moment to @tsc
 * @cpu:	CPU that the thread came back on
 * @result:	%APIC_TIMER_SLEPT*
 * @tid:	thread, as numbered in the PID namespace of the process that was first to map
 *		the ring; 0: it is not there
 * @reserved:	0
 */
struct apic_timer_receipt {
	__u64 tsc;
	__u64 woken;
	__u64 resumed;
	__u64 began;
	__u32 lead;
	__u32 cpu;
	__u32 result;
	__u32 tid;
	__u64 reserved[2];
};

#endif /* _UAPI_LINUX_APIC_TIMER_H */
