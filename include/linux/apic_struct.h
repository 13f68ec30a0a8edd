/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_APIC_STRUCT_H
#define _LINUX_APIC_STRUCT_H

/*
 * Copy structures of user space that begin with their size, and may grow: those
 * of /dev/apic_timer and /dev/apic_calendar. Code for fields that both have is
 * here, too.
 */

#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/time64.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

/**
 * apic_struct_in() - copy in from the user a structure that begins with its size
 * @to:		the kernel's structure
 * @ksize:	size of the kernel's structure, bytes
 * @least:	size of its first version, bytes
 * @from:	the user's structure
 * @usize:	set to the size of the user's structure, bytes
 *
 * Context: Task.
 * Return: 0; -EINVAL: too small; -E2BIG: fields that the kernel does not know are set;
 * -EFAULT.
 */
static inline int apic_struct_in(void *to, size_t ksize, size_t least,
				 const void __user *from, u32 *usize)
{
	if (get_user(*usize, (const u32 __user *)from))
		return -EFAULT;
	if (*usize < least)
		return -EINVAL;
	if (*usize > PAGE_SIZE)
		return -E2BIG;
	/* The user may change the size meanwhile; it is not read again. */
	return copy_struct_from_user(to, ksize, from, *usize);
}

/**
 * apic_struct_out() - copy a structure back, as far as the user knows it
 * @to:		the user's structure
 * @usize:	size of the user's structure, bytes
 * @from:	the kernel's structure
 * @ksize:	size of the kernel's structure, bytes
 *
 * Context: Task.
 * Return: 0 or -EFAULT.
 */
static inline int apic_struct_out(void __user *to, u32 usize, const void *from,
				  size_t ksize)
{
	return copy_to_user(to, from, min_t(size_t, usize, ksize)) ? -EFAULT : 0;
}

/**
 * apic_struct_epoch() - convert an epoch's number to the one that user space sees
 * @epoch:	the kernel's number: &apic_timer_info.tsc_epoch, &apic_timer_notice.epoch
 *
 * Context: Any.
 * Return: user space's number: the first epoch is 1, because 0 stands for "any".
 */
static inline u32 apic_struct_epoch(unsigned int epoch)
{
	return epoch + 1;
}

/**
 * apic_struct_mono() - convert a moment of the caller's CLOCK_MONOTONIC to the kernel's
 * @when:	ns, in the caller's time namespace
 *
 * As clock_nanosleep(2) does, by a function that modules cannot call. CLOCK_TAI is the same in
 * all namespaces.
 *
 * Context: Task.
 * Return: ns, KTIME_MAX at most; 0 for a moment before the kernel's clock began.
 */
static inline u64 apic_struct_mono(u64 when)
{
	s64 offset = 0;

	when = min_t(u64, when, KTIME_MAX);
	/* The namespace's clock is ahead by this. */
	if (IS_ENABLED(CONFIG_TIME_NS))
		offset = timespec64_to_ns(&current->nsproxy->time_ns->offsets.monotonic);
	when -= offset > 0 ? min_t(u64, when, offset) : (u64)offset;
	return min_t(u64, when, KTIME_MAX);
}

#endif /* _LINUX_APIC_STRUCT_H */
