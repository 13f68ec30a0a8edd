/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SOFT_H
#define _SHAPER_SOFT_H

#include <net/sch_generic.h>

struct sk_buff *shaper_dequeue(struct Qdisc *sch);

#endif /* _SHAPER_SOFT_H */
