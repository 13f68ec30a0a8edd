/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What <linux/sch_apic.h> needs of it: the plug-in is built where nothing but a
 * compiler is installed, and to the same bytes on any machine.
 */
#ifndef _APIC_STANDIN_LINUX_TYPES_H
#define _APIC_STANDIN_LINUX_TYPES_H

#include <stdint.h>

typedef uint8_t __u8;
typedef int32_t __s32;
typedef uint32_t __u32;
typedef uint64_t __u64;

#endif /* _APIC_STANDIN_LINUX_TYPES_H */
