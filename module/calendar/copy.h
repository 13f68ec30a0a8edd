/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CALENDAR_COPY_H
#define _APIC_CALENDAR_COPY_H

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

/**
 * calendar_copy_in() - copy a structure that begins with its size from the user
 * @to:		the kernel's
 * @ksize:	size of the kernel's
 * @least:	size that it had at first
 * @from:	the user's
 * @usize:	size of the user's
 *
 * Return: 0, -EINVAL: too small; -E2BIG: has something that the kernel doesn't know;
 * -EFAULT.
 */
static inline int calendar_copy_in(void *to, size_t ksize, size_t least,
				   const void __user *from, u32 *usize)
{
	if (get_user(*usize, (const u32 __user *)from))
		return -EFAULT;
	if (*usize < least)
		return -EINVAL;
	if (*usize > PAGE_SIZE)
		return -E2BIG;
	/* It may have changed since; it is not looked at again. */
	return copy_struct_from_user(to, ksize, from, *usize);
}

/**
 * calendar_copy_out() - copy a structure back, as far as the user knows it
 * @to:		the user's
 * @usize:	size of the user's
 * @from:	the kernel's
 * @ksize:	size of the kernel's
 *
 * Return: 0 or -EFAULT.
 */
static inline int calendar_copy_out(void __user *to, u32 usize, const void *from,
				    size_t ksize)
{
	return copy_to_user(to, from, min_t(size_t, usize, ksize)) ? -EFAULT : 0;
}

#endif /* _APIC_CALENDAR_COPY_H */
