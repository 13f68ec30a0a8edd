/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Netlink interface of the queueing discipline "apic", which sends each packet
 * at its moment.
 *
 * TCA_OPTIONS is a nest of TCA_APIC_* attributes and must have NLA_F_NESTED set.
 * What a message leaves out keeps its value, or has its default where the
 * qdisc is created. Unknown attributes and bad values are refused, with a line in the
 * extended ACK, and then nothing changes.
 *
 * A class of the qdisc has TCA_APIC_RATE64, which it must have, TCA_APIC_BURST,
 * TCA_APIC_OVERHEAD and TCA_APIC_LIMIT, whose default is 1,000 there. Its packets
 * leave when its rate and that of the qdisc let them.
 *
 * Numbers are in host byte order. Times are in nanoseconds.
 */
#ifndef _UAPI_LINUX_SCH_APIC_H
#define _UAPI_LINUX_SCH_APIC_H

#include <linux/types.h>

/**
 * enum tc_apic_mode - where packets are handed to the driver
 * @TC_APIC_MODE_AUTO:	@TC_APIC_MODE_HARD for drivers that were tested with it,
 *			otherwise @TC_APIC_MODE_SOFT; @TC_APIC_MODE_THREAD on PREEMPT_RT
 * @TC_APIC_MODE_HARD:	the timer's interrupt. Refused for devices without a parent
 *			device (virtual ones), for those that do their own locking
 *			(lltx) or forbid netpoll, and on PREEMPT_RT
 * @TC_APIC_MODE_SOFT:	the softirq NET_TX, which the timer's interrupt raises
 * @TC_APIC_MODE_THREAD: a SCHED_FIFO thread, which runs that softirq
 * @__TC_APIC_MODE_MAX:	number of modes
 */
enum tc_apic_mode {
	TC_APIC_MODE_AUTO,
	TC_APIC_MODE_HARD,
	TC_APIC_MODE_SOFT,
	TC_APIC_MODE_THREAD,
	__TC_APIC_MODE_MAX
};

/**
 * enum tc_apic_late - what becomes of a packet that is late
 * @TC_APIC_LATE_SEND:	it is sent at once, and counted
 * @TC_APIC_LATE_DROP:	if it has a departure time from SO_TXTIME, it is dropped, and
 *			the socket's error queue says so (SO_EE_CODE_TXTIME_MISSED);
 *			other packets are sent. With SOF_TXTIME_DEADLINE_MODE a packet wants
 *			to leave at once, and is late when its time has passed
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
 * @TCA_APIC_RATE64:	u64, bit/s, up to 2^40; 0 (default): not limited
 * @TCA_APIC_BURST:	u32, bytes that may be sent at once after a pause, up to 2^27; default 0
 * @TCA_APIC_OVERHEAD:	s32, bytes to add to each packet's length, -64..255; default 0.
 *			A packet counts as one byte at least
 * @TCA_APIC_MODE:	u32, &enum tc_apic_mode; default %TC_APIC_MODE_AUTO
 * @TCA_APIC_CPU:	u32, the CPU whose timer is used, another one while it is offline;
 *			%TC_APIC_CPU_ANY (default): the one that queues the first packet
 * @TCA_APIC_CLOCK:	u32, CLOCK_MONOTONIC (default), CLOCK_TAI or CLOCK_REALTIME: clock
 *			of departure times that do not tell theirs. Those of SO_TXTIME and
 *			of TCP do
 * @TCA_APIC_LATE:	u32, &enum tc_apic_late; default %TC_APIC_LATE_SEND
 * @TCA_APIC_LATE_NS:	u64, ns after its moment from which on a packet is late; up to
 *			10 s, default 1,000
 * @TCA_APIC_HORIZON:	u64, ns, 1 us to 1,000 s: departure times farther ahead are not
 *			accepted, nor packets that TCA_APIC_PACING would keep for longer; default
 *			10 s
 * @TCA_APIC_HORIZON_CAP: u8, 1: such a packet is sent at the horizon; 0 (default): it is
 *			dropped, and the error queue of a socket with SO_TXTIME says so
 *			(SO_EE_CODE_TXTIME_INVALID_PARAM)
 * @TCA_APIC_LIMIT:	u32, packets that may be queued, at least 1; default 10,000
 * @TCA_APIC_FLOW_LIMIT: u32, packets of one flow that may be queued; 0 (default): no limit
 *			of its own. A flow is a socket, or what has the same hash
 * @TCA_APIC_FLOW_ORDER: u8, 1: a packet is not sent before those that its flow queued
 *			before it; 0 (default): by departure time alone
 * @TCA_APIC_PACING:	u8, 1 (default): packets without a departure time are sent at the rate
 *			of their socket (SO_MAX_PACING_RATE), but one in a second at least; 0:
 *			that is ignored
 * @TCA_APIC_CE_THRESHOLD: u64, ns: packets that the rate delays by more than this, after they
 *			were queued or after their departure time, are marked with ECN's
 *			"congestion experienced" if they can be; up to 1,000 s, 0 (default): none
 * @TCA_APIC_SPLIT_GSO:	u8, 1 (default): GSO packets are split so that each of their packets
 *			has a moment; 0: they are sent whole where the device can take them
 * @TCA_APIC_MODE_NOW:	u32, dump only: the mode in effect, never %TC_APIC_MODE_AUTO
 * @TCA_APIC_OFFLOAD:	u8, 1: the device sends each packet at its moment (LaunchTime, what etf
 *			calls offload); the packet is handed over TCA_APIC_AHEAD before it, with
 *			its moment as CLOCK_TAI in skb->tstamp. Refused where the device cannot,
 *			or may have several transmit queues and the qdisc is not one queue's. 0
 *			(default): the qdisc meets the moment
 * @TCA_APIC_AHEAD:	u64, ns, 1 us to 100 ms; default 100 us
 * @TCA_APIC_DOORBELL:	u64, ns, up to 100 us: how long after its first instruction the driver
 *			starts the card. Packets are handed over so much earlier, and their errors
 *			are those of that start. 0 (default): the moment is that of the driver's
 *			first instruction. With TCA_APIC_OFFLOAD it means nothing
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

/* Value of TCA_APIC_CPU: no CPU was chosen. */
#define TC_APIC_CPU_ANY	0xffffffffU

/* Number of classes in &tc_apic_xstats.errors. */
#define TC_APIC_ERRORS	40

/**
 * struct tc_apic_xstats - statistics, in TCA_STATS_APP
 * @sent_hard:		packets sent from the timer's interrupt
 * @sent_soft:		packets sent from softirq
 * @sent_thread:	packets sent from the thread
 * @sent_stack:		packets handed to the kernel at their moment, which then sent them:
 *			below a classful qdisc, with IPsec offload, and those that were queued
 *			before features of the device changed
 * @late:		packets sent later than TCA_APIC_LATE_NS after their moment. Where the
 *			clocksource is not the TSC, that is the moment of the one before it in its
 *			clock, if that is later
 * @early:		packets sent before their moment: always 0
 * @dropped_late:	packets dropped because they were late
 * @dropped_horizon:	packets dropped because their departure time, or the moment that their
 *			socket's rate lets them leave at, is beyond the horizon
 * @capped_horizon:	packets whose departure time, or the moment that their socket's rate lets
 *			them leave at, was moved to the horizon
 * @dropped_limit:	packets dropped because TCA_APIC_LIMIT were queued, in the qdisc or in
 *			their class
 * @dropped_flow_limit:	packets dropped because TCA_APIC_FLOW_LIMIT of a flow were queued
 * @ce_marked:		packets marked with "congestion experienced"
 * @gso_split:		GSO packets that were split
 * @busy_lock:		times that the lock of the device's queue was taken when the interrupt
 *			wanted to send
 * @busy_driver:	times that the driver did not take a packet (NETDEV_TX_BUSY), which is
 *			sent again
 * @busy_cpu:		times that interrupts had kept the CPU busy for so long that a packet was
 *			left to softirq
 * @stopped:		times that the device's queue was stopped when a packet was due
 * @no_timer:		times that the timer could not be armed, and the kernel's was used
 * @waited_ns:		time spent waiting for the moments of packets
 * @errors:		packets by their error, as far as it can be known: TSC cycles from the
 *			moment to the first instruction of the driver, and TCA_APIC_DOORBELL.
 *			Class 0 is for none or less, class n for 2^(n-1) up to 2^n - 1, the last
 *			one also for more. Packets that nobody had planned a moment for are not
 *			counted
 * @tsc_khz:		TSC cycles in a millisecond
 * @lead_hard:		how much before its moment the interrupt is asked for, TSC cycles
 * @lead_soft:		the same for softirq and thread
 * @path:		TSC cycles from the last look at the TSC to the driver, as measured
 * @flows:		flows that are known
 * @__reserved:		0
 *
 * A class has the same structure, of its packets: @sent_hard, @sent_soft, @sent_thread,
 * @sent_stack, @late, @early, @dropped_late, @dropped_limit, @ce_marked, @errors and
 * @tsc_khz; the others are 0.
 *
 * Members are only ever added at the end: a longer or shorter structure is a
 * newer or older one.
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
