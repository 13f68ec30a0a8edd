// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * timex tai N		set the offset of TAI to UTC, seconds
 * timex status N	set the status: 16 inserts a leap second at the end of the
 *			UTC day, 32 deletes one
 *
 * What adjtimex(8) of busybox has no option for. No libc: see put.c.
 */

#define SYS_exit	60
#define SYS_adjtimex	159

#define ADJ_STATUS	0x10
#define ADJ_TAI		0x80

/* struct timex, as far as it is used */
static struct {
	unsigned int modes;
	long offset, freq, maxerror, esterror;
	int status;
	long constant;
	long rest[24];
} timex;

static long sys(long nr, long a)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr), "D"(a) : "rcx", "r11", "memory");
	return ret;
}

__attribute__((used)) void start(long *stack)
{
	long argc = stack[0], value = 0;
	char **argv = (char **)(stack + 1);
	const char *digit;

	if (argc != 3)
		sys(SYS_exit, 2);
	for (digit = argv[2]; *digit >= '0' && *digit <= '9'; digit++)
		value = value * 10 + *digit - '0';
	if (argv[1][0] == 't') {
		timex.modes = ADJ_TAI;
		timex.constant = value;
	} else {
		timex.modes = ADJ_STATUS;
		timex.status = value;
	}
	sys(SYS_exit, sys(SYS_adjtimex, (long)&timex) < 0);
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
