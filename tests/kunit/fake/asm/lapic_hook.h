/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_KUNIT_LAPIC_HOOK_H
#define _APIC_TIMER_KUNIT_LAPIC_HOOK_H

/* The module's interface in a patched kernel's <asm/lapic_hook.h> (patches/). */

#include <linux/percpu-defs.h>
#include <linux/types.h>

struct clock_event_device;
struct pt_regs;

struct lapic_timer_hook {
	bool (*interrupt)(struct pt_regs *regs);
	void (*event)(struct clock_event_device *device);
	bool (*program)(struct clock_event_device *device, u64 tsc);
	bool (*start)(struct clock_event_device *device);
	bool (*stop)(struct clock_event_device *device);
};

DECLARE_PER_CPU(bool, lapic_timer_hook_first);

int lapic_timer_hook_register(const struct lapic_timer_hook *hook);
void lapic_timer_hook_unregister(const struct lapic_timer_hook *hook);

static inline bool lapic_timer_hook_exclusive(void)
{
	return false;
}

#endif /* _APIC_TIMER_KUNIT_LAPIC_HOOK_H */
