/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CLASS_OPS_H
#define _SHAPER_CLASS_OPS_H

#include <net/sch_generic.h>

#include "freed.h"
#include "shaper.h"

extern const struct Qdisc_class_ops shaper_class_ops;

void shaper_classes_reset(struct shaper *q, struct shaper_freed *freed);
void shaper_classes_exit(struct shaper *q);

#endif /* _SHAPER_CLASS_OPS_H */
