/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_WATCHED_H
#define _APIC_CLOCK_WATCHED_H

#include <linux/apic_clock.h>

enum apic_clock_watch apic_clock_watched(void);

#endif /* _APIC_CLOCK_WATCHED_H */
