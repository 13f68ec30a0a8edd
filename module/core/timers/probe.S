/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The handler whose call is measured.
 */
#include <linux/cfi_types.h>
#include <linux/linkage.h>

/*
 * apic_timer_probe(now, data) - read the TSC with the first instruction
 *
 * The read is not ordered, because a handler's read need not be either. Stores
 * the TSC where data points to.
 */
SYM_TYPED_FUNC_START(apic_timer_probe)
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, (%rsi)
	RET
SYM_FUNC_END(apic_timer_probe)
