/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_HARD_H
#define _SHAPER_HARD_H

void shaper_handler(unsigned long long now, unsigned long data);

#endif /* _SHAPER_HARD_H */
