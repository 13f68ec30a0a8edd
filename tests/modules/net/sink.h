/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_SINK_H
#define _APIC_TIMER_SINK_H

#include <linux/atomic.h>
#include <linux/skbuff.h>
#include <linux/types.h>

#define SINK_FLOWS	16		/* flow numbers are below this */
#define SINK_MAGIC	0x4150494354494d45ULL

/**
 * struct sink_payload - the first bytes of the UDP payload, as the lab's udpsend writes them
 * @magic:	SINK_MAGIC, big endian
 * @planned:	planned departure, ns of @clock; 0 if only the qdisc knows it
 * @clock:	CLOCK_MONOTONIC, CLOCK_REALTIME or CLOCK_TAI
 * @flow:	number of the flow
 * @seq:	sequence number in the flow, from 0
 *
 * All members except @magic are in the byte order of the machine, which is also the sender.
 */
struct sink_payload {
	__be64 magic;
	u64 planned;
	u32 clock;
	u32 flow;
	u64 seq;
} __packed;

/* account.c */
int sink_account_init(u32 records, u32 packets);
void sink_account_exit(void);
void sink_account(const struct sk_buff *skb, u64 tsc, bool launches);
void sink_account_reset(void);

struct dentry;
struct seq_file;
void sink_account_files(struct dentry *directory);

/* validate.c */
extern atomic_t sink_validated;

#endif /* _APIC_TIMER_SINK_H */
