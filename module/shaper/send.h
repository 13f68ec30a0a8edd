/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SEND_H
#define _SHAPER_SEND_H

#include "shaper.h"

void shaper_arm(struct shaper *q);
bool shaper_join(struct shaper *q, struct sk_buff *skb);
void shaper_handler(unsigned long long now, unsigned long data);
struct sk_buff *shaper_dequeue(struct Qdisc *sch);
void shaper_report(struct sk_buff *skb, u32 error, u8 code);

#endif /* _SHAPER_SEND_H */
