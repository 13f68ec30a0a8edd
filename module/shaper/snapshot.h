/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_SNAPSHOT_H
#define _SHAPER_SNAPSHOT_H

#include "clock.h"

void shaper_read_clocks(struct shaper_pair *pair);

#endif /* _SHAPER_SNAPSHOT_H */
