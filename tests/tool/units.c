// SPDX-License-Identifier: GPL-2.0
/*
 * Parts of apic-timer alone, for test_units.py: they process standard input or the arguments.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apic_timer_user.h"
#include "commands.h"
#include "core.h"
#include "files.h"
#include "histogram.h"
#include "json.h"
#include "keys.h"
#include "say.h"
#include "series.h"
#include "skew.h"
#include "trace.h"
#include "tracing.h"
#include "tsc.h"

static void step(void)
{
	static uint64_t values[10000];
	struct tsc_step found;
	size_t count = 0;

	while (count < COUNT(values) && scanf("%" SCNu64, &values[count]) == 1)
		count++;
	found = tsc_step_of(values, count);
	printf("%u %u\n", found.step, found.residue);
}

static void skew(void)
{
	static struct skew_round rounds[2][10000];
	struct skew both;
	size_t count[2] = {};
	unsigned int role;
	struct skew_round round;

	while (scanf("%u %" SCNu64 " %" SCNu64 " %" SCNu64, &role, &round.sent, &round.stamp,
		     &round.back) == 4)
		rounds[role % 2][count[role % 2]++] = round;
	both = skew_both(skew_of(rounds[0], count[0]), skew_of(rounds[1], count[1]));
	printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 "\n", both.low, both.middle,
	       both.high, both.round_trip);
}

static void shares(int count, char **arguments)
{
	unsigned int tenths[8] = {};
	uint64_t parts[8];
	int i;

	for (i = 0; i < count && i < 8; i++)
		parts[i] = strtoull(arguments[i], NULL, 10);
	trace_shares(parts, tenths, count);
	for (i = 0; i < count; i++)
		printf("%u ", tenths[i]);
	putchar('\n');
}

static void cpulist(const char *list)
{
	bool in[64];
	int cpu;

	if (!files_cpulist(list, in, 64)) {
		puts("none");
		return;
	}
	for (cpu = 0; cpu < 64; cpu++)
		if (in[cpu])
			printf("%d ", cpu);
	putchar('\n');
}

/* Blocks as in the definitions: RC5 as two words, DES as 64 bits */
static void encrypt(int count, char **arguments)
{
	uint32_t key[4] = {}, block[2];
	uint64_t from;
	int i;

	if (!strcmp(arguments[0], "des")) {
		from = strtoull(arguments[2], NULL, 16);
		printf("%016" PRIX64 "\n",
		       keys_des_encrypt(strtoull(arguments[1], NULL, 16), from));
		return;
	}
	block[0] = strtoul(arguments[1], NULL, 16);
	block[1] = strtoul(arguments[2], NULL, 16);
	for (i = 3; i < count && i < 7; i++)
		key[i - 3] = strtoul(arguments[i], NULL, 16);
	keys_rc5_encrypt(key, count - 3, block);
	printf("%08" PRIX32 " %08" PRIX32 "\n", block[0], block[1]);
}

/* Hide a key, and search for it: among fewer keys, and among more. */
static void search(const char *cipher, uint64_t number)
{
	uint32_t key[2] = { number, number >> 32 };
	uint32_t block[2] = { (uint32_t)KEYS_PLAIN, KEYS_PLAIN >> 32 };
	uint64_t (*try)(uint64_t count) = keys_des;

	if (!strcmp(cipher, "des")) {
		keys_want(keys_des_encrypt(keys_des_key(number), KEYS_PLAIN));
	} else {
		try = keys_rc5;
		keys_rc5_encrypt(key, 2, block);
		keys_want((uint64_t)block[1] << 32 | block[0]);
	}
	try(number - 1);
	printf("%" PRIu64, keys_found());
	try(number + 1);
	printf(" %" PRIu64 "\n", keys_found());
}

/* Without the device the sleep fails: print the error, and by how much the moment has moved. */
static void period(uint64_t length, uint64_t passed)
{
	struct at at = { .fd = -1 };
	struct at_period period = { .next = at_readtsc() - passed * length, .period = length };
	uint64_t before = period.next;
	int ret = at_period_next(&at, &period);

	printf("%d %" PRIu64 "\n", ret, period.next - before);
}

/* Quantiles of counts: of the values below 0, then by powers of 2 */
static void counted(int64_t largest, int count, char **numbers)
{
	struct apic_measure_counts counts = { .largest = largest };
	int i;

	counts.early = strtoul(numbers[0], NULL, 10);
	for (i = 1; i < count && i <= APIC_MEASURE_BUCKETS; i++)
		counts.bucket[i - 1] = strtoul(numbers[i], NULL, 10);
	printf("%" PRId64 " %" PRId64 " %" PRId64 "\n", series_counted_quantile(&counts, 50),
	       series_counted_quantile(&counts, 99), series_counted_quantile(&counts, 100));
}

/* In place of tracing.c: the text of a histogram is in a file. */
void tracing_histogram(const char *event, const char *trigger)
{
	(void)event;
	(void)trigger;
}

char *tracing_read_histogram(const char *path)
{
	return files_read("%s", path);
}

/* What top prints of an interval: counts of the file UNTIL, without those of the file SINCE */
static void between(const char *since, const char *until)
{
	struct histogram before, now;

	histogram_read(&before, since, "error");
	histogram_read(&now, until, "error");
	histogram_subtract(&now, &before);
	printf("%" PRIu64 " %" PRIu64 "\n", now.hits, now.dropped);
}

static void json(const char *text)
{
	json_array(NULL);
	json_text(NULL, text);
	json_real(NULL, (double)INFINITY, 1);
	json_end();
}

bool opt_json = true;

static unsigned int begun, misjudged_after;

/* In place of core.c: nothing else runs, but that is found out late. */
void core_patience(double s)
{
	(void)s;
}

void core_begin(void)
{
	begun++;
}

bool core_was_alone(void)
{
	return true;
}

bool core_misjudged(void)
{
	bool now = misjudged_after && begun >= misjudged_after;

	if (now)
		misjudged_after = 0;
	return now;
}

long core_crowded(void)
{
	return 0;
}

/* @by: place of the table in the option's list; @after: see core_misjudged() */
static void memory(int by, unsigned int after, const char *root)
{
	const struct opt *opt;

	files_root = root;
	for (opt = memory_command.options; opt->name; opt++) {
		if (!strcmp(opt->name, "by"))
			*(int *)opt->value = by;
		if (!strcmp(opt->name, "runs"))
			*(long *)opt->value = 1;
	}
	misjudged_after = after ? after + 1 : 0;
	memory_command.run(0, NULL);
	/* Once before the first figure */
	printf("%u\n", begun - 1);
}

static size_t possible;	/* CPUs */

/* In place of the C library's: a kernel refuses a set for fewer CPUs than it may have. */
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
	if (size * 8 < possible) {
		errno = EINVAL;
		return -1;
	}
	memset(set, 0, size);
	return syscall(SYS_sched_getaffinity, process, size, set) < 0 ? -1 : 0;
}

static bool elsewhere;

/* In place of the C library's: whether a thread has been moved from its CPU */
int sched_getcpu(void)
{
	unsigned int cpu;

	if (syscall(SYS_getcpu, &cpu, NULL, NULL))
		return -1;
	return elsewhere ? cpu + 1 : cpu;
}

static void moved(void)
{
	int cpu = sched_getcpu();
	struct skew skew;

	printf("%d", skew_measure(cpu, cpu, 100, &skew));
	elsewhere = true;
	printf(" %d\n", skew_measure(cpu, cpu, 100, &skew));
}

static void allowed(size_t cpus)
{
	static bool in[CPUS];
	char *list;

	possible = cpus;
	tsc_allowed(in, CPUS);
	list = files_list(in, CPUS);
	puts(list);
	free(list);
}

int main(int count, char **arguments)
{
	if (count == 2 && !strcmp(arguments[1], "step"))
		step();
	else if (count == 2 && !strcmp(arguments[1], "skew"))
		skew();
	else if (count > 2 && !strcmp(arguments[1], "shares"))
		shares(count - 2, arguments + 2);
	else if (count == 4 && !strcmp(arguments[1], "between"))
		between(arguments[2], arguments[3]);
	else if (count == 3 && !strcmp(arguments[1], "json"))
		json(arguments[2]);
	else if (count == 3 && !strcmp(arguments[1], "cpulist"))
		cpulist(arguments[2]);
	else if (count == 5 && !strcmp(arguments[1], "memory"))
		memory(strtoul(arguments[2], NULL, 10), strtoul(arguments[3], NULL, 10),
		       arguments[4]);
	else if (count == 2 && !strcmp(arguments[1], "moved"))
		moved();
	else if (count == 3 && !strcmp(arguments[1], "allowed"))
		allowed(strtoul(arguments[2], NULL, 10));
	else if (count > 4 && !strcmp(arguments[1], "encrypt"))
		encrypt(count - 2, arguments + 2);
	else if (count == 4 && !strcmp(arguments[1], "search"))
		search(arguments[2], strtoull(arguments[3], NULL, 10));
	else if (count > 3 && !strcmp(arguments[1], "counted"))
		counted(strtoul(arguments[2], NULL, 10), count - 3, arguments + 3);
	else if (count == 4 && !strcmp(arguments[1], "period"))
		period(strtoull(arguments[2], NULL, 10), strtoull(arguments[3], NULL, 10));
	else
		return 2;
	return 0;
}
