/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_APIC_STRUCT_H
#define _LINUX_APIC_STRUCT_H

/*
 * Structures of user space that begin with their size, and may grow: those of
 * /dev/apic_timer and /dev/apic_calendar. What both have in them is here, too.
 */

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

/**
 * apic_struct_in() - copy a structure that begins with its size from the user
 * @to:		the kernel's
 * @ksize:	size of the kernel's, bytes
 * @least:	size that it had at first, bytes
 * @from:	the user's
 * @usize:	set: size of the user's, bytes
 *
 * Context: Task.
 * Return: 0, -EINVAL: too small; -E2BIG: has something that the kernel doesn't know;
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
	/* The user may change its size since; it is not looked at again. */
	return copy_struct_from_user(to, ksize, from, *usize);
}

/**
 * apic_struct_out() - copy a structure back, as far as the user knows it
 * @to:		the user's
 * @usize:	size of the user's, bytes
 * @from:	the kernel's
 * @ksize:	size of the kernel's, bytes
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
 * apic_struct_epoch() - number an epoch of the TSC as users do
 * @epoch:	as the kernel does: &apic_timer_info.tsc_epoch, &apic_timer_notice.epoch
 *
 * Context: Any.
 * Return: its number: the first is 1, as 0 stands for "whichever".
 */
static inline u32 apic_struct_epoch(unsigned int epoch)
{
	return epoch + 1;
}

#endif /* _LINUX_APIC_STRUCT_H */
