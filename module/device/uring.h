/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_URING_H
#define _APIC_TIMER_DEVICE_URING_H

struct io_uring_cmd;

/*
 * A pending command keeps its ring, and a process that executes a program, from ending
 * until it is cancelled, which kernels before 6.7 have no way to ask for. There the file
 * has no commands: -EOPNOTSUPP.
 */
#if APIC_TIMER_HAS_URING_CANCEL
int device_uring(struct io_uring_cmd *command, unsigned int issue_flags);
#else
#define device_uring	NULL
#endif

#endif /* _APIC_TIMER_DEVICE_URING_H */
