/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The handler whose call is measured.
 */
#include <linux/cfi_types.h>
#include <linux/linkage.h>

/*
 * apic_timer_probe(now, data) - read the TSC with the first instruction
 *
 * Nothing orders the read, as nothing need do so in another module's handler.
 * Puts the TSC where data points to.
 */
SYM_TYPED_FUNC_START(apic_timer_probe)
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, (%rsi)
	RET
SYM_FUNC_END(apic_timer_probe)
