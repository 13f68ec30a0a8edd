/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_OBJECTS_H
#define _APIC_TIMER_OBJECTS_H

/*
 * A kernel with CONFIG_DEBUG_OBJECTS, booted with debug_objects, tracks which timers are
 * pending. It warns when a pending timer is initialised again, or when its memory is
 * freed (CONFIG_DEBUG_OBJECTS_FREE); the timer is then deleted first.
 */
struct apic_timer_list;

#ifdef CONFIG_DEBUG_OBJECTS
void apic_timer_objects_setup(int (*del)(struct apic_timer_list *timer));
void apic_timer_objects_init(struct apic_timer_list *timer);
void apic_timer_objects_activate(struct apic_timer_list *timer);
void apic_timer_objects_deactivate(struct apic_timer_list *timer);
#else
static inline void
apic_timer_objects_setup(int (*del)(struct apic_timer_list *timer))
{
}

static inline void apic_timer_objects_init(struct apic_timer_list *timer)
{
}

static inline void apic_timer_objects_activate(struct apic_timer_list *timer)
{
}

static inline void apic_timer_objects_deactivate(struct apic_timer_list *timer)
{
}
#endif

#endif /* _APIC_TIMER_OBJECTS_H */
