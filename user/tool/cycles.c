// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer cycles: how many core cycles short loops take, measured only by
 * the TSC.
 *
 * A loop is run for n and for 2n turns; in the difference, the cost of the code
 * around it cancels. The core's clock is not the TSC's, so a chain of dependent
 * instructions, measured at the same time, converts TSC cycles to core cycles.
 * The result is a low quantile of all repetitions, because disturbances only
 * make them longer. Repetitions during which the core was shared are repeated.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "core.h"
#include "json.h"
#include "keys.h"
#include "runs.h"
#include "say.h"
#include "tsc.h"

#define QUANTILE	5
#define REPEATS_MAX	10000
#define CHAIN_MIN	1600	/* core cycles */

static long length = 100000, repeats = 200, run_count = 10, wait_s = -1;

static const struct opt options[] = {
	OPT_NUMBER('l', "length", "N", 100, 10000000,
		   "core cycles of a run; a second run takes twice as many (100000)", &length),
	OPT_NUMBER('r', "repeats", "N", 5, REPEATS_MAX, "repetitions of a run (200)", &repeats),
	OPT_NUMBER('n', "runs", "N", 1, RUNS_MAX, "runs; their spread is printed (10)", &run_count),
	OPT_NUMBER('w', "wait", "S", 0, 3600,
		   "seconds to wait for a core that is not shared (2 per run)", &wait_s),
	{}
};

#define LOOP(name, body)						\
static uint64_t name(uint64_t n)					\
{									\
	uint64_t start = tsc_read_fenced();				\
									\
	asm volatile(".p2align 5\n1:\t" body "dec %%eax\n\tjnz 1b"	\
		     : "+a" (n) :: "ebx", "ecx", "edx", "esi", "edi",	\
		       "r8", "r9", "cc", "memory");			\
	return tsc_read_fenced() - start;				\
}

/* As in 1998: no two instructions of a turn depend on each other, only on the previous turn. */
#define ROL_B	"rol $3, %%ebx\n\t"
#define ROL_C	"rol $3, %%ecx\n\t"
#define ROL_DI	"rol $3, %%edi\n\t"
#define INC_DI	"inc %%edi\n\t"
#define INC_SI	"inc %%esi\n\t"
#define INC_D	"inc %%edx\n\t"
#define INC_8	"inc %%r8d\n\t"
#define INC_B	"inc %%ebx\n\t"
#define NOP	"nop\n\t"
#define TIMES_4(one) one one one one

LOOP(loop_nothing, "")
LOOP(loop_rol, ROL_B)
LOOP(loop_rol_rol, ROL_B ROL_C)
LOOP(loop_rol_inc_inc_rol, ROL_B INC_DI INC_SI ROL_C)
LOOP(loop_rol_inc_rol_inc, ROL_B INC_DI ROL_C INC_SI)
LOOP(loop_five, ROL_B INC_DI INC_SI ROL_C INC_D)
LOOP(loop_six, ROL_B INC_DI INC_SI ROL_C INC_D INC_8)
LOOP(loop_rol_3, ROL_B ROL_C ROL_DI)
LOOP(loop_imul, "imul %%ebx, %%ebx\n\t")
LOOP(loop_inc_10, TIMES_4(INC_B) TIMES_4(INC_B) INC_B INC_B)
LOOP(loop_nop_16, TIMES_4(NOP) TIMES_4(NOP) TIMES_4(NOP) TIMES_4(NOP))
LOOP(loop_rdtsc, "mov %%eax, %%esi\n\trdtsc\n\tmov %%esi, %%eax\n\t")
LOOP(loop_lfence, "lfence\n\t")
LOOP(loop_pause, "pause\n\t")

struct row {
	const char *name;
	uint64_t (*loop)(uint64_t turns);
	unsigned int instructions;	/* of a turn, with DEC and JNZ */
	const char *then[3];		/* cycles in 1998: Pentium II, P55C, K6 */
};

static const struct row rows[] = {
	{ "nothing", loop_nothing, 2, { "2", "1", "1" } },
	{ "ROL", loop_rol, 3, { "2", "2", "3" } },
	{ "ROL ROL", loop_rol_rol, 4, { "2", "3", "5" } },
	{ "ROL INC INC ROL", loop_rol_inc_inc_rol, 6, { "3", "4", "6" } },
	{ "ROL INC ROL INC", loop_rol_inc_rol_inc, 6, { "3", "5", "7" } },
	{ "2 ROL, 3 INC", loop_five, 7, { "3.5", "5", "7" } },
	{ "2 ROL, 4 INC", loop_six, 8, { "4", "5", "7" } },
	{ "ROL ROL ROL", loop_rol_3, 5, { "3", "-", "-" } },
	{ "IMUL", loop_imul, 3, { "-", "-", "-" } },
	{ "10 INC, dependent", loop_inc_10, 12, { "-", "-", "-" } },
	{ "16 NOP", loop_nop_16, 18, { "-", "-", "-" } },
	{ "RDTSC", loop_rdtsc, 5, { "-", "-", "-" } },
	{ "LFENCE", loop_lfence, 3, { "-", "-", "-" } },
	{ "PAUSE", loop_pause, 3, { "-", "-", "-" } },
};

/* A turn is one key. The number of its instructions is the compiler's choice. */
static const struct row searches[] = {
	{ .name = "RC5", .loop = keys_rc5 },
	{ .name = "DES", .loop = keys_des },
};

#define LOOPS	(COUNT(rows) + COUNT(searches))

static const struct row *loop_of(unsigned int number)
{
	return number < COUNT(rows) ? &rows[number] : &searches[number - COUNT(rows)];
}

/* Compute the number of turns that take about the requested time */
static uint64_t turns_of(const struct row *row, double core)
{
	uint64_t tries[9], turns = length / 10 + 1;
	unsigned int i;
	double cycles;

	for (i = 0; i < COUNT(tries); i++)
		tries[i] = row->loop(turns);
	cycles = tsc_quantile(tries, COUNT(tries), QUANTILE) / core / turns;
	turns = cycles > 1 ? length / cycles : length;
	return turns > 10 ? turns : 10;
}

/* Compute the core cycles of a turn, from one run */
static double measure(const struct row *row, uint64_t turns)
{
	static uint64_t once[REPEATS_MAX], twice[REPEATS_MAX], chain[2][REPEATS_MAX];
	/* A short chain may take no longer than a step of the TSC. */
	uint64_t links = (length > CHAIN_MIN ? length : CHAIN_MIN) / 16 + 1;
	double loop, core;
	long i = 0;

	core_begin();
	/* Measure them in turn, so that all have the same core clock. */
	while (i < repeats) {
		chain[0][i] = tsc_chain(links);
		once[i] = row->loop(turns);
		chain[1][i] = tsc_chain(2 * links);
		twice[i] = row->loop(2 * turns);
		i += core_was_alone();
	}
	/* Twice as many turns may take less, by a step of the TSC or after an interrupt. */
	loop = (double)tsc_quantile(twice, repeats, QUANTILE) -
	       (double)tsc_quantile(once, repeats, QUANTILE);
	core = (double)tsc_quantile(chain[1], repeats, QUANTILE) -
	       (double)tsc_quantile(chain[0], repeats, QUANTILE);
	return loop / turns / (core / (links * 16));
}

static void print_row(const struct row *row, struct runs *runs)
{
	double cycles = runs_median(runs), spread = runs_spread(runs);

	if (opt_json) {
		json_object(NULL);
		json_text("loop", row->name);
		json_real("cycles", cycles, 3);
		json_real("ipc", cycles > 0 ? row->instructions / cycles : 0, 2);
		json_real("lowest", runs->value[0], 3);
		json_real("highest", runs->value[runs->count - 1], 3);
		json_real("spread_percent", spread, 2);
		json_array("cycles_1998");
		json_text(NULL, row->then[0]);
		json_text(NULL, row->then[1]);
		json_text(NULL, row->then[2]);
		json_end();
		json_end();
		return;
	}
	printf("%-20s %9.3f %6.2f %9.3f %9.3f %8.2f %8s %5s %5s\n", row->name, cycles,
	       cycles > 0 ? row->instructions / cycles : 0, runs->value[0],
	       runs->value[runs->count - 1], spread, row->then[0], row->then[1], row->then[2]);
}

/* @core_khz: rate of the core's clock */
static void print_search(const struct row *row, struct runs *runs, double core_khz)
{
	double cycles = runs_median(runs), spread = runs_spread(runs);
	double rate = cycles > 0 ? core_khz / cycles : 0;	/* 1000 keys/s */

	if (opt_json) {
		json_object(NULL);
		json_text("cipher", row->name);
		json_real("cycles", cycles, 1);
		json_real("kkeys_per_s", rate, 1);
		json_real("lowest", runs->value[0], 1);
		json_real("highest", runs->value[runs->count - 1], 1);
		json_real("spread_percent", spread, 2);
		json_end();
		return;
	}
	printf("%-20s %9.1f %13.1f %9.1f %9.1f %8.2f\n", row->name, cycles, rate,
	       runs->value[0], runs->value[runs->count - 1], spread);
}

static int run(int operands, char **operand)
{
	static struct runs runs[LOOPS];
	static uint64_t turns[LOOPS];
	struct tsc_step step = tsc_step_measure();
	double khz = tsc_khz_measure(), core;
	unsigned int i;
	long turn;

	(void)operands;
	(void)operand;
	/* This also takes a core that was idle to its usual clock. */
	core_begin();
	core = tsc_per_core_cycle();
	for (i = 0; i < LOOPS; i++)
		turns[i] = turns_of(loop_of(i), core);
	core_patience(wait_s < 0 ? run_count * CORE_PATIENCE_S : wait_s);
	do {
		memset(runs, 0, sizeof(runs));
		for (turn = 0; turn < run_count; turn++) {
			for (i = 0; i < LOOPS; i++) {
				progress("run %ld of %ld, loop %u of %zu", turn + 1, run_count,
					 i + 1, LOOPS);
				runs_add(&runs[i], measure(loop_of(i), turns[i]));
			}
		}
	} while (core_misjudged());
	progress_end();
	/* For rates: the clock may have changed meanwhile. */
	core = tsc_per_core_cycle();
	if (opt_json) {
		json_object(NULL);
		json_real("tsc_per_core_cycle", core, 4);
		json_number("tsc_step", step.step);
		json_number("runs", run_count);
		json_number("crowded", core_crowded());
		json_array("rows");
	} else {
		printf("a core cycle is %.4f TSC cycles; the TSC counts in steps of %u, which are %.3f %% of a loop\n\n",
		       core, step.step, step.step * 100 / core / length);
		printf("%-20s %9s %6s %9s %9s %8s %8s %5s %5s\n", "loop, DEC, JNZ", "cycles", "IPC",
		       "lowest", "highest", "spread %", "1998: P2", "P55C", "K6");
	}
	for (i = 0; i < COUNT(rows); i++)
		print_row(&rows[i], &runs[i]);
	if (opt_json) {
		json_end();
		json_array("searches");
	} else {
		printf("\n%-20s %9s %13s %9s %9s %8s\n", "search, per key", "cycles",
		       "1000 keys/s", "lowest", "highest", "spread %");
	}
	for (i = COUNT(rows); i < LOOPS; i++)
		print_search(loop_of(i), &runs[i], khz / core);
	if (opt_json) {
		json_end();
		json_end();
	} else if (core_crowded()) {
		printf("\nthe core was shared with other work in %ld of %ld repetitions\n",
		       core_crowded(), (long)LOOPS * run_count * repeats);
	}
	return 0;
}

const struct command cycles_command = {
	.name = "cycles",
	.summary = "Measure the core cycles of short loops, and the spread of 10 runs",
	.about = "Needs no module, root or performance counters: it times n and 2n turns by the TSC. IPC\n"
		 "is the known number of instructions divided by the measured cycles. Two loops search\n"
		 "for a key, of RC5 and of DES, as this compiler built them.",
	.options = options,
	.run = run,
};
