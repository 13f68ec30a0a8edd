// SPDX-License-Identifier: GPL-2.0
/*
 * Loops that wait for a TSC value, in the ways of the paper of 1997 and some newer ones.
 * Each loop has its own function, so that its place in the cache line depends on nothing
 * else.
 */
#include <linux/apic_timer.h>
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "cache.h"
#include "hardware.h"
#include "measure.h"
#include "ways.h"

/* The counted loop begins at most this many TSC cycles before the target. */
#define STRETCH		400
#define TURNS		1000
#define TRIES		16

#define IN_A_LINE	".p2align 6\n"
/* The loop has 14 bytes, and begins 6 bytes before the end of the line. */
#define ACROSS_LINES	".p2align 6\n\t.fill 58, 1, 0x90\n"

/* @read sets EDX:EAX. ECX holds the MSR's number for RDMSR, and @read may change it. */
#define WAIT(place, read, target)						\
	do {									\
		u32 msr = MSR_IA32_TSC;						\
										\
		asm volatile(place						\
			     "1:\n\t"						\
			     read "\n\t"					\
			     "shl $32, %%rdx\n\t"				\
			     "or %%rdx, %%rax\n\t"				\
			     "cmp %[until], %%rax\n\t"				\
			     "jb 1b"						\
			     : "+c" (msr)					\
			     : [until] "r" (target)				\
			     : "rax", "rdx", "cc", "memory");			\
	} while (0)

static noinline u64 wait_rdtsc(u64 target)
{
	WAIT(IN_A_LINE, "rdtsc", target);
	return rdtsc();
}

static noinline u64 wait_across(u64 target)
{
	WAIT(ACROSS_LINES, "rdtsc", target);
	return rdtsc();
}

static noinline u64 wait_rdtscp(u64 target)
{
	WAIT(IN_A_LINE, "rdtscp", target);
	return rdtsc();
}

static noinline u64 wait_rdmsr(u64 target)
{
	WAIT(IN_A_LINE, "rdmsr", target);
	return rdtsc();
}

static noinline u64 wait_lfence(u64 target)
{
	WAIT(IN_A_LINE, "lfence\n\trdtsc", target);
	return rdtsc();
}

static noinline u64 wait_pause(u64 target)
{
	WAIT(IN_A_LINE, "pause\n\trdtsc", target);
	return rdtsc();
}

static u32 counted_turn;

static __always_inline void count_down(u64 turns)
{
	asm volatile(".p2align 5\n1:\tdec %0\n\tjnz 1b" : "+r" (turns) : : "cc");
}

/*
 * On some CPUs the TSC counts in steps, and a loop over it ends in steps of a turn. One read
 * close to the target, followed by a counted loop, leaves only the TSC's own steps. The
 * core's clock must not change in between.
 */
static noinline u64 wait_counted(u64 target)
{
	u64 now;

	do {
		now = rdtsc();
	} while (now + STRETCH < target);
	rmb();	/* LFENCE: wait until all earlier instructions have executed */
	now = rdtsc();
	if (now < target)
		count_down(measure_turns(target - now, counted_turn));
	return rdtsc();
}

static u8 table[APIC_MEASURE_STEP_MAX];
static u32 table_step = 1, table_looked;

/*
 * A loop can end only at the end of a turn. The distance modulo the length of a turn
 * determines in advance how far from the target that is. The loop therefore starts later,
 * by the delay that was found best for that remainder.
 */
static noinline u64 wait_table(u64 target)
{
	u64 now = rdtsc();
	u32 at = now < target ? (u32)(target - now) % table_step : 0, turns = table[at];

	table_looked = at;
	if (turns)
		count_down(turns);
	WAIT(IN_A_LINE, "rdtsc", target);
	return rdtsc();
}

static u64 time_of(u64 turns)
{
	u64 start = rdtsc_ordered();

	count_down(turns);
	return rdtsc_ordered() - start;
}

/**
 * measure_turn() - measure the counted loop
 *
 * Interrupts are off for one try at a time: a few microseconds.
 *
 * Context: Task.
 * Return: TSC cycles of 1,024 turns.
 */
u32 measure_turn(void)
{
	u64 once = U64_MAX, twice = U64_MAX;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < TRIES; i++) {
		local_irq_save(flags);
		once = min(once, time_of(TURNS));
		local_irq_restore(flags);
		local_irq_save(flags);
		twice = min(twice, time_of(2 * TURNS));
		local_irq_restore(flags);
	}
	return twice > once ? (u32)((twice - once) * 1024 / TURNS) : 1024;
}

/**
 * measure_turn_set() - set the length of the counted loop
 * @turn:	TSC cycles of 1,024 turns
 *
 * Context: No shot is under way.
 */
void measure_turn_set(u32 turn)
{
	counted_turn = turn;
}

/**
 * measure_table_set() - set how much later a loop begins
 * @delays:	delay for each target modulo @step, in turns of the counted loop
 * @step:	TSC cycles of a turn of the loop, 1 to %APIC_MEASURE_STEP_MAX
 *
 * Context: No shot is under way.
 */
void measure_table_set(const u8 *delays, u32 step)
{
	memcpy(table, delays, step);
	table_step = step;
}

/**
 * measure_table_looked() - return the last shot's index into the table
 *
 * Context: No shot is under way.
 * Return: the distance to the target modulo the step, when the loop read the table.
 */
u32 measure_table_looked(void)
{
	return table_looked;
}

/**
 * measure_ways_flush() - flush the data of all loops from all caches
 *
 * Context: No shot is under way.
 */
void measure_ways_flush(void)
{
	measure_flush_data(table, sizeof(table));
	measure_flush_data(&table_step, sizeof(table_step));
	measure_flush_data(&table_looked, sizeof(table_looked));
	measure_flush_data(&counted_turn, sizeof(counted_turn));
}

static const measure_way_fn ways[APIC_MEASURE_WAYS] = {
	[APIC_MEASURE_RDTSC] = wait_rdtsc,
	[APIC_MEASURE_ACROSS] = wait_across,
	[APIC_MEASURE_RDTSCP] = wait_rdtscp,
	[APIC_MEASURE_RDMSR] = wait_rdmsr,
	[APIC_MEASURE_LFENCE] = wait_lfence,
	[APIC_MEASURE_PAUSE] = wait_pause,
	[APIC_MEASURE_COUNTED] = wait_counted,
	[APIC_MEASURE_TABLE] = wait_table,
};

/**
 * measure_way() - find a loop
 * @way:	&enum apic_measure_way
 *
 * Return: the function, or NULL if there is no such loop.
 */
measure_way_fn measure_way(u32 way)
{
	return way < APIC_MEASURE_WAYS ? ways[way] : NULL;
}

/**
 * measure_way_there() - check whether this CPU has a loop's instruction
 * @way:	&enum apic_measure_way
 *
 * Return: true if it has.
 */
bool measure_way_there(u32 way)
{
	if (way == APIC_MEASURE_RDTSCP)
		return boot_cpu_has(X86_FEATURE_RDTSCP);
	if (way == APIC_MEASURE_RDMSR)
		return measure_msr_tsc_there();
	return true;
}
