/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernels that this module supports. dkms.conf and README.md repeat the
 * range; "make check" compares the three.
 */
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || \
	LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "apic_timer supports Linux 6.1 to 7.3"
#endif

#ifndef CONFIG_APIC_TIMER_SIM
#ifndef CONFIG_X86_64
#error "apic_timer needs a 64-bit x86 kernel (CONFIG_X86_64)"
#endif
#ifndef CONFIG_X86_LOCAL_APIC
#error "apic_timer needs CONFIG_X86_LOCAL_APIC"
#endif
#ifndef CONFIG_GENERIC_CLOCKEVENTS
#error "apic_timer needs CONFIG_GENERIC_CLOCKEVENTS"
#endif
#endif
