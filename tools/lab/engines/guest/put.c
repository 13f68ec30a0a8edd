// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * put NAME < FILE - hand a file to the host from a guest in virtual time.
 *
 * Disks and network cards are served by the host's threads, at moments that
 * differ from run to run. Memory is not: this copies standard input into the
 * memory of an ivshmem device, which the host maps from a file.
 *
 * The memory is an array of records, each at a multiple of 8 bytes: u64 length
 * plus one (0: end of the array), 56 bytes of name, the data. The length is
 * written last.
 *
 * No libc: it is compiled where no libc headers are.
 */

#define SYS_read	0
#define SYS_open	2
#define SYS_mmap	9
#define SYS_exit	60

#define NAME_SIZE	56
#define HEAD_SIZE	64

typedef unsigned long u64;

static long sys(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static char buffer[65536];

/* argv: put DEVICE SIZE NAME, where SIZE is in MiB; exit status 1: it failed. */
static int put(char **argv)
{
	u64 size = 0, at = 0, length = 0;
	volatile u64 *head;
	char *memory, *p;
	long fd, got, i;

	for (p = argv[2]; *p; p++)
		size = size * 10 + (u64)(*p - '0');
	size <<= 20;
	fd = sys(SYS_open, (long)argv[1], 2 /* O_RDWR */, 0, 0, 0, 0);
	if (fd < 0)
		return 1;
	memory = (char *)sys(SYS_mmap, 0, (long)size, 3 /* RW */, 1 /* SHARED */, fd, 0);
	if ((long)memory < 0 && (long)memory > -4096)
		return 1;

	for (;;) {
		if (at + HEAD_SIZE > size)
			return 1;
		head = (volatile u64 *)(memory + at);
		if (!*head)
			break;
		at += HEAD_SIZE + ((*head - 1 + 7) & ~7UL);
	}
	p = memory + at + sizeof(u64);
	for (i = 0; i < NAME_SIZE - 1 && argv[3][i]; i++)
		p[i] = argv[3][i];
	p = memory + at + HEAD_SIZE;
	while ((got = sys(SYS_read, 0, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		if (at + HEAD_SIZE + length + (u64)got > size)
			return 1;
		for (i = 0; i < got; i++)
			p[length + (u64)i] = buffer[i];
		length += (u64)got;
	}
	if (got < 0)
		return 1;
	*head = length + 1;
	return 0;
}

__attribute__((used)) static void start(long *stack)
{
	int status = 1;

	if (stack[0] == 4)
		status = put((char **)(stack + 1));
	sys(SYS_exit, status, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
