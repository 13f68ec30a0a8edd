/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_APIC_VERSION_H
#define _LINUX_APIC_VERSION_H

/*
 * The version of the sources, in the modinfo of each module: by that, DKMS knows that an installed
 * module is older. dkms.conf repeats it; "make check" compares them.
 */
#define APIC_TIMER_VERSION "0.1.0"

#endif /* _LINUX_APIC_VERSION_H */
