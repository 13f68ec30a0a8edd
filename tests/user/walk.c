// SPDX-License-Identifier: GPL-2.0
/*
 * walk NAME KIB LAPS [off|flush] - read a byte of each line of KIB KiB of memory, LAPS times, and
 * report the start and the end to QEMU's plug-in "caches". With "flush" all of it is flushed
 * before the last lap.
 */
#include "start.h"

#define NR_IOPERM	173
#define NR_CLOCK_GETTIME	228
#define CLOCK_MONOTONIC_COARSE	6	/* advances in ticks */
#define TELL		0xe9
#define LINE		64
#define MOST		(1024 * 1024)

static char memory[MOST] __attribute__((aligned(4096)));

static void tell(const char *text)
{
	for (; *text; text++)
		__asm__ volatile("outb %0, %1" : : "a"(*text), "d"((unsigned short)TELL));
}

/* Only the loads touch memory. */
static void lap(const char *at, const char *end)
{
	__asm__ volatile("1:\tmovb (%0), %%al\n\tadd %2, %0\n\tcmp %1, %0\n\tjb 1b"
			 : "+r"(at) : "r"(end), "i"(LINE) : "al", "cc", "memory");
}

/* A tick in the walk would be in the figures: the next one is some milliseconds away now. */
static void wait_for_tick(void)
{
	uint64_t was[2], is[2];

	sys(NR_CLOCK_GETTIME, CLOCK_MONOTONIC_COARSE, (long)was, 0, 0);
	do
		sys(NR_CLOCK_GETTIME, CLOCK_MONOTONIC_COARSE, (long)is, 0, 0);
	while (is[0] == was[0] && is[1] == was[1]);
}

int run(int argc, char **argv)
{
	const char *end, *at, *how = argc == 5 ? argv[4] : "";
	uint64_t laps;

	if (argc < 4 || number(argv[2]) > MOST / 1024 || sys(NR_IOPERM, TELL, 1, 1, 0))
		return 1;
	end = memory + number(argv[2]) * 1024;
	/* Touch the pages first: faults would be in the figures. */
	memset(memory, 1, MOST);
	wait_for_tick();
	tell("begin ");
	tell(argv[1]);
	tell(equal(how, "off") ? " off\n" : "\n");
	for (laps = number(argv[3]); laps; laps--) {
		if (laps == 1 && equal(how, "flush"))
			for (at = memory; at < end; at += LINE)
				__asm__ volatile("clflush %0" : : "m"(*at));
		lap(memory, end);
	}
	tell("end\n");
	return 0;
}
