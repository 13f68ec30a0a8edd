/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_EPOCH_H
#define _SHAPER_EPOCH_H

#include "shaper.h"

void shaper_epoch_add(struct shaper *q);
void shaper_epoch_del(struct shaper *q);
int shaper_epoch_init(void);
void shaper_epoch_exit(void);

#endif /* _SHAPER_EPOCH_H */
