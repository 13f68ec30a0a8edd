/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_URING_H
#define _APIC_TIMER_DEVICE_URING_H

struct io_uring_cmd;

/*
 * Until a pending command is cancelled, its ring cannot be closed, and its process cannot
 * execute another program. Kernels before 6.7 have no way to ask a driver to cancel. There
 * the file has no commands: -EOPNOTSUPP.
 */
#if APIC_TIMER_HAS_URING_CANCEL
int device_uring(struct io_uring_cmd *command, unsigned int issue_flags);
#else
#define device_uring	NULL
#endif

#endif /* _APIC_TIMER_DEVICE_URING_H */
