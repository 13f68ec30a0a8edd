/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_EPOCH_H
#define _SHAPER_EPOCH_H

#include "shaper.h"

/*
 * Whether the TSC has restarted since &shaper.epoch was @epoch. With PREEMPT_RT the machine may
 * be suspended between two steps of a thread that queues or sends a packet; the moments that the
 * thread knows are then invalid.
 */
static inline bool shaper_epoch_is_over(const struct shaper *q, u32 epoch)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT) && unlikely(READ_ONCE(q->epoch) != epoch);
}

void shaper_epoch_add(struct shaper *q);
void shaper_epoch_del(struct shaper *q);
int shaper_epoch_init(void);
void shaper_epoch_exit(void);

#endif /* _SHAPER_EPOCH_H */
