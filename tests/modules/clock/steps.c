// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how late a CPU is that only waits for a value of its TSC, in the core's spin loop, while
 * the other CPUs wait as well, and while they execute something else.
 *
 * An emulator executes a stretch of each CPU's code in turn, up to a jump, and then advances all
 * TSCs by the average length. How often a CPU reads its TSC therefore depends on the other CPUs.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <asm/msr.h>

#include "clock_test.h"
#include "hw/spin.h"

#define SHOTS		300
#define AHEAD		1000
/* Distance of the targets, chosen so that they fall anywhere between two reads of the TSC. */
#define PHASES		64
/* Time that the other CPUs wait longer, in the same loop: less than they wait with PAUSE. */
#define LONGER		300

/**
 * struct shot - one wait
 * @ready:	number of CPUs that have arrived
 * @cpus:	number of CPUs that take part; only the first CPU's error counts
 * @first:	the first CPU
 * @wait:	the other CPUs wait as well, and longer
 * @ahead:	time from now to the target
 * @target:	the target; 0 until the first CPU has chosen it
 * @over:	the first CPU has waited
 * @late:	error of the first CPU
 */
struct shot {
	atomic_t ready;
	unsigned int cpus;
	unsigned int first;
	bool wait;
	unsigned int ahead;
	u64 target;
	bool over;
	u64 late;
};

/* Sorted errors, by what the other CPUs do. */
static u64 late[2][SHOTS];
static unsigned int shots;

/* No jump: the longest stretch that the emulator executes at a time is shorter. */
static __always_inline void straight_on(void)
{
	asm volatile(".rept 64\n\tnop\n\t.endr");
}

static void take_part(void *arg)
{
	struct shot *shot = arg;
	u64 target;

	atomic_inc(&shot->ready);
	while (atomic_read(&shot->ready) < shot->cpus)
		cpu_relax();
	if (smp_processor_id() == shot->first) {
		target = rdtsc() + shot->ahead;
		WRITE_ONCE(shot->target, target);
		shot->late = apic_timer_spin(target) - target;
		WRITE_ONCE(shot->over, true);
		return;
	}
	while (!(target = READ_ONCE(shot->target)))
		cpu_relax();
	if (shot->wait)
		apic_timer_spin(target + LONGER);
	while (!READ_ONCE(shot->over))
		straight_on();
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Run on the first CPUs of the machine, which share one TSC. */
int clock_test_steps(unsigned int cpus)
{
	unsigned int i, wait, cpu;
	cpumask_var_t mask;
	struct shot shot;

	if (cpus < 2 || cpus > num_online_cpus())
		return -EINVAL;
	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	for_each_online_cpu(cpu)
		if (cpumask_weight(mask) < cpus)
			cpumask_set_cpu(cpu, mask);
	for (wait = 0; wait < ARRAY_SIZE(late); wait++) {
		for (i = 0; i < SHOTS; i++) {
			shot = (struct shot) {
				.cpus = cpus, .first = cpumask_first(mask), .wait = wait,
				.ahead = AHEAD + i % PHASES,
			};
			on_each_cpu_mask(mask, take_part, &shot, true);
			late[wait][i] = shot.late;
		}
		sort(late[wait], SHOTS, sizeof(u64), compare, NULL);
	}
	shots = SHOTS;
	free_cpumask_var(mask);
	return 0;
}

void clock_test_steps_show(struct seq_file *file)
{
	if (shots)
		seq_printf(file, "steps others wait p50 %llu p99 %llu do not p50 %llu p99 %llu\n",
			   late[1][shots / 2], late[1][shots - 1 - shots / 100],
			   late[0][shots / 2], late[0][shots - 1 - shots / 100]);
}
