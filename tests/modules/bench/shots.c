// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how late timers are. One timer at a time is armed again and again, each time at a random
 * distance, and the error of each shot is kept: TSC at the handler's first instruction - the
 * desired moment, in TSC cycles.
 *
 * Write TIMER SPREAD SHOTS MIN_NS MAX_NS SEED [SPIN_NS] to "run".
 *
 * SPREAD is the distribution of distances from MIN_NS to MAX_NS: "uniform", or "octaves": each
 * octave with equal probability.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "bench.h"

LIST_HEAD(bench_shots_list);
s64 *bench_excess;
u64 bench_elapsed;
struct debugfs_blob_wrapper bench_excess_blob;

/* One run: its parameters and results. */
static struct {
	struct bench_shots *shots;
	unsigned int wanted, done;
	u64 min_ns, max_ns;
	bool octaves;
	struct rnd_state random;
	struct completion end;
} run;

static u64 random_uniform(u64 min_ns, u64 max_ns)
{
	return min_ns + mul_u64_u32_shr(max_ns - min_ns,
					prandom_u32_state(&run.random), 32);
}

/* A random distance in ns. */
static u64 random_distance(void)
{
	u64 octave;

	if (!run.octaves)
		return random_uniform(run.min_ns, run.max_ns);
	octave = run.min_ns << (prandom_u32_state(&run.random) %
				(ilog2(run.max_ns / run.min_ns) + 1));
	return random_uniform(octave, min(2 * octave, run.max_ns));
}

/**
 * bench_shot() - end of a handler: keep the error, arm the next shot
 * @tsc:	TSC at the handler's first instruction
 * @error:	how much later than desired that is, cycles
 */
void bench_shot(u64 tsc, s64 error)
{
	bench_excess[run.done] = error - bench_load_off(tsc - error, tsc);
	bench_sample(error);
	if (++run.done == run.wanted || run.shots->arm(random_distance()))
		complete(&run.end);
}
EXPORT_SYMBOL_GPL(bench_shot);

static int measure(u64 spin_ns)
{
	u64 began = rdtsc_ordered();
	int ret;

	bench_samples_reset();
	run.done = 0;
	init_completion(&run.end);
	ret = run.shots->start(random_distance(), spin_ns);
	if (ret)
		return ret;

	ret = wait_for_completion_killable(&run.end);
	bench_elapsed = rdtsc_ordered() - began;
	run.shots->stop();
	bench_excess_blob.size = run.done * sizeof(*bench_excess);
	return ret ?: run.done == run.wanted ? 0 : -EIO;
}

static int run_command(const char *text)
{
	char name[24], spread[12];
	struct bench_shots *shots;
	u64 seed, spin_ns = 0;

	if (sscanf(text, "%23s %11s %u %llu %llu %llu %llu", name, spread,
		   &run.wanted, &run.min_ns, &run.max_ns, &seed,
		   &spin_ns) < 6 ||
	    !run.wanted || run.wanted > BENCH_SHOTS_MAX || !run.min_ns ||
	    run.max_ns < run.min_ns)
		return -EINVAL;

	run.octaves = !strcmp(spread, "octaves");
	if (!run.octaves && strcmp(spread, "uniform"))
		return -EINVAL;

	prandom_seed_state(&run.random, seed);
	list_for_each_entry(shots, &bench_shots_list, list) {
		if (!strcmp(shots->name, name)) {
			run.shots = shots;
			return measure(spin_ns);
		}
	}
	return -EINVAL;
}

DEFINE_BENCH_FILE(run);
