/* SPDX-License-Identifier: GPL-2.0 */
/* What linux/apic_timer.h needs of the header, where there are no headers of libc. */
#ifndef _STUB_LINUX_IOCTL_H
#define _STUB_LINUX_IOCTL_H

#define _IO(type, nr)	((type) << 8 | (nr))

#endif
