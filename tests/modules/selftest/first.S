/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A handler whose first instruction reads the TSC.
 */
#include <linux/cfi_types.h>
#include <linux/linkage.h>

/* selftest_first(now, data): selftest_first_ran(now, data, TSC) */
SYM_TYPED_FUNC_START(selftest_first)
	rdtsc
	shlq	$32, %rdx
	orq	%rax, %rdx
	jmp	selftest_first_ran
SYM_FUNC_END(selftest_first)
