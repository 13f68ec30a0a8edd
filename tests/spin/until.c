// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the wait of the programs' library on the current CPU: at_until() of
 * user/apic_timer_user.h, with TPAUSE if the CPU has it and without.
 *
 * Usage: until [SHOTS]. Prints a table; all figures are TSC cycles. Fails when a wait has ended
 * early.
 */
#include <stdio.h>
#include <stdlib.h>

#include "table.h"
#include "user/apic_timer_user.h"
#include "user/tool/say.h"
#include "user/tool/tsc.h"

/* Return: the number of waits that ended early. */
static long row(const struct at *at, uint64_t ahead, long long *errors, long shots)
{
	long i, early = 0;
	char text[64];

	for (i = 0; i < shots; i++) {
		/* Values at all distances from the TSC's steps */
		uint64_t when = at_readtsc() + ahead + i % 64;

		at_until(at, when);
		errors[i] = (long long)(at_readtsc() - when);
		early += errors[i] < 0;
	}
	snprintf(text, sizeof(text), "%s: %llu ahead", at->tpause ? "TPAUSE" : "PAUSE",
		 (unsigned long long)ahead);
	table_row(text, errors, shots);
	return early;
}

int main(int argc, char **argv)
{
	static const uint64_t ahead[] = { 300, 3000, 30000, 100000 };
	long shots = argc > 1 ? strtol(argv[1], NULL, 10) : 20000, early = 0;
	long long *errors;
	struct at at;
	unsigned int i;

	if (shots < 100) {
		fprintf(stderr, "usage: %s [SHOTS], 100 at least\n", argv[0]);
		return 2;
	}
	errors = calloc(shots, sizeof(*errors));
	if (!errors) {
		fprintf(stderr, "%s: no memory for %ld waits\n", argv[0], shots);
		return 1;
	}
	at_measure(&at);
	printf("TPAUSE: %s; step of the TSC: %u\n"
	       "taken off for the way to the next instruction: %u\n\n",
	       at.tpause ? "yes" : "no", tsc_step_measure().step, at.cost);
	table_head("TSC cycles after the moment");
	for (;;) {
		for (i = 0; i < COUNT(ahead); i++)
			early += row(&at, ahead[i], errors, shots);
		if (!at.tpause)
			break;
		at.tpause = 0;
	}
	printf("\nearly: %ld\n", early);
	return early != 0;
}
