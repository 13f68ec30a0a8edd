// SPDX-License-Identifier: GPL-2.0
/* Measure the time-stamp counter of this CPU in a process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "say.h"
#include "tsc.h"

#define STEP_MAX	1024
#define STEP_READS	2000
/* Minimum share of values at one residue of a step or just after it, per cent. */
#define STEP_PART	90
#define STEP_NEAR	3	/* residues */
/* For smaller steps, the nearby residues would be too large a part of all. */
#define STEP_SMALL	8

/*
 * Return: true if most values have one residue modulo @step, stored in @found, or one of
 * the next.
 */
static bool is_step(const uint64_t *values, size_t count, unsigned int step,
		    struct tsc_step *found)
{
	size_t residues[STEP_MAX] = {}, i, most = 0, near = 0;
	unsigned int j;

	for (i = 0; i < count; i++)
		residues[values[i] % step]++;
	for (j = 0; j < step; j++) {
		if (residues[j] > most) {
			most = residues[j];
			found->residue = j;
		}
	}
	for (j = 0; j < (step < STEP_SMALL ? 1 : STEP_NEAR); j++)
		near += residues[(found->residue + j) % step];
	found->step = step;
	return near * 100 >= count * STEP_PART;
}

/*
 * A TSC that is scaled, or multiplied by firmware, counts in steps. When it is
 * read repeatedly within one step, a CPU may add 1 each time to keep values
 * distinct. So the step is not the greatest common divisor of the differences,
 * but the largest number modulo which the values are at one residue, or just
 * after it.
 */
struct tsc_step tsc_step_of(const uint64_t *values, size_t count)
{
	struct tsc_step found = {}, none = { 1, 0 };
	unsigned int step;
	size_t i, moves = 0;

	for (i = 1; i < count; i++)
		moves += values[i] != values[i - 1];
	/* With too few moves, any step would match. */
	if (moves < 10)
		return none;
	for (step = STEP_MAX; step > 1; step--)
		if (is_step(values, count, step, &found))
			return found;
	return none;
}

/*
 * Take a varying time, multiples of 2 and of 3 instructions, so that no step is caused by
 * this loop.
 */
static inline void dawdle(unsigned int twos, unsigned int threes)
{
	asm volatile("1:\tdec %0\n\tjnz 1b\n2:\tnop\n\tdec %1\n\tjnz 2b"
		     : "+r" (twos), "+r" (threes));
}

struct tsc_step tsc_step_measure(void)
{
	static uint64_t values[STEP_READS];
	size_t i;

	for (i = 0; i < STEP_READS; i++) {
		values[i] = tsc_read();
		dawdle(1 + i * 7 % 11, 1 + i * 5 % 13);
	}
	return tsc_step_of(values, STEP_READS);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* Read both clocks together: the fastest of 20 pairs */
static uint64_t pair(uint64_t *ns)
{
	uint64_t before, after, between, best = UINT64_MAX, tsc = 0;
	int i;

	for (i = 0; i < 20; i++) {
		before = tsc_read_fenced();
		between = clock_ns(CLOCK_MONOTONIC_RAW);
		after = tsc_read_fenced();
		if (after - before < best) {
			best = after - before;
			tsc = before + best / 2;
			*ns = between;
		}
	}
	return tsc;
}

double tsc_khz_measure(void)
{
	struct timespec wait = { 0, 50 * 1000 * 1000 };
	uint64_t ns[2], tsc[2];

	tsc[0] = pair(&ns[0]);
	nanosleep(&wait, NULL);
	tsc[1] = pair(&ns[1]);
	return (tsc[1] - tsc[0]) * 1e6 / (ns[1] - ns[0]);
}

struct tsc_gaps tsc_gaps_measure(uint64_t cycles, uint64_t bound)
{
	uint64_t start = tsc_read(), last = start, now;
	struct tsc_gaps gaps = {};

	do {
		now = tsc_read();
		if (now - last > gaps.longest)
			gaps.longest = now - last;
		if (now - last > bound) {
			gaps.count++;
			gaps.sum += now - last;
		}
		last = now;
	} while (now - start < cycles);
	return gaps;
}

uint64_t tsc_chain(uint64_t turns)
{
	uint64_t start = tsc_read_fenced();

	asm volatile(".p2align 5\n1:\t.rept 16\n\tinc %%edx\n\t.endr\n\tdec %0\n\tjnz 1b"
		     : "+r" (turns) :: "edx", "cc");
	return tsc_read_fenced() - start;
}

double tsc_per_core_cycle(void)
{
	uint64_t once[60], twice[60];
	unsigned int i;

	for (i = 0; i < COUNT(once); i++) {
		once[i] = tsc_chain(2000);
		twice[i] = tsc_chain(4000);
	}
	return (tsc_quantile(twice, COUNT(twice), 5) - tsc_quantile(once, COUNT(once), 5)) /
	       (2000 * 16.0);
}

/* The kernel refuses a set without room for all CPUs that it may have; it does not say how many. */
#define CPUS_MOST	1048576

struct tsc_cpus tsc_cpus_get(void)
{
	struct tsc_cpus cpus;
	int count;

	for (count = CPU_SETSIZE; count <= CPUS_MOST; count *= 2) {
		cpus.size = CPU_ALLOC_SIZE(count);
		cpus.set = CPU_ALLOC(count);
		if (!cpus.set)
			fail("out of memory");
		if (!sched_getaffinity(0, cpus.size, cpus.set))
			return cpus;
		tsc_cpus_free(&cpus);
	}
	fail("sched_getaffinity failed");
}

void tsc_cpus_set(int thread, const struct tsc_cpus *cpus)
{
	sched_setaffinity(thread, cpus->size, cpus->set);
}

void tsc_cpus_free(struct tsc_cpus *cpus)
{
	CPU_FREE(cpus->set);
	cpus->set = NULL;
}

bool tsc_pin(int cpu)
{
	struct tsc_cpus only = tsc_cpus_get();
	bool pinned;

	CPU_ZERO_S(only.size, (cpu_set_t *)only.set);
	CPU_SET_S(cpu, only.size, (cpu_set_t *)only.set);
	pinned = !sched_setaffinity(0, only.size, only.set);
	tsc_cpus_free(&only);
	return pinned;
}

/*
 * A real-time thread that never sleeps leaves no time to others, or, by default, only at the end
 * of each second: see sched(7).
 */
#define PATIENCE_MS 3000

/*
 * Let a child try: a process that is moved to a CPU where it does not get to run cannot return
 * by itself, and no signal ends it.
 */
bool tsc_may_run(int cpu)
{
	struct pollfd answer = {};
	int ends[2], status, got;
	struct tsc_cpus own;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		fail("can't create a pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		fail("can't start a process: %s", strerror(errno));
	if (!child)
		_exit(!tsc_pin(cpu));
	close(ends[1]);
	/* The child's end of the pipe is closed when it exits. */
	answer.fd = ends[0];
	do {
		got = poll(&answer, 1, PATIENCE_MS);
	} while (got < 0 && errno == EINTR);
	if (!got) {
		warn("no process gets to run on CPU %d: is a real-time thread spinning there?",
		     cpu);
		kill(child, SIGKILL);
		own = tsc_cpus_get();
		/*
		 * Move the child to another CPU, where it dies; repeat, because it may
		 * only now be about to move itself.
		 */
		do {
			tsc_cpus_set(child, &own);
		} while (!waitpid(child, NULL, WNOHANG) && !usleep(10000));
		tsc_cpus_free(&own);
		status = -1;
	} else {
		waitpid(child, &status, 0);
	}
	close(ends[0]);
	return !status;
}

int tsc_allowed(bool *map, int size)
{
	struct tsc_cpus cpus = tsc_cpus_get();
	int cpu, end = 0;

	for (cpu = 0; cpu < size; cpu++) {
		map[cpu] = CPU_ISSET_S(cpu, cpus.size, (cpu_set_t *)cpus.set);
		if (map[cpu])
			end = cpu + 1;
	}
	tsc_cpus_free(&cpus);
	return end;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t tsc_quantile(uint64_t *values, size_t count, double percent)
{
	size_t place = count * percent / 100;

	qsort(values, count, sizeof(*values), compare);
	return values[place < count ? place : count - 1];
}
