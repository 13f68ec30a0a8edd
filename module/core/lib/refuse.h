/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_REFUSE_H
#define _APIC_TIMER_REFUSE_H

/*
 * Misuse causes an error and one message, not a WARN(), which would take down a
 * machine with panic_on_warn.
 */
#include <linux/printk.h>

#include "lib/stats.h"

/* Caller of the exported function that uses this. */
#define APIC_TIMER_CALLER	__builtin_return_address(0)

/* Reject a call: count it, and warn once per call site. */
#define apic_timer_refuse(err, caller, fmt, ...)			\
({									\
	apic_timer_stats_inc(REFUSED);					\
	pr_warn_once("%pS: " fmt "\n", caller, ##__VA_ARGS__);		\
	(err);								\
})

#endif /* _APIC_TIMER_REFUSE_H */
