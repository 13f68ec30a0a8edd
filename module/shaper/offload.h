/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_OFFLOAD_H
#define _SHAPER_OFFLOAD_H

#include <linux/netlink.h>
#include <net/sch_generic.h>

int shaper_offload(struct Qdisc *sch, bool was, bool wanted, struct netlink_ext_ack *extack);
void shaper_offload_launch(struct sk_buff *skb, u64 at);

#endif /* _SHAPER_OFFLOAD_H */
