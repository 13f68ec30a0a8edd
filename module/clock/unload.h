/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_UNLOAD_H
#define _APIC_CLOCK_UNLOAD_H

#ifdef CONFIG_MODULES

int apic_clock_unload_init(void);
void apic_clock_unload_exit(void);

#else /* !CONFIG_MODULES: in a kernel tree there may be none */

static inline int apic_clock_unload_init(void)
{
	return 0;
}

static inline void apic_clock_unload_exit(void) {}

#endif

#endif /* _APIC_CLOCK_UNLOAD_H */
