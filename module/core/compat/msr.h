/* SPDX-License-Identifier: GPL-2.0 */
/*
 * <asm/msr.h>
 *
 * native_wrmsrq(): from 6.16; native_wrmsrl() before.
 */
#ifndef _APIC_TIMER_COMPAT_MSR_H
#define _APIC_TIMER_COMPAT_MSR_H

#include <linux/version.h>
#include <asm/msr.h>

static __always_inline void apic_timer_native_wrmsrq(u32 msr, u64 value)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	native_wrmsrq(msr, value);
#else
	native_wrmsrl(msr, value);
#endif
}

#endif /* _APIC_TIMER_COMPAT_MSR_H */
