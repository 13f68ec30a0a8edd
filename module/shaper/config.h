/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CONFIG_H
#define _SHAPER_CONFIG_H

#include <linux/netlink.h>
#include <net/gen_stats.h>

#include "shaper.h"

extern const struct shaper_config shaper_defaults;
extern struct netlink_range_validation shaper_burst_range;
extern struct netlink_range_validation_signed shaper_overhead_range;

int shaper_configure(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
void shaper_convert(struct shaper *q);
int shaper_dump(struct Qdisc *sch, struct sk_buff *skb);
int shaper_dump_stats(struct Qdisc *sch, struct gnet_dump *dump);

#endif /* _SHAPER_CONFIG_H */
