// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_indirect: uses no symbol of apic_timer, but has a timer through apic_timer_crowd, and
 * leaves it pending.
 */
/* Without the reference that ties a consumer to the interface: it is a symbol of apic_timer. */
#define APIC_TIMER_DECLARATIONS_ONLY
#include <linux/apic_timer.h>
#include <linux/module.h>

#include "crowd.h"

static void indirect_handler(unsigned long long now, unsigned long data)
{
}

static DEFINE_APIC_TIMER(timer, indirect_handler, 0);

static int __init indirect_init(void)
{
	timer.expires = 1ULL << 62;
	return apic_timer_crowd_add(&timer);
}

static void __exit indirect_exit(void)
{
}

module_init(indirect_init);
module_exit(indirect_exit);

MODULE_DESCRIPTION("Test of apic_timer: a timer by way of another module");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
