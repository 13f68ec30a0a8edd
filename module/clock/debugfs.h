/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_DEBUGFS_H
#define _APIC_CLOCK_DEBUGFS_H

#ifdef CONFIG_DEBUG_FS
void apic_clock_debugfs_init(void);
void apic_clock_debugfs_exit(void);
#else
static inline void apic_clock_debugfs_init(void)
{
}

static inline void apic_clock_debugfs_exit(void)
{
}
#endif

#endif /* _APIC_CLOCK_DEBUGFS_H */
