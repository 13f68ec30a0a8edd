/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEBUGFS_H
#define _APIC_TIMER_DEBUGFS_H

#ifdef CONFIG_DEBUG_FS
void apic_timer_debugfs_init(void);
void apic_timer_debugfs_exit(void);
#else
static inline void apic_timer_debugfs_init(void) {}
static inline void apic_timer_debugfs_exit(void) {}
#endif

#endif /* _APIC_TIMER_DEBUGFS_H */
