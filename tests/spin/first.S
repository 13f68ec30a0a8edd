/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A handler that reads the TSC with its first instruction, before the CPU has finished earlier
 * ones, and then reads its data.
 */
	.section .text.handler, "ax", @progbits
	.balign	4096
/* handler(now, data): began, value, got */
	.globl	handler
handler:
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, began(%rip)
	movq	(%rsi), %rax
	movq	%rax, value(%rip)
	lfence
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, got(%rip)
	ret
	.type	handler, @function
	.size	handler, . - handler
	.balign	4096
