// SPDX-License-Identifier: GPL-2.0
/*
 * Account for the packets that arrive at the sink's driver: when, compared with the sender's plan,
 * and which packets are missing, duplicated or out of order.
 */
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/debugfs.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/preempt.h>
#include <linux/seq_file.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <asm/tsc.h>

#include "clock.h"
#include "sink.h"

/* Offset of the payload in a packet of udpsend, which sets no IP options. */
#define PAYLOAD		(ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr))

/* A departure: TSC at the driver's first instruction, and the planned TSC, 0 if not known. */
struct sink_record {
	u64 tsc;
	u64 planned;
};

static struct sink_record *records;
static u32 *record_flows;	/* the flow of each */

/* Launch time minus plan, and minus the clock when the driver got the packet, ns. */
struct sink_launch {
	s64 error;
	s64 ahead;
};

static struct sink_launch *launch_records;
static atomic_t launches_n;
static u32 records_max, packets_max;
static atomic_t records_n;

/* Packets that arrived, each once. A flow uses a single queue, whose lock is held. */
static struct {
	unsigned long *seen;	/* by number in the flow */
	u64 next;		/* one more than the highest number seen */
	atomic64_t packets, doubled, reordered, beyond;
} flows[SINK_FLOWS];

static atomic64_t foreign, early, in_hardirqs, in_softirqs, in_threads;

static u64 cycles_of(u64 ns)
{
	return mul_u64_u64_div_u64(ns, tsc_khz, 1000000);
}

/*
 * Convert the plan to a TSC value, by a pair of clock and TSC that is read after the departure.
 * The true time is up to a nanosecond ahead of the clock's reading. The plan is therefore taken to
 * be a nanosecond earlier: a packet never seems earlier than it was, but may seem that much later.
 * @slack: error of the TSC's frequency over that time, in case the CPU is stopped meanwhile
 */
static u64 planned_tsc(const struct sink_payload *payload, u64 *slack)
{
	u64 cycles, distance;
	s64 left;

	left = (s64)payload->planned - sink_clock(payload->clock, &cycles) - 1;
	distance = cycles_of(abs(left));
	*slack = distance >> 9;
	return left >= 0 ? cycles + distance : cycles - distance;
}

static void account_flow(const struct sink_payload *payload)
{
	u32 flow = payload->flow;
	u64 seq = payload->seq;

	atomic64_inc(&flows[flow].packets);
	if (seq >= packets_max) {
		atomic64_inc(&flows[flow].beyond);
		return;
	}
	if (test_and_set_bit(seq, flows[flow].seen))
		atomic64_inc(&flows[flow].doubled);
	if (seq < READ_ONCE(flows[flow].next))
		atomic64_inc(&flows[flow].reordered);
	else
		WRITE_ONCE(flows[flow].next, seq + 1);
}

/* Launch times are in CLOCK_TAI, which the device's clock would also follow. */
static void note_launch(const struct sk_buff *skb, const struct sink_payload *payload)
{
	s64 at = ktime_to_ns(skb->tstamp);
	u64 cycles;
	int n = atomic_fetch_add_unless(&launches_n, 1, records_max);

	if (n >= records_max)
		return;
	launch_records[n].error = payload->planned ? at - (s64)payload->planned : 0;
	launch_records[n].ahead = at - sink_clock(CLOCK_TAI, &cycles);
}

/**
 * sink_account() - record a packet
 * @skb:	the packet, as the driver got it
 * @tsc:	TSC at the driver's first instruction
 * @launches:	its queue has LaunchTime, and may get it before its time
 *
 * Context: any, under the lock of the packet's queue.
 */
void sink_account(const struct sk_buff *skb, u64 tsc, bool launches)
{
	struct sink_payload payload;
	u64 planned = 0, slack;
	int n;

	if (in_hardirq())
		atomic64_inc(&in_hardirqs);
	else if (in_serving_softirq())
		atomic64_inc(&in_softirqs);
	else
		atomic64_inc(&in_threads);

	if (skb->protocol != htons(ETH_P_IP) ||
	    skb_copy_bits(skb, PAYLOAD, &payload, sizeof(payload)) ||
	    payload.magic != cpu_to_be64(SINK_MAGIC) || payload.flow >= SINK_FLOWS) {
		atomic64_inc(&foreign);
		return;
	}

	account_flow(&payload);
	if (payload.planned) {
		planned = planned_tsc(&payload, &slack);
		/*
		 * NTP has steered the clock by a fraction of a nanosecond since the packet
		 * arrived, and cycles are rounded.
		 */
		if (!launches && (s64)(planned - tsc) > (s64)(cycles_of(1) + 1 + slack))
			atomic64_inc(&early);
	}
	n = atomic_fetch_add_unless(&records_n, 1, records_max);
	if (n < records_max) {
		records[n].tsc = tsc;
		records[n].planned = planned;
		record_flows[n] = payload.flow;
		if (launches)
			note_launch(skb, &payload);
	}
}

/**
 * sink_account_reset() - forget all packets
 *
 * Context: while none are sent.
 */
void sink_account_reset(void)
{
	unsigned int i;

	for (i = 0; i < SINK_FLOWS; i++) {
		bitmap_zero(flows[i].seen, packets_max);
		flows[i].next = 0;
		atomic64_set(&flows[i].packets, 0);
		atomic64_set(&flows[i].doubled, 0);
		atomic64_set(&flows[i].reordered, 0);
		atomic64_set(&flows[i].beyond, 0);
	}
	atomic64_set(&foreign, 0);
	atomic64_set(&early, 0);
	atomic64_set(&in_hardirqs, 0);
	atomic64_set(&in_softirqs, 0);
	atomic64_set(&in_threads, 0);
	atomic_set(&records_n, 0);
	atomic_set(&launches_n, 0);
}

/* lost: missing numbers below the highest one. Only the sender knows of losses at the end. */
static int packets_show(struct seq_file *file, void *unused)
{
	unsigned int i;

	for (i = 0; i < SINK_FLOWS; i++) {
		u64 next = READ_ONCE(flows[i].next);

		if (!atomic64_read(&flows[i].packets))
			continue;
		seq_printf(file, "flow %u packets %lld lost %llu doubled %lld reordered %lld beyond %lld\n",
			   i, atomic64_read(&flows[i].packets),
			   next - bitmap_weight(flows[i].seen, next),
			   atomic64_read(&flows[i].doubled),
			   atomic64_read(&flows[i].reordered),
			   atomic64_read(&flows[i].beyond));
	}
	seq_printf(file, "hardirq %lld softirq %lld thread %lld early %lld foreign %lld\n",
		   atomic64_read(&in_hardirqs), atomic64_read(&in_softirqs),
		   atomic64_read(&in_threads), atomic64_read(&early), atomic64_read(&foreign));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(packets);

/* One s64 for each packet with a plan: its error in cycles. */
static ssize_t errors_read(struct file *file, char __user *user, size_t size, loff_t *pos)
{
	u32 n = min_t(u32, atomic_read(&records_n), records_max), i, found = 0;
	s64 *errors = vmalloc(array_size(max(n, 1U), sizeof(*errors)));
	ssize_t ret;

	if (!errors)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (records[i].planned)
			errors[found++] = (s64)(records[i].tsc - records[i].planned);
	ret = simple_read_from_buffer(user, size, pos, errors, found * sizeof(*errors));
	vfree(errors);
	return ret;
}

static const struct file_operations errors_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = errors_read,
};

/* struct sink_record of each packet, in the order of departure. */
static ssize_t departures_read(struct file *file, char __user *user, size_t size, loff_t *pos)
{
	u32 n = min_t(u32, atomic_read(&records_n), records_max);

	return simple_read_from_buffer(user, size, pos, records, n * sizeof(*records));
}

static const struct file_operations departures_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = departures_read,
};

/* Flow of each packet, u32, in the order of departure. */
static ssize_t flows_read(struct file *file, char __user *user, size_t size, loff_t *pos)
{
	u32 n = min_t(u32, atomic_read(&records_n), records_max);

	return simple_read_from_buffer(user, size, pos, record_flows, n * sizeof(*record_flows));
}

static const struct file_operations flows_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = flows_read,
};

static ssize_t launches_read(struct file *file, char __user *user, size_t size, loff_t *pos)
{
	u32 n = min_t(u32, atomic_read(&launches_n), records_max);

	return simple_read_from_buffer(user, size, pos, launch_records,
				       n * sizeof(*launch_records));
}

static const struct file_operations launches_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = launches_read,
};

static ssize_t reset_write(struct file *file, const char __user *user, size_t size, loff_t *pos)
{
	sink_account_reset();
	return size;
}

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = reset_write,
};

/**
 * sink_account_files() - create the debugfs files
 * @directory:	their directory
 */
void sink_account_files(struct dentry *directory)
{
	debugfs_create_file("packets", 0400, directory, NULL, &packets_fops);
	debugfs_create_file("errors", 0400, directory, NULL, &errors_fops);
	debugfs_create_file("departures", 0400, directory, NULL, &departures_fops);
	debugfs_create_file("flows", 0400, directory, NULL, &flows_fops);
	debugfs_create_file("launches", 0400, directory, NULL, &launches_fops);
	debugfs_create_file("reset", 0200, directory, NULL, &reset_fops);
}

/**
 * sink_account_init() - allocate the memory
 * @record_count:	number of departures to keep
 * @packet_count:	maximum number of packets in a flow
 *
 * Return: 0, or -ENOMEM.
 */
int sink_account_init(u32 record_count, u32 packet_count)
{
	unsigned int i;

	records_max = record_count;
	packets_max = packet_count;
	records = vcalloc(max(records_max, 1U), sizeof(*records));
	record_flows = vcalloc(max(records_max, 1U), sizeof(*record_flows));
	launch_records = vcalloc(max(records_max, 1U), sizeof(*launch_records));
	if (!records || !record_flows || !launch_records) {
		sink_account_exit();
		return -ENOMEM;
	}
	for (i = 0; i < SINK_FLOWS; i++) {
		flows[i].seen = vcalloc(BITS_TO_LONGS(packets_max) + 1, sizeof(long));
		if (!flows[i].seen) {
			sink_account_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * sink_account_exit() - free the memory
 */
void sink_account_exit(void)
{
	unsigned int i;

	for (i = 0; i < SINK_FLOWS; i++)
		vfree(flows[i].seen);
	vfree(launch_records);
	vfree(record_flows);
	vfree(records);
}
