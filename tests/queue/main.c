// SPDX-License-Identifier: GPL-2.0
/*
 * Measure operations on the queue that run with its lock held and interrupts off, in a process on
 * the current CPU: module/core/lib/queue.c, unmodified, with all the memory that it touches
 * flushed from the caches before each operation.
 *
 * All is done REPEATS times over, from the same random numbers, so that each operation finds the
 * same queue each time, and its least time counts: what else the machine did meanwhile, and the
 * host of a guest, can only add to it.
 *
 * Usage: time [TIMERS]: ns, with cold caches, up to TIMERS pending
 *        count [TIMERS]: timers and cache lines touched, whatever the machine
 *
 * Each timer that an operation touches may be a cache miss, which must complete before the next is
 * known. One takes 60 to 150 ns.
 */
#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#include "ops.h"
#include "sanitizer.h"

#define LINE	64
#define HUGE	(2UL << 20)

/* The queue of a CPU, and that of another to which timers migrate. */
static struct apic_timer_queue queues[2] __aligned(LINE);
#define queue		queues[0]
static struct apic_timer_list *timers;
static struct apic_timer_list **free_timers;
static unsigned long n_timers, n_free;

u64 apic_timer_tsc_shift(u64 tsc, s64 shift)
{
	return tsc + shift;
}

static u64 state = 88172645463325252ULL;

static u64 random_u64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* One operation. */
struct sample {
	u64 cost;	/* TSC cycles, or timers touched */
	u64 lines;	/* cache lines touched */
};

#ifdef COUNT
#define REPEATS	1

static u32 now, *timer_seen, *line_seen, queue_seen[sizeof(queues) / LINE + 1];
static struct sample sample;
static bool counting;

static void touch(const void *address, size_t size)
{
	uintptr_t first = (uintptr_t)address, last = first + size - 1;
	uintptr_t begin = (uintptr_t)timers, line;
	uintptr_t end = (uintptr_t)(timers + n_timers);

	if (!counting)
		return;
	for (line = first / LINE; line <= last / LINE; line++) {
		u32 *seen = NULL;

		if (first >= begin && first < end)
			seen = &line_seen[line - begin / LINE];
		else if (first >= (uintptr_t)queues && first < (uintptr_t)(queues + 2))
			seen = &queue_seen[line - (uintptr_t)queues / LINE];
		if (seen && *seen != now) {
			*seen = now;
			sample.lines++;
		}
	}
	if (first >= begin && first < end) {
		u32 *seen = &timer_seen[(first - begin) / sizeof(*timers)];

		sample.cost += *seen != now;
		*seen = now;
	}
}

/* Functions called by -fsanitize=thread, without its library. */
#define TOUCH(n)							\
	void __tsan_read##n(void *address) { touch(address, n); }	\
	void __tsan_write##n(void *address) { touch(address, n); }
TOUCH(1)
TOUCH(2)
TOUCH(4)
TOUCH(8)
TOUCH(16)

void __tsan_read_range(void *address, long size)
{
	touch(address, size);
}

void __tsan_write_range(void *address, long size)
{
	touch(address, size);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
}

void __tsan_func_exit(void)
{
}

#define MEASURE(operation)						\
({									\
	now++;								\
	sample = (struct sample) {};					\
	counting = true;						\
	operation;							\
	counting = false;						\
	sample;								\
})

static void get_ready(void)
{
	timer_seen = calloc(n_timers, sizeof(*timer_seen));
	line_seen = calloc(n_timers * sizeof(*timers) / LINE + 2,
			   sizeof(*line_seen));
	if (!timer_seen || !line_seen)
		exit(1);
}
#else
#define REPEATS	5

static bool has_clflushopt;

/* CLFLUSHOPT does not wait for the previous one: on a Xeon that is all of the time. */
static __attribute__((target("clflushopt"))) void
flush_at_once(const char *at, const char *end)
{
	for (; at < end; at += LINE)
		_mm_clflushopt((void *)at);
}

static void flush(const void *begin, size_t size)
{
	const char *at = begin, *end = at + size;

	if (has_clflushopt) {
		flush_at_once(at, end);
		return;
	}
	for (; at < end; at += LINE)
		_mm_clflush(at);
}

static u64 tsc(void)
{
	_mm_lfence();
	u64 now = __rdtsc();

	_mm_lfence();
	return now;
}

#define MEASURE(operation)						\
({									\
	struct sample sample = {};					\
									\
	flush(timers, n_timers * sizeof(*timers));			\
	flush(queues, sizeof(queues));					\
	_mm_mfence();							\
	sample.cost = tsc();						\
	operation;							\
	sample.cost = tsc() - sample.cost;				\
	sample;								\
})

static void get_ready(void)
{
	u32 eax, ebx, ecx, edx;

	if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
		has_clflushopt = ebx >> 23 & 1;
}
#endif

static double unit_ns(void)
{
#ifdef COUNT
	return 1;
#else
	struct timespec a, b;
	u64 began;

	clock_gettime(CLOCK_MONOTONIC_RAW, &a);
	began = tsc();
	do
		clock_gettime(CLOCK_MONOTONIC_RAW, &b);
	while ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec < 5e7);
	return ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) /
	       (tsc() - began);
#endif
}

enum order { RANDOM, ASCENDING, DESCENDING, EQUAL, ORDERS };

static const char * const order_names[ORDERS] = {
	"random", "ascending", "descending", "equal",
};

#define FAR	BIT(40)

/* Return the moment of timer number @i in an order of addition. */
static u64 moment(enum order order, u64 i)
{
	switch (order) {
	case ASCENDING:
		return FAR + i * 1000;
	case DESCENDING:
		return FAR - i * 1000;
	case EQUAL:
		return FAR;
	default:
		return FAR + random_u64() % FAR;
	}
}

static struct apic_timer_list *take(u64 expires)
{
	struct apic_timer_list *timer = free_timers[--n_free];

	timer->expires = expires;
	return timer;
}

static struct apic_timer_list *any(void)
{
	struct apic_timer_list *timer;

	do
		timer = &timers[random_u64() % n_timers];
	while (!timer->data);
	return timer;
}

/* A timer's data says whether it is pending. */
static void add_to(struct apic_timer_queue *to, struct apic_timer_list *timer)
{
	ops_add(to, timer);
	timer->data = 1;
}

static void add(struct apic_timer_list *timer)
{
	add_to(&queue, timer);
}

static void gone(struct apic_timer_list *timer)
{
	timer->data = 0;
	free_timers[n_free++] = timer;
}

/* Queue @n timers, not in order of their memory, spread over @n_queues. */
static void fill(unsigned long n, enum order order, unsigned int n_queues)
{
	unsigned long i;

	for (i = 0; i < 2; i++)
		apic_timer_queue_init(&queues[i]);
	for (i = 0; i < n_timers; i++) {
		free_timers[i] = &timers[i];
		timers[i].data = 0;
	}
	for (i = n_timers; i > 1; i--) {
		unsigned long j = random_u64() % i;
		struct apic_timer_list *timer = free_timers[j];

		free_timers[j] = free_timers[i - 1];
		free_timers[i - 1] = timer;
	}
	n_free = n_timers;
	for (i = 0; i < n; i++)
		add_to(&queues[i % n_queues], take(moment(order, i)));
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static double unit;
static unsigned int repeat;

/* Keep each operation's least time in @least, and print the row of the last repetition. */
static void print(unsigned long n, enum order order, const char *what,
		  struct sample *samples, unsigned long size,
		  struct sample *least)
{
	u64 lines = 0;
	unsigned long i;

	for (i = 0; i < size; i++)
		if (!repeat || samples[i].cost < least[i].cost)
			least[i] = samples[i];
	if (!size || repeat < REPEATS - 1)
		return;
	for (i = 0; i < size; i++)
		if (least[i].lines > lines)
			lines = least[i].lines;
	qsort(least, size, sizeof(*least), compare);
	printf("%9lu %-10s %-14s %8lu %9.0f %9.0f %9.0f", n, order_names[order],
	       what, size, least[size / 2].cost * unit,
	       least[size - 1 - size / 100].cost * unit,
	       least[size - 1].cost * unit);
#ifdef COUNT
	printf(" %9lu", (unsigned long)lines);
#endif
	printf("\n");
	fflush(stdout);
}

/* A shift touches all timers. */
#define SHIFTS	5
#define OPERATIONS	11

static void round_of(unsigned long n, enum order order, unsigned long size,
		     struct sample *least)
{
	struct apic_timer_queue_cursor cursor;
	struct sample *samples = calloc(size, sizeof(*samples));
	struct apic_timer_list *timer;
	unsigned long i, number = n;
	bool more;

	if (!samples)
		exit(1);
	fill(n, order, 1);
	for (i = 0; i < SHIFTS; i++)
		samples[i] = MEASURE(ops_shift(&queue));
	print(n, order, "shift", samples, SHIFTS, least);

	for (i = 0; i < size; i++) {
		timer = take(moment(order, number++));
		samples[i] = MEASURE(ops_add(&queue, timer));
		timer->data = 1;
		timer = any();
		ops_del(&queue, timer);
		gone(timer);
	}
	print(n, order, "add", samples, size, least + size);

	for (i = 0; i < size; i++) {
		timer = take(moment(order, number++));
		ops_add(&queue, timer);
		samples[i] = MEASURE(ops_del(&queue, timer));
		gone(timer);
	}
	print(n, order, "delete young", samples, size, least + 2 * size);

	for (i = 0; i < size; i++) {
		timer = any();
		samples[i] = MEASURE(ops_del(&queue, timer));
		gone(timer);
		add(take(moment(order, number++)));
	}
	print(n, order, "delete old", samples, size, least + 3 * size);

	for (i = 0; i < size; i++) {
		timer = queue.first;
		samples[i] = MEASURE(ops_del(&queue, timer));
		gone(timer);
		add(take(moment(order, number++)));
	}
	print(n, order, "delete head", samples, size, least + 4 * size);

	/* A watchdog that is kicked: the timers are arrivals, or sorted long ago. */
	for (i = 0; i < size; i++) {
		timer = any();
		samples[i] = MEASURE(ops_modify(&queue, timer,
						moment(order, number++)));
	}
	print(n, order, "modify", samples, size, least + 5 * size);

	/* The next head is one of the maximum number of arrivals. */
	for (i = 0; i < 33; i++)
		add(take(i ? 1 + random_u64() % FAR / 4 : 0));
	for (i = 0; i < size; i++) {
		timer = queue.first;
		samples[i] = MEASURE(ops_del(&queue, timer));
		gone(timer);
		add(take(queue.first->expires + random_u64() % FAR / 4));
	}
	print(n, order, "delete, refill", samples, size, least + 6 * size);

	apic_timer_queue_cursor_init(&cursor);
	for (i = 0, more = true; i < size && more; i++)
		samples[i] = MEASURE(more = ops_look(&queue, &cursor));
	apic_timer_queue_walk_end(&queue, &cursor);
	print(n, order, "look", samples, i, least + 7 * size);

	/* Removed timers do not matter: the queue is filled anew. */
	for (i = 0; i < 32; i++)
		add(take(moment(order, number++)));
	apic_timer_queue_cursor_init(&cursor);
	for (i = 0, more = true; i < size && more; i++)
		samples[i] = MEASURE(more = ops_cancel(&queue, &cursor));
	apic_timer_queue_walk_end(&queue, &cursor);
	print(n, order, "cancel", samples, i, least + 8 * size);

	/* Two CPUs have these timers, until one of them goes offline. */
	fill(n, order, 2);
	for (i = 0; i < size && queue.first; i++) {
		ops_make_room(&queues[1]);
		samples[i] = MEASURE(ops_migrate(&queue, &queues[1]));
	}
	print(n, order, "migrate", samples, i, least + 9 * size);

	fill(n, order, 2);
	for (i = 0; i < size && queue.first; i++) {
		samples[i] = MEASURE(ops_make_room(&queues[1]));
		ops_migrate(&queue, &queues[1]);
	}
	print(n, order, "make room", samples, i, least + 10 * size);
	free(samples);
}

int main(int argc, char **argv)
{
	unsigned long most = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	struct sample *least;
	unsigned long n, size;
	enum order order;
	unsigned int cpu;
	cpu_set_t set;

	if (most < 100) {
		fprintf(stderr, "usage: %s [TIMERS], 100 at least\n", argv[0]);
		return 2;
	}
	/* One TSC, one cache. */
	getcpu(&cpu, NULL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	unit = unit_ns();

	printf("least of %u\n", REPEATS);
	printf("%9s %-10s %-14s %8s %9s %9s %9s%s\n", "pending", "order",
	       "with the lock", "n", "p50", "p99", "max",
#ifdef COUNT
	       "     lines"
#else
	       ""
#endif
	      );
	for (n = 100; n <= most; n *= n == 100 ? 100 : 10) {
		n_timers = n + 200;
		/* On large pages, like the kernel's memory. */
		timers = mmap(NULL, n_timers * sizeof(*timers) + HUGE,
			      PROT_READ | PROT_WRITE, MAP_PRIVATE |
			      MAP_ANONYMOUS, -1, 0);
		free_timers = calloc(n_timers, sizeof(*free_timers));
		if (timers == MAP_FAILED || !free_timers)
			return 1;
		timers = (void *)(((uintptr_t)timers + HUGE - 1) & -HUGE);
		madvise(timers, n_timers * sizeof(*timers), MADV_HUGEPAGE);
		get_ready();
		for (order = 0; order < ORDERS; order++) {
#ifdef COUNT
			size = 20000;
#else
			size = n > 100000 ? 100 : n > 10000 ? 300 : 2000;
#endif
			u64 seed = state;

			least = calloc(OPERATIONS * size, sizeof(*least));
			if (!least)
				return 1;
			for (repeat = 0; repeat < REPEATS; repeat++) {
				state = seed;
				round_of(n, order, size, least);
			}
			free(least);
		}
		/* The process's end frees the rest. */
		free(free_timers);
	}
	return 0;
}
