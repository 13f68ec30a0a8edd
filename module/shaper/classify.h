/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CLASSIFY_H
#define _SHAPER_CLASSIFY_H

#include <linux/pkt_sched.h>
#include <linux/rcupdate.h>
#include <linux/xarray.h>

#include "shaper.h"

int shaper_classify(struct shaper *q, struct sk_buff *skb, struct sk_buff **to_free,
		    struct shaper_class **class);

/* Find a class by its number, ignoring the upper half. Return: the class, or NULL. */
static inline struct shaper_class *shaper_class_find(struct shaper *q, u32 classid)
{
	return xa_load(&q->classes.all, TC_H_MIN(classid));
}

/* Whether packets must be classified: there are classes, or filters, which may also drop. */
static inline bool shaper_classifies(const struct shaper *q)
{
	return q->classes.count || rcu_access_pointer(q->filters);
}

#endif /* _SHAPER_CLASSIFY_H */
