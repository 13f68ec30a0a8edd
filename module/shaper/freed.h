/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_FREED_H
#define _SHAPER_FREED_H

#include <linux/skbuff.h>

#include "edf.h"
#include "shaper.h"

/**
 * struct shaper_freed - list of packets to be freed when no lock is held
 * @first:	first packet, linked by &sk_buff.next
 * @last:	last packet
 * @count:	their number
 * @len:	their bytes
 */
struct shaper_freed {
	struct sk_buff *first;
	struct sk_buff *last;
	u32 count;
	u32 len;
};

void shaper_freed_add_one(struct shaper_freed *freed, struct shaper *q, struct sk_buff *skb);
void shaper_freed_add(struct shaper_freed *freed, struct shaper *q, struct shaper_edf *edf);
void shaper_freed_add_list(struct shaper_freed *freed, struct shaper *q, struct sk_buff *first);
void shaper_freed_free(struct shaper_freed *freed);

#endif /* _SHAPER_FREED_H */
