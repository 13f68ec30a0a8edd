/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs without libc, in guests whose kernel's compiler has none: the start of the process,
 * system calls, and a little text.
 */
#ifndef START_H
#define START_H

#include "apic_timer_user.h"

#ifdef __x86_64__
#define NR_READ			0
#define NR_WRITE		1
#define NR_POLL			7
#define NR_EXIT			231
#define NR_CLOCK_NANOSLEEP	230
#define NR_MLOCKALL		151
#define NR_SCHED_SETSCHEDULER	144
#define NR_PRCTL		157
#define NR_TIMERFD_CREATE	283
#define NR_TIMERFD_SETTIME	286
#else
#define NR_READ			3
#define NR_WRITE		4
#define NR_POLL			168
#define NR_EXIT			252
#define NR_SCHED_SETSCHEDULER	156
#endif

#define sys(nr, a, b, c, d)	at_syscall(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

int run(int argc, char **argv);

__attribute__((used)) static void begin(long *stack)
{
	sys(NR_EXIT, run((int)stack[0], (char **)(stack + 1)), 0, 0, 0);
}

#ifdef __x86_64__
__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");
#else
__asm__(".globl _start\n_start:\n\tmov %esp, %eax\n\tand $-16, %esp\n\tsub $12, %esp\n\t"
	"push %eax\n\tcall begin\n");
#endif

/* gcc turns loops into calls of these. */
__attribute__((used)) void *memset(void *to, int c, size_t n)
{
	char *p = to;

	while (n--) {
		*p++ = (char)c;
		__asm__ volatile("" : : : "memory");
	}
	return to;
}

__attribute__((used)) void *memcpy(void *to, const void *from, size_t n)
{
	const char *q = from;
	char *p = to;

	while (n--) {
		*p++ = *q++;
		__asm__ volatile("" : : : "memory");
	}
	return to;
}

static inline int equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static inline void say(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	sys(NR_WRITE, 1, text, n, 0);
}

/* Print a 32-bit number: 64 bits need a division that 32-bit programs get from a library. */
static inline void say_number(long number)
{
	char text[12], *p = text + sizeof(text);
	unsigned int n = number < 0 ? -(unsigned int)number : (unsigned int)number;

	*--p = 0;
	do {
		*--p = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	if (number < 0)
		*--p = '-';
	say(p);
}

/* Print the fault, with a result. Return: the exit status for it. */
static inline int wrong(const char *what, long ret)
{
	say(what);
	say(" ");
	say_number(ret);
	say("\n");
	return 1;
}

static inline uint64_t number(const char *text)
{
	uint64_t n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + (uint64_t)(*text++ - '0');
	return n;
}

#endif /* START_H */
