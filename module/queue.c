// SPDX-License-Identifier: GPL-2.0
/*
 * The less frequent paths of the queue: sorting, splitting groups, finding the
 * next head.
 */
#include "queue.h"
#include "tsc.h"

#define node_timer(n) rb_entry(n, struct apic_timer_list, node)

/* A place in the index. */
struct place {
	struct rb_node *parent, **link;
};

/**
 * apic_timer_queue_init() - make a queue empty
 * @queue:	the queue
 */
void apic_timer_queue_init(struct apic_timer_queue *queue)
{
	*queue = (struct apic_timer_queue) {
		.index = RB_ROOT,
		.arrivals = {
			.next = &queue->arrivals,
			.prev = &queue->arrivals,
			.expires = U64_MAX,
		},
	};
}

/*
 * Halve a group that has grown, if it has indeed: nobody counts the timers that
 * are deleted from it.
 *
 * Return: number of timers left in the group that begins at @timer. The rest
 * has become a group of its own, at @place in the index.
 */
static unsigned int split(struct apic_timer_queue *queue,
			  struct apic_timer_list *timer,
			  const struct place *place)
{
	struct apic_timer_list *middle = timer, *end;
	unsigned int size = 1;

	for (end = timer->next; end && !end->group; end = end->next)
		if (++size & 1)
			middle = middle->next;
	if (size <= APIC_TIMER_QUEUE_GROUP / 2)
		return size;

	middle = middle->next;
	middle->group = size - (size + 1) / 2;
	rb_link_node(&middle->node, place->parent, place->link);
	rb_insert_color(&middle->node, &queue->index);
	return (size + 1) / 2;
}

/**
 * apic_timer_queue_split_lead() - halve what precedes the first leader
 * @queue:	not empty, its first timer not a leader
 *
 * Seldom needed: not inlined, so that who calls it needs no stack frame.
 */
noinline void apic_timer_queue_split_lead(struct apic_timer_queue *queue)
{
	struct place place = { .link = &queue->index.rb_node };

	while (*place.link) {
		place.parent = *place.link;
		place.link = &place.parent->rb_left;
	}
	queue->lead = split(queue, queue->first, &place);
}

/* Sort a timer in. It has been in no list, and isn't the head. */
static void sort(struct apic_timer_queue *queue, struct apic_timer_list *timer)
{
	struct apic_timer_list *leader = NULL, *prev, *next;
	struct place place = { .link = &queue->index.rb_node };
	u64 expires = timer->expires;

	while (*place.link) {
		place.parent = *place.link;
		if (expires < node_timer(place.parent)->expires) {
			place.link = &place.parent->rb_left;
		} else {
			leader = node_timer(place.parent);
			place.link = &place.parent->rb_right;
		}
	}

	/* The next leader expires later, so that this ends in the group. */
	prev = leader ?: queue->first;
	while ((next = prev->next) && next->expires <= expires)
		prev = next;

	timer->group = 0;
	timer->prev = prev;
	timer->next = next;
	prev->next = timer;
	if (next)
		next->prev = timer;

	if (!leader) {
		if (++queue->lead > APIC_TIMER_QUEUE_GROUP)
			queue->lead = split(queue, queue->first, &place);
	} else if (++leader->group > APIC_TIMER_QUEUE_GROUP) {
		leader->group = split(queue, leader, &place);
	}
}

static void leave_arrivals(struct apic_timer_queue *queue,
			   struct apic_timer_list *timer)
{
	timer->prev->next = timer->next;
	timer->next->prev = timer->prev;
	queue->arrived--;
}

/* The oldest first, so that equal timers are sorted as they have arrived. */
static void sort_oldest(struct apic_timer_queue *queue)
{
	struct apic_timer_list *timer = queue->arrivals.next;

	leave_arrivals(queue, timer);
	sort(queue, timer);
}

/**
 * apic_timer_queue_arrive_late() - let a timer wait for which there is no room
 * @queue:	full of arrivals
 * @timer:	not earlier than the head
 */
void apic_timer_queue_arrive_late(struct apic_timer_queue *queue,
				  struct apic_timer_list *timer)
{
	sort_oldest(queue);
	apic_timer_queue_arrive(queue, timer);
}

/**
 * apic_timer_queue_settle() - sort all arrivals
 * @queue:	the queue
 *
 * Then all timers are in the list that begins at @queue->first.
 */
void apic_timer_queue_settle(struct apic_timer_queue *queue)
{
	while (queue->arrived)
		sort_oldest(queue);
	queue->arrivals.expires = U64_MAX;
}

/*
 * Let the earliest arrival be the head if nothing sorted is as early; of equal
 * ones the oldest. There is one.
 */
static void refill(struct apic_timer_queue *queue)
{
	struct apic_timer_list *earliest = queue->arrivals.next;
	struct apic_timer_list *timer = earliest->next;
	u64 least = earliest->expires, second = U64_MAX;

	for (; timer != &queue->arrivals; timer = timer->next) {
		if (timer->expires < least) {
			second = least;
			least = timer->expires;
			earliest = timer;
		} else if (timer->expires < second) {
			second = timer->expires;
		}
	}

	queue->arrivals.expires = least;
	if (queue->first && queue->first->expires <= least)
		return;
	queue->arrivals.expires = second;
	leave_arrivals(queue, earliest);
	apic_timer_queue_push(queue, earliest);
}

/* Take out the head, which is not in the index, whatever has arrived. */
static void pop(struct apic_timer_queue *queue)
{
	struct apic_timer_list *next = queue->first->next;

	queue->lead--;
	queue->first = next;
	if (next)
		next->prev = NULL;
}

/**
 * apic_timer_queue_del_first() - take out the head and find the next
 * @queue:	not empty, its head not in the index; the next may be an arrival
 */
void apic_timer_queue_del_first(struct apic_timer_queue *queue)
{
	pop(queue);
	if (queue->arrived)
		refill(queue);
}

/**
 * apic_timer_queue_del_leader() - take out a timer that is in the index
 * @queue:	the queue
 * @timer:	a leader
 */
void apic_timer_queue_del_leader(struct apic_timer_queue *queue,
				 struct apic_timer_list *timer)
{
	struct apic_timer_list *prev = timer->prev, *next = timer->next;

	if (!prev) {
		/* Its group has none before it now. */
		queue->lead = timer->group;
		rb_erase(&timer->node, &queue->index);
		pop(queue);
		/* At the same moment, what is sorted is what came first. */
		if (queue->arrived &&
		    (!next || next->expires > queue->arrivals.expires))
			refill(queue);
		return;
	}

	if (next && !next->group) {
		next->group = timer->group - 1;
		rb_replace_node(&timer->node, &next->node, &queue->index);
	} else {
		rb_erase(&timer->node, &queue->index);
	}
	prev->next = next;
	if (next)
		next->prev = prev;
}

/**
 * apic_timer_queue_find() - first timer that expires at or after a moment
 * @queue:	the queue; its arrivals get sorted
 * @expires:	absolute TSC, cycles
 *
 * Return: the timer, from where the list of all later ones goes on, or NULL
 * when all expire earlier.
 */
struct apic_timer_list *apic_timer_queue_find(struct apic_timer_queue *queue,
					      u64 expires)
{
	struct apic_timer_list *timer;
	struct rb_node *node;

	apic_timer_queue_settle(queue);
	timer = queue->first;
	node = queue->index.rb_node;
	while (node) {
		if (node_timer(node)->expires < expires) {
			timer = node_timer(node);
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	while (timer && timer->expires < expires)
		timer = timer->next;
	return timer;
}

/**
 * apic_timer_queue_shift() - move all timers in time
 * @queue:	the queue
 * @shift:	TSC cycles, see apic_timer_tsc_shift()
 *
 * Their order stays: what saturates becomes equal, never reversed.
 */
void apic_timer_queue_shift(struct apic_timer_queue *queue, s64 shift)
{
	struct apic_timer_list *arrivals = &queue->arrivals, *timer;

	for (timer = queue->first; timer; timer = timer->next)
		timer->expires = apic_timer_tsc_shift(timer->expires, shift);
	for (timer = arrivals->next; timer != arrivals; timer = timer->next)
		timer->expires = apic_timer_tsc_shift(timer->expires, shift);
	arrivals->expires = apic_timer_tsc_shift(arrivals->expires, shift);
}
