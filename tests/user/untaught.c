// SPDX-License-Identifier: GPL-2.0
/*
 * untaught - let the kernel wait in threads that report nothing, after another thread has reported
 *
 * One process reports that its way out of the kernel takes long. Then another one, which has the
 * same file and reports nothing, sleeps too. Prints by how many TSC cycles each was early at most.
 */
#include "start.h"

#define NR_FORK		57
#define NR_WAIT4	61
#define ROUNDS		30
#define AHEAD		200000	/* TSC cycles */
#define REPORTED	10000	/* the kernel believes less than 20 us, which are as many cycles */

static int fd;

/* Return by how much the thread was early; negative: late. Set @back to when it was back. */
static long early(uint64_t began, uint64_t *back)
{
	struct apic_timer_sleep a = {
		.size = sizeof(a),
		.flags = APIC_TIMER_SLEEP_KERNEL_FINISH,
		.expires = at_readtsc() + AHEAD,
		.began = began,
	};

	if (at_call(AT_NR_IOCTL, fd, APIC_TIMER_SLEEP, (long)&a, 0, 0, 0, back))
		sys(NR_EXIT, 1, 0, 0, 0);
	return (long)(a.expires - *back);
}

static void measure(const char *who, uint64_t reported)
{
	uint64_t back = 0;
	long most = -AHEAD, by;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		by = early(reported && back ? back + reported : 0, &back);
		if (by > most)
			most = by;
	}
	say(who);
	say(" ");
	say_number(most);
	say("\n");
}

int run(int argc, char **argv)
{
	int status = 1;

	(void)argc;
	(void)argv;
	fd = (int)sys(AT_NR_OPEN, AT_DEVICE, 2 /* O_RDWR */, 0, 0);
	if (fd < 0)
		return wrong("open", fd);
	measure("reports", REPORTED);
	if (!sys(NR_FORK, 0, 0, 0, 0)) {
		measure("silent", 0);
		return 0;
	}
	sys(NR_WAIT4, -1, &status, 0, 0);
	return status != 0;
}
