/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_LEAVING_H
#define _APIC_CLOCK_LEAVING_H

#include <linux/types.h>

struct apic_clock_timer;
struct module;

#ifdef CONFIG_MODULES

bool apic_clock_timer_belongs_to(const struct apic_clock_timer *timer,
				 const struct module *module);
bool apic_clock_timer_is_leaving(const struct apic_clock_timer *timer);
void apic_clock_leave(const struct module *module);
void apic_clock_left(const struct module *module);

#else /* !CONFIG_MODULES: in a kernel tree there may be none */

static inline bool apic_clock_timer_is_leaving(const struct apic_clock_timer *timer)
{
	return false;
}

#endif

#endif /* _APIC_CLOCK_LEAVING_H */
