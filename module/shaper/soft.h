/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SOFT_H
#define _SHAPER_SOFT_H

#include <net/sch_generic.h>

#include "shaper.h"

void shaper_tell_parents(struct shaper *q);
struct sk_buff *shaper_dequeue(struct Qdisc *sch);

#endif /* _SHAPER_SOFT_H */
