/* SPDX-License-Identifier: GPL-2.0 */
/* The part of the header that linux/apic_timer.h needs, where there are no libc headers. */
#ifndef _STUB_LINUX_IOCTL_H
#define _STUB_LINUX_IOCTL_H

#define _IO(type, nr)	((type) << 8 | (nr))

#endif
