// SPDX-License-Identifier: GPL-2.0
/*
 * Measure how far the TSC of one CPU is ahead of another's.
 *
 * CPU A sends a message, and B answers with its TSC. B's TSC - A's is at most
 * stamp - sent, because the message took some time, and at least stamp - back,
 * because the answer did. Disturbances of a round make these bounds wider,
 * never wrong. Each bound is the tightest of all rounds, and of both roles.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "say.h"
#include "skew.h"
#include "tsc.h"

struct skew skew_of(const struct skew_round *rounds, size_t count)
{
	struct skew skew = { INT64_MIN, INT64_MAX, 0, UINT64_MAX };
	size_t i;

	for (i = 0; i < count; i++) {
		int64_t low = (int64_t)(rounds[i].stamp - rounds[i].back);
		int64_t high = (int64_t)(rounds[i].stamp - rounds[i].sent);

		if (low > skew.low)
			skew.low = low;
		if (high < skew.high)
			skew.high = high;
		if (rounds[i].back - rounds[i].sent < skew.round_trip)
			skew.round_trip = rounds[i].back - rounds[i].sent;
	}
	skew.middle = skew.low / 2 + skew.high / 2;
	return skew;
}

struct skew skew_both(struct skew there, struct skew back)
{
	struct skew skew = there;

	if (-back.high > skew.low)
		skew.low = -back.high;
	if (-back.low < skew.high)
		skew.high = -back.low;
	/* A difference between the two directions cancels. */
	skew.middle = (there.middle - back.middle) / 2;
	if (back.round_trip < skew.round_trip)
		skew.round_trip = back.round_trip;
	return skew;
}

/* One cache line each, plus the neighbour that is fetched with it */
struct line {
	volatile uint64_t value;
} __attribute__((aligned(128)));

struct game {
	struct line ready, there, back;
	int a, b;
	size_t rounds;
	struct skew_round *round;
	volatile bool bad;
};

/* Number of reads of a line before yielding the CPU, which the other thread may need. */
#define PATIENCE 20000

static void wait_for(const struct line *line, uint64_t value, const volatile bool *bad)
{
	unsigned int turns = 0;

	while (line->value != value && !*bad) {
		asm volatile("pause");
		if (++turns % PATIENCE == 0)
			sched_yield();
	}
}

/* The kernel moves a thread whose CPU goes offline, or is taken from its cpuset. */
static void check_cpu(struct game *game, int cpu)
{
	if (sched_getcpu() != cpu)
		game->bad = true;
}

static void *answer(void *argument)
{
	struct game *game = argument;
	size_t i;

	if (!tsc_pin(game->b)) {
		game->bad = true;
		return NULL;
	}
	game->ready.value = 1;
	for (i = 1; i <= game->rounds && !game->bad; i++) {
		wait_for(&game->there, i, &game->bad);
		game->round[i - 1].stamp = tsc_read_ordered();
		game->back.value = i;
	}
	check_cpu(game, game->b);
	return NULL;
}

static void *ask(void *argument)
{
	struct game *game = argument;
	struct skew_round *round = game->round;
	size_t i;

	if (!tsc_pin(game->a)) {
		game->bad = true;
		return NULL;
	}
	wait_for(&game->ready, 1, &game->bad);
	for (i = 1; i <= game->rounds && !game->bad; i++, round++) {
		round->sent = tsc_read_ordered();
		game->there.value = i;
		wait_for(&game->back, i, &game->bad);
		round->back = tsc_read_ordered();
	}
	check_cpu(game, game->a);
	return NULL;
}

static bool play(int a, int b, size_t rounds, struct skew *skew)
{
	struct game game = { .a = a, .b = b, .rounds = rounds };
	pthread_t threads[2];

	game.round = calloc(rounds, sizeof(*game.round));
	if (!game.round || pthread_create(&threads[0], NULL, ask, &game))
		fail("can't create a thread: out of memory");
	if (pthread_create(&threads[1], NULL, answer, &game))
		game.bad = true;
	else
		pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
	/* The first rounds find the lines in another cache. */
	if (!game.bad)
		*skew = skew_of(game.round + rounds / 10, rounds - rounds / 10);
	free(game.round);
	return !game.bad;
}

bool skew_measure(int a, int b, size_t rounds, struct skew *skew)
{
	struct skew there, back;

	if (!play(a, b, rounds, &there) || !play(b, a, rounds, &back))
		return false;
	*skew = skew_both(there, back);
	return true;
}
