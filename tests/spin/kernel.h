/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What module/spin.h wants of the kernel, for a process.
 */
#ifndef _APIC_TIMER_SPIN_KERNEL_H
#define _APIC_TIMER_SPIN_KERNEL_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define noinline		__attribute__((noinline))
#define __aligned(n)		__attribute__((aligned(n)))
#define __section(s)		__attribute__((section(s)))
#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))

#define X86_FEATURE_WAITPKG	"waitpkg"
#define TPAUSE_C01_STATE	1

extern bool has_waitpkg;

static inline u64 rdtsc(void)
{
	return __builtin_ia32_rdtsc();
}

/* As rdtsc_ordered() is on today's CPUs. */
static inline u64 apic_timer_tsc_now(void)
{
	__builtin_ia32_lfence();
	return rdtsc();
}

static inline bool cpu_feature_enabled(const char *feature)
{
	return has_waitpkg;
}

static inline void __tpause(u32 state, u32 high, u32 low)
{
	asm volatile(".byte 0x66, 0x0f, 0xae, 0xf1"
		     : : "c" (state), "d" (high), "a" (low));
}

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

#endif /* _APIC_TIMER_SPIN_KERNEL_H */
