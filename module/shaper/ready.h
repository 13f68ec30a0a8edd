/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_READY_H
#define _SHAPER_READY_H

#include "shaper.h"

int shaper_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);

#endif /* _SHAPER_READY_H */
