/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_THREAD_H
#define _SHAPER_THREAD_H

#include "shaper.h"

struct task_struct *shaper_thread_create(struct shaper *q, u32 cpu);

#endif /* _SHAPER_THREAD_H */
