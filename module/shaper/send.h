/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SEND_H
#define _SHAPER_SEND_H

#include "path.h"
#include "shaper.h"

/**
 * struct shaper_sending - a packet that a sender has taken, with its data that are needed later
 * @start:	argument of shaper_start(); its moment is when to hand the packet over
 * @at:		its moment, absolute TSC
 * @flow:	its flow, or NULL
 * @class:	its class, or NULL; set after sending, and valid while the sender holds q->lock
 * @len:	its length for the accounts, bytes
 * @segs:	number of packets on the wire
 * @generation:	&shaper.generation when it was taken
 * @mode:	TC_APIC_MODE_* by which it is sent; %TC_APIC_MODE_AUTO: the kernel sends it
 * @planned:	it had a moment, of its own or by the rate, for which it can be late
 * @launched:	the device has its moment, by offload
 * @taken:	the driver has it
 */
struct shaper_sending {
	struct shaper_start start;
	u64 at;
	struct shaper_flow *flow;
	struct shaper_class *class;
	unsigned int len;
	unsigned int segs;
	u32 generation;
	u32 mode;
	bool planned;
	bool launched;
	bool taken;
};

bool shaper_schedule(struct shaper *q);
void shaper_kick(struct shaper *q);
void shaper_take(struct shaper *q, struct sk_buff *skb, u64 at, struct shaper_sending *sending,
		 enum shaper_sender sender);
void shaper_give(struct shaper_sending *sending, u32 mode);
struct sk_buff *shaper_finish(struct shaper *q, struct shaper_sending *sending);

#endif /* _SHAPER_SEND_H */
