/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_CLASSIFY_H
#define _SHAPER_CLASSIFY_H

#include <linux/rcupdate.h>
#include <net/sch_generic.h>

#include "shaper.h"

/**
 * struct shaper_freed - packets that are to be freed when no lock is held
 * @first:	the first of them, the next ones by &sk_buff.next
 * @last:	the last
 * @count:	their number
 * @len:	their bytes
 */
struct shaper_freed {
	struct sk_buff *first;
	struct sk_buff *last;
	u32 count;
	u32 len;
};

extern const struct Qdisc_class_ops shaper_class_ops;

void shaper_freed_add(struct shaper_freed *freed, struct shaper *q, struct shaper_edf *edf);
void shaper_freed_free(struct shaper_freed *freed);
void shaper_classes_reset(struct shaper *q, struct shaper_freed *freed);
void shaper_classes_exit(struct shaper *q);
int shaper_classify(struct shaper *q, struct sk_buff *skb, struct sk_buff **to_free,
		    struct shaper_class **class);

/* Whether packets are to be looked at: there are classes, or filters, which may also drop. */
static inline bool shaper_classifies(const struct shaper *q)
{
	return q->classes.count || rcu_access_pointer(q->filters);
}

#endif /* _SHAPER_CLASSIFY_H */
