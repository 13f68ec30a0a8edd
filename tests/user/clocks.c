// SPDX-License-Identifier: GPL-2.0
/*
 * clocks NAME COUNT: print the cost of reading a clock in a program.
 *
 * Prints the TSC cycles of COUNT reads, minus those of the same number of empty loops. NAME is
 * rdtsc, lfence_rdtsc, rdtscp, gettimeofday, time, monotonic, realtime, raw, coarse, tai (by the
 * vDSO), syscall (clock_gettime of CLOCK_MONOTONIC as a system call), or getppid, the cheapest
 * system call.
 */
#include "start.h"

#define NR_CLOCK_GETTIME	228
#define NR_GETPPID		110

typedef int clock_gettime_t(int clock, void *time);
typedef int gettimeofday_t(void *time, void *zone);

static clock_gettime_t *vdso_clock_gettime;
static gettimeofday_t *vdso_gettimeofday;

/* The needed part of <elf.h>, which the kernel's compiler lacks. */
struct elf_file {
	unsigned char ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, parts_at, sections_at;
	uint32_t flags;
	uint16_t size, part_size, parts;
};

struct elf_part {
	uint32_t type, flags;
	uint64_t offset, address;
	uint64_t others[4];
};

struct elf_dynamic {
	int64_t tag;
	uint64_t value;
};

struct elf_symbol {
	uint32_t name;
	uint8_t info, other;
	uint16_t section;
	uint64_t value, size;
};

#define PART_LOAD	1
#define PART_DYNAMIC	2
#define TAG_HASH	4
#define TAG_NAMES	5
#define TAG_SYMBOLS	6
#define AUX_VDSO	33

/* Symbols of the library that the kernel maps into each process. */
static void find_vdso(const char *base)
{
	const struct elf_file *file = (const void *)base;
	const struct elf_part *part = (const void *)(base + file->parts_at);
	const struct elf_dynamic *dyn = NULL;
	const struct elf_symbol *symbols = NULL;
	const char *names = NULL;
	const uint32_t *hash = NULL;
	uint64_t load = 0;
	uint32_t i;

	for (i = 0; i < file->parts; i++) {
		if (part[i].type == PART_LOAD)
			load = (uint64_t)base + part[i].offset - part[i].address;
		if (part[i].type == PART_DYNAMIC)
			dyn = (const void *)(base + part[i].offset);
	}
	for (; dyn && dyn->tag; dyn++) {
		const void *at = (const void *)(load + dyn->value);

		if (dyn->tag == TAG_NAMES)
			names = at;
		else if (dyn->tag == TAG_SYMBOLS)
			symbols = at;
		else if (dyn->tag == TAG_HASH)
			hash = at;
	}
	if (!names || !symbols)
		return;
	/* Without the old hash table, the symbols end where their names begin. */
	for (i = 0; hash ? i < hash[1] : (const void *)(symbols + i) < (const void *)names; i++) {
		void *at = (void *)(load + symbols[i].value);

		if (equal(names + symbols[i].name, "__vdso_clock_gettime"))
			vdso_clock_gettime = (clock_gettime_t *)at;
		if (equal(names + symbols[i].name, "__vdso_gettimeofday"))
			vdso_gettimeofday = (gettimeofday_t *)at;
	}
}

static uint64_t tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc" : "=a" (low), "=d" (high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static int64_t now[2];

__attribute__((noinline)) static void nothing(int unused)
{
	__asm__ volatile("" : : "r" (unused));
}

__attribute__((noinline)) static void rdtsc(int unused)
{
	__asm__ volatile("rdtsc" : : "r" (unused) : "eax", "edx");
}

__attribute__((noinline)) static void fenced(int unused)
{
	__asm__ volatile("lfence\n\trdtsc" : : "r" (unused) : "eax", "edx");
}

__attribute__((noinline)) static void rdtscp(int unused)
{
	__asm__ volatile("rdtscp" : : "r" (unused) : "eax", "edx", "ecx");
}

__attribute__((noinline)) static void vdso_clock(int clock)
{
	vdso_clock_gettime(clock, now);
}

__attribute__((noinline)) static void vdso_day(int unused)
{
	(void)unused;
	vdso_gettimeofday(now, NULL);
}

__attribute__((noinline)) static void system_call(int clock)
{
	sys(NR_CLOCK_GETTIME, clock, now, 0, 0);
}

__attribute__((noinline)) static void getppid(int unused)
{
	(void)unused;
	sys(NR_GETPPID, 0, 0, 0, 0);
}

static const struct {
	const char *name;
	void (*read)(int clock);
	int clock;
} reads[] = {
	{ "nothing", nothing, 0 },
	{ "rdtsc", rdtsc, 0 },
	{ "lfence_rdtsc", fenced, 0 },
	{ "rdtscp", rdtscp, 0 },
	{ "gettimeofday", vdso_day, 0 },
	{ "realtime", vdso_clock, 0 },
	{ "monotonic", vdso_clock, 1 },
	{ "raw", vdso_clock, 4 },
	{ "coarse", vdso_clock, 6 },
	{ "tai", vdso_clock, 11 },
	{ "syscall", system_call, 1 },
	{ "getppid", getppid, 0 },
};

static uint64_t take(void (*read)(int clock), int clock, uint64_t count)
{
	uint64_t before = tsc();

	while (count--)
		read(clock);
	return tsc() - before;
}

static void print(uint64_t value)
{
	char text[24], *at = text + sizeof(text);

	*--at = '\n';
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	sys(NR_WRITE, 1, at, text + sizeof(text) - at, 0);
}

int run(int argc, char **argv)
{
	const unsigned long *word = (const unsigned long *)(argv + argc + 1);
	uint64_t count, took, idle;
	unsigned int i;

	while (*word++)	/* the environment */
		;
	for (; word[0]; word += 2)
		if (word[0] == AUX_VDSO)
			find_vdso((const char *)word[1]);
	if (argc != 3 || !vdso_clock_gettime || !vdso_gettimeofday)
		return 2;
	count = number(argv[2]);
	for (i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		if (!equal(argv[1], reads[i].name))
			continue;
		take(reads[i].read, reads[i].clock, count / 10 + 1);
		idle = take(nothing, 0, count);
		took = take(reads[i].read, reads[i].clock, count);
		print(took > idle ? took - idle : 0);
		return 0;
	}
	return 2;
}
