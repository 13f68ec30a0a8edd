/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_OFFLOAD_H
#define _SHAPER_OFFLOAD_H

#include <linux/netlink.h>
#include <net/sch_generic.h>

int shaper_offload_on(struct Qdisc *sch, struct netlink_ext_ack *extack);
void shaper_offload_off(struct Qdisc *sch, u64 ahead_ns, bool destroyed);
void shaper_offload_launch(struct sk_buff *skb, u64 at);

#endif /* _SHAPER_OFFLOAD_H */
