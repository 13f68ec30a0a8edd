/* SPDX-License-Identifier: GPL-2.0 */
/*
 * <linux/syscore_ops.h>
 *
 * register_syscore(), whose callbacks take a pointer: in 7.x, and in later 6.12
 * stable kernels; register_syscore_ops() before. module/Kbuild checks which of
 * them exists.
 */
#ifndef _APIC_TIMER_COMPAT_SYSCORE_H
#define _APIC_TIMER_COMPAT_SYSCORE_H

#include <linux/syscore_ops.h>

#if APIC_TIMER_HAS_REGISTER_SYSCORE

#define apic_timer_syscore_register	register_syscore
#define apic_timer_syscore_unregister	unregister_syscore

/* Define a static struct syscore called @name, whose callbacks take no argument. */
#define APIC_TIMER_DEFINE_SYSCORE(name, _suspend, _resume)		\
static int name##_suspend(void *unused)					\
{									\
	return _suspend();						\
}									\
									\
static void name##_resume(void *unused)					\
{									\
	_resume();							\
}									\
									\
static const struct syscore_ops name##_ops = {				\
	.suspend = name##_suspend,					\
	.resume = name##_resume,					\
};									\
									\
static struct syscore name = { .ops = &name##_ops }

#else

#define apic_timer_syscore_register	register_syscore_ops
#define apic_timer_syscore_unregister	unregister_syscore_ops

#define APIC_TIMER_DEFINE_SYSCORE(name, _suspend, _resume)		\
static struct syscore_ops name = {					\
	.suspend = _suspend,						\
	.resume = _resume,						\
}

#endif

#endif /* _APIC_TIMER_COMPAT_SYSCORE_H */
