// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tell WORD...: tell a plug-in of QEMU a line, by the port that it listens to. No
 * device has this port. As root. No libc: see put.c.
 */

#define SYS_exit	60
#define SYS_ioperm	173

#define PORT		0xe9

static long sys(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static void say(char character)
{
	__asm__ volatile("outb %0, %1" : : "a"(character), "d"((unsigned short)PORT));
}

__attribute__((used)) void start(long *stack)
{
	long argc = stack[0], i;
	char **argv = (char **)(stack + 1);
	const char *at;

	if (argc < 2 || sys(SYS_ioperm, PORT, 1, 1))
		sys(SYS_exit, 2, 0, 0);
	for (i = 1; i < argc; i++) {
		for (at = argv[i]; *at; at++)
			say(*at);
		say(i + 1 < argc ? ' ' : '\n');
	}
	sys(SYS_exit, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
