/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the kernel that module/core/timers/{dispatch.c,calibrate.c,probe.S} and hw/spin.h
 * need, for a process. Included before everything else; the kernel's headers are empty files.
 */
#ifndef _APIC_TIMER_SPIN_KERNEL_H
#define _APIC_TIMER_SPIN_KERNEL_H

/* In place of these headers */
#define _APIC_TIMER_TSC_H
#define _LINUX_APIC_TIMER_H

#ifdef __ASSEMBLER__

#define SYM_TYPED_FUNC_START(name)	.globl name; .balign 16; name:
#define SYM_FUNC_END(name)		.type name, @function; .size name, . - name
#define RET				ret
	.section .note.GNU-stack, "", @progbits
	.text

#else

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
/* As in the kernel, for %llu */
typedef unsigned long long u64;
typedef long long s64;

#define U64_MAX			ULLONG_MAX
#define S64_MAX			LLONG_MAX

#define noinline		__attribute__((noinline))
#ifdef __clang__
#define __noclone
#else
#define __noclone		__attribute__((noclone))
#endif
#define __aligned(n)		__attribute__((aligned(n)))
#define __section(s)		__attribute__((section(s)))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define barrier()		asm volatile("" : : : "memory")
#define OPTIMIZER_HIDE_VAR(x)	asm("" : "=r" (x) : "0" (x))
#define min(a, b)							\
({									\
	typeof(a) _a = (a);						\
	typeof(b) _b = (b);						\
									\
	_a < _b ? _a : _b;						\
})
#define max(a, b)							\
({									\
	typeof(a) _a = (a);						\
	typeof(b) _b = (b);						\
									\
	_a > _b ? _a : _b;						\
})
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define IS_ENABLED(option)	0
#define EXPORT_SYMBOL_GPL(name)
#define BIT(n)			(1UL << (n))
#define FIELD_GET(mask, value)	(((value) & (mask)) / ((mask) & -(mask)))
/* No timer here chooses a quantile. */
#define APIC_TIMER_COVER_MASK	0x0018U

/* One CPU, without interference: interference makes an expiry late. */
#define DEFINE_PER_CPU(type, name)	type name
#define DECLARE_PER_CPU(type, name)	extern type name
#define this_cpu_ptr(pointer)	(pointer)
#define raw_cpu_ptr(pointer)	(pointer)
#define this_cpu_inc(x)		((x)++)
#define this_cpu_add(x, n)	((x) += (n))
#define xchg(pointer, value)	__atomic_exchange_n(pointer, value, __ATOMIC_SEQ_CST)
#define smp_processor_id()	0
#define preempt_count()		0
#define preempt_count_set(n)	do { } while (0)
#define irqs_disabled()		true
#define local_irq_disable()	do { } while (0)
#define local_irq_enable()	do { } while (0)
#define lockdep_assert_irqs_disabled()	do { } while (0)
#define lockdep_assert_irqs_enabled()	do { } while (0)
#define prefetch(p)		__builtin_prefetch(p)

struct kernel_param_ops;
#define static_assert(e)	_Static_assert(e, #e)
#define module_param_cb(name, ops, arg, mode)				\
	static const void *const used_##name __attribute__((unused)) = (arg)
#define __MODULE_PARM_TYPE(name, type)	extern int no_parameter
#define MODULE_PARM_DESC(name, text)	extern int no_parameter
#define pr_warn(...)		fprintf(stderr, __VA_ARGS__)
#define pr_warn_once		pr_warn

/* Work that runs immediately */
struct irq_work {
	void (*function)(struct irq_work *work);
};

#define IRQ_WORK_INIT_HARD(f)	{ f }
#define irq_work_queue(work)	((work)->function(work))
#define irq_work_sync(work)	((void)(work))

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

#define X86_FEATURE_WAITPKG	"waitpkg"
#define X86_FEATURE_HYPERVISOR	"hypervisor"
#define X86_FEATURE_IBT		"ibt"
#define ENDBR_INSN_SIZE		0
#define TPAUSE_C01_STATE	1

extern bool has_waitpkg, has_hypervisor;

static inline u64 rdtsc(void)
{
	u32 low, high;

	asm volatile("rdtsc" : "=a" (low), "=d" (high));
	return (u64)high << 32 | low;
}

/* Like rdtsc_ordered() on today's CPUs. */
static inline u64 apic_timer_tsc_now(void)
{
	asm volatile("lfence" : : : "memory");
	return rdtsc();
}

/* No expiry is late enough to matter. */
static inline u64 apic_timer_ns_to_tsc(u64 ns)
{
	return S64_MAX;
}

static inline bool cpu_feature_enabled(const char *feature)
{
	return strcmp(feature, X86_FEATURE_WAITPKG) ? has_hypervisor : has_waitpkg;
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

#endif /* __ASSEMBLER__ */

#endif /* _APIC_TIMER_SPIN_KERNEL_H */
