/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_REFUSE_H
#define _APIC_TIMER_REFUSE_H

/*
 * A mistake of the caller gives an error and one message, not a WARN(): with
 * panic_on_warn set, that would take the machine down.
 */
#include <linux/printk.h>

#include "lib/stats.h"

/* Who called the exported function that this is in. */
#define APIC_TIMER_CALLER	__builtin_return_address(0)

/* Refuse a call: counted, and logged once per kind of mistake. */
#define apic_timer_refuse(err, caller, fmt, ...)			\
({									\
	apic_timer_stats_inc(REFUSED);					\
	pr_warn_once("%pS: " fmt "\n", caller, ##__VA_ARGS__);		\
	(err);								\
})

#endif /* _APIC_TIMER_REFUSE_H */
