/* SPDX-License-Identifier: GPL-2.0 */
/* The part of the header that linux/apic_timer.h needs, where there are no libc headers. */
#ifndef _STUB_LINUX_TYPES_H
#define _STUB_LINUX_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
#define __aligned_u64	__u64 __attribute__((aligned(8)))

#endif
