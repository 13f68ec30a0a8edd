/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the queueing discipline "apic", which sends each packet
 * at its moment.
 *
 * TCA_OPTIONS is a nest of TCA_APIC_* attributes and must have NLA_F_NESTED set. An
 * attribute that a message lacks keeps its value, or gets its default when the qdisc
 * is created. A message with an unknown attribute or a bad value is refused with a
 * line in the extended ACK, and changes nothing.
 *
 * A class of the qdisc has TCA_APIC_RATE64 (mandatory), TCA_APIC_BURST,
 * TCA_APIC_OVERHEAD and TCA_APIC_LIMIT (default 1,000). Its packets leave when
 * both its rate and that of the qdisc allow it.
 *
 * Numbers are in host byte order. Times are in nanoseconds.
 */
#ifndef _UAPI_LINUX_SCH_APIC_H
#define _UAPI_LINUX_SCH_APIC_H

#include <linux/types.h>

/**
 * enum tc_apic_mode - context in which packets are handed to the driver
 * @TC_APIC_MODE_AUTO:	@TC_APIC_MODE_HARD for drivers that were tested with it,
 *			otherwise @TC_APIC_MODE_SOFT; @TC_APIC_MODE_THREAD on PREEMPT_RT
 * @TC_APIC_MODE_HARD:	the timer's interrupt. Refused for devices without a parent
 *			device (virtual ones), for those that do their own locking
 *			(lltx) or forbid netpoll, and on PREEMPT_RT
 * @TC_APIC_MODE_SOFT:	the softirq NET_TX, which the timer's interrupt raises
 * @TC_APIC_MODE_THREAD: a SCHED_FIFO thread, which runs that softirq
 * @__TC_APIC_MODE_MAX:	number of modes
 *
 * In a network namespace that belongs to a user namespace, @TC_APIC_MODE_HARD, @TC_APIC_MODE_THREAD
 * and a TCA_APIC_CPU are set only by a process with CAP_NET_ADMIN in the initial user namespace
 * (-EPERM), and @TC_APIC_MODE_AUTO is never @TC_APIC_MODE_THREAD.
 */
enum tc_apic_mode {
	TC_APIC_MODE_AUTO,
	TC_APIC_MODE_HARD,
	TC_APIC_MODE_SOFT,
	TC_APIC_MODE_THREAD,
	__TC_APIC_MODE_MAX
};

/**
 * enum tc_apic_late - policy for packets that are late
 * @TC_APIC_LATE_SEND:	send it at once, and count it
 * @TC_APIC_LATE_DROP:	if it has a departure time from SO_TXTIME, drop it, and report that
 *			on the socket's error queue (SO_EE_CODE_TXTIME_MISSED); send it
 *			otherwise. With SOF_TXTIME_DEADLINE_MODE a packet is to leave at
 *			once, and is late when its time has passed
 * @__TC_APIC_LATE_MAX:	number of policies
 */
enum tc_apic_late {
	TC_APIC_LATE_SEND,
	TC_APIC_LATE_DROP,
	__TC_APIC_LATE_MAX
};

/**
 * enum tc_apic_attr - attributes in TCA_OPTIONS
 * @TCA_APIC_UNSPEC:	not used
 * @TCA_APIC_PAD:	padding, not used otherwise
 * @TCA_APIC_RATE64:	u64, bit/s, up to 2^40; 0 (default): no limit
 * @TCA_APIC_BURST:	u32, bytes that may be sent at once after a pause, up to 2^27; default 0
 * @TCA_APIC_OVERHEAD:	s32, bytes to add to each packet's length, -64..255; default 0.
 *			A packet counts as at least one byte
 * @TCA_APIC_MODE:	u32, &enum tc_apic_mode; default %TC_APIC_MODE_AUTO
 * @TCA_APIC_CPU:	u32, the CPU whose timer is used; another CPU's while it is
 *			offline. %TC_APIC_CPU_ANY (default): the CPU that queues the first
 *			packet
 * @TCA_APIC_CLOCK:	u32, CLOCK_MONOTONIC (default), CLOCK_TAI or CLOCK_REALTIME: clock
 *			of departure times that do not carry their own. Those of SO_TXTIME
 *			and of TCP do
 * @TCA_APIC_LATE:	u32, &enum tc_apic_late; default %TC_APIC_LATE_SEND
 * @TCA_APIC_LATE_NS:	u64, ns after its moment at which a packet becomes late; up to
 *			10 s, default 1,000
 * @TCA_APIC_HORIZON:	u64, ns, 1 us to 1,000 s: departure times farther ahead are not accepted,
 *			and neither are packets that TCA_APIC_PACING would keep for longer;
 *			default 10 s
 * @TCA_APIC_HORIZON_CAP: u8, 1: packets beyond the horizon are sent at the horizon; 0
 *			(default): they are dropped, which the error queue of a socket
 *			with SO_TXTIME reports (SO_EE_CODE_TXTIME_INVALID_PARAM)
 * @TCA_APIC_LIMIT:	u32, packets that may be queued, at least 1; default 10,000
 * @TCA_APIC_FLOW_LIMIT: u32, packets of one flow that may be queued; 0 (default): no limit
 *			per flow. A flow is a socket, or the packets with the same hash
 * @TCA_APIC_FLOW_ORDER: u8, 1: each flow's packets are sent in the order in which
 *			they were queued; 0 (default): by departure time alone
 * @TCA_APIC_PACING:	u8, 1 (default): packets without a departure time are sent at the rate
 *			of their socket (SO_MAX_PACING_RATE), but at least one per second; 0:
 *			that rate is ignored
 * @TCA_APIC_CE_THRESHOLD: u64, ns: packets that the rate delays by more than this, after they
 *			were queued or after their departure time, are marked with ECN's
 *			"congestion experienced" if they are ECN-capable; up to 1,000 s, 0
 *			(default): none
 * @TCA_APIC_SPLIT_GSO:	u8, 1 (default): GSO packets are split so that each segment has its
 *			own moment; 0: they are sent whole where the device can take them
 * @TCA_APIC_MODE_NOW:	u32, dump only: the mode in effect, never %TC_APIC_MODE_AUTO
 * @TCA_APIC_OFFLOAD:	u8, 1: the device sends each packet at its moment (LaunchTime, called
 *			offload by etf); the packet is handed over TCA_APIC_AHEAD earlier, with
 *			its moment as CLOCK_TAI in skb->tstamp. Refused if the device lacks this
 *			feature, or if it may have several transmit queues and the qdisc does
 *			not belong to one of them. LaunchTime is of the whole queue: packets of
 *			other qdiscs that share it leave by the departure times that they may
 *			have, as if those were of CLOCK_TAI. 0 (default): the qdisc itself
 *			meets the moment
 * @TCA_APIC_AHEAD:	u64, ns, 1 us to 100 ms; default 100 us
 * @TCA_APIC_DOORBELL:	u64, ns, up to 100 us: time from the driver's first instruction until it
 *			starts the card. Packets are handed over earlier by this time, and their
 *			errors are relative to the start of the card. 0 (default): the moment is
 *			that of the driver's first instruction. Ignored with TCA_APIC_OFFLOAD
 * @__TCA_APIC_MAX:	number of attributes
 */
enum tc_apic_attr {
	TCA_APIC_UNSPEC,
	TCA_APIC_PAD,
	TCA_APIC_RATE64,
	TCA_APIC_BURST,
	TCA_APIC_OVERHEAD,
	TCA_APIC_MODE,
	TCA_APIC_CPU,
	TCA_APIC_CLOCK,
	TCA_APIC_LATE,
	TCA_APIC_LATE_NS,
	TCA_APIC_HORIZON,
	TCA_APIC_HORIZON_CAP,
	TCA_APIC_LIMIT,
	TCA_APIC_FLOW_LIMIT,
	TCA_APIC_FLOW_ORDER,
	TCA_APIC_PACING,
	TCA_APIC_CE_THRESHOLD,
	TCA_APIC_SPLIT_GSO,
	TCA_APIC_MODE_NOW,
	TCA_APIC_OFFLOAD,
	TCA_APIC_AHEAD,
	TCA_APIC_DOORBELL,
	__TCA_APIC_MAX
};

#define TCA_APIC_MAX	(__TCA_APIC_MAX - 1)

/* Value of TCA_APIC_CPU: no CPU is chosen. */
#define TC_APIC_CPU_ANY	0xffffffffU

/* Number of classes in &tc_apic_xstats.errors. */
#define TC_APIC_ERRORS	40

/**
 * struct tc_apic_xstats - statistics, in TCA_STATS_APP
 * @sent_hard:		packets sent from the timer's interrupt
 * @sent_soft:		packets sent from softirq
 * @sent_thread:	packets sent from the thread
 * @sent_stack:		packets handed at their moment to the kernel, which then sent them:
 *			below a classful qdisc, with IPsec or TLS offload, and packets queued
 *			before the device's features changed
 * @late:		packets sent later than TCA_APIC_LATE_NS after their moment. Where the
 *			clocksource is not the TSC, this means the moment of the packet before it
 *			in the same clock, if that moment is later
 * @early:		packets sent before their moment: always 0
 * @dropped_late:	packets dropped because they were late
 * @dropped_horizon:	packets dropped because their departure time, or the moment at which
 *			their socket's rate lets them leave, is beyond the horizon
 * @capped_horizon:	packets whose departure time, or the moment at which their socket's rate
 *			lets them leave, was moved to the horizon
 * @dropped_limit:	packets dropped because TCA_APIC_LIMIT packets were queued, in the
 *			qdisc or in their class
 * @dropped_flow_limit:	packets dropped because TCA_APIC_FLOW_LIMIT packets of their flow
 *			were queued
 * @ce_marked:		packets marked with "congestion experienced"
 * @gso_split:		GSO packets that were split
 * @busy_lock:		times that the interrupt found the lock of the device's queue taken
 * @busy_driver:	times that the driver did not take a packet (NETDEV_TX_BUSY); it is
 *			sent again
 * @busy_cpu:		times that a packet was left to softirq because interrupts had kept the
 *			CPU busy for too long
 * @stopped:		times that the device's queue was stopped when a packet was due
 * @no_timer:		times that the timer could not be armed, and a kernel timer was
 *			used
 * @waited_ns:		time spent waiting for the moments of packets
 * @errors:		packets by their error, where it is known: TSC cycles from the moment to
 *			the last read of the TSC before the driver is called, plus @path and
 *			TCA_APIC_DOORBELL. Class 0 is for 0 or less, class n for 2^(n-1) up to
 *			2^n - 1, the last class also for more. Packets without a planned moment
 *			are not counted
 * @tsc_khz:		TSC cycles per millisecond
 * @lead_hard:		how much before its moment the interrupt is programmed, TSC
 *			cycles
 * @lead_soft:		the same for softirq and thread
 * @path:		TSC cycles that are certain from the last read of the TSC to the driver
 * @flows:		number of known flows
 * @__reserved:		0
 *
 * A class has the same structure for its own packets: @sent_hard, @sent_soft,
 * @sent_thread, @sent_stack, @late, @early, @dropped_late, @dropped_limit, @ce_marked,
 * @errors and @tsc_khz; the others are 0.
 *
 * New members are only added at the end: a longer structure is a newer one, a
 * shorter structure an older one.
 */
struct tc_apic_xstats {
	__u64 sent_hard;
	__u64 sent_soft;
	__u64 sent_thread;
	__u64 sent_stack;
	__u64 late;
	__u64 early;
	__u64 dropped_late;
	__u64 dropped_horizon;
	__u64 capped_horizon;
	__u64 dropped_limit;
	__u64 dropped_flow_limit;
	__u64 ce_marked;
	__u64 gso_split;
	__u64 busy_lock;
	__u64 busy_driver;
	__u64 busy_cpu;
	__u64 stopped;
	__u64 no_timer;
	__u64 waited_ns;
	__u64 errors[TC_APIC_ERRORS];
	__u32 tsc_khz;
	__u32 lead_hard;
	__u32 lead_soft;
	__u32 path;
	__u32 flows;
	__u32 __reserved;
};

#endif /* _UAPI_LINUX_SCH_APIC_H */
