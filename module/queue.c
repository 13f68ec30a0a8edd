// SPDX-License-Identifier: GPL-2.0
/*
 * Timers in the order of their expiry: a doubly linked list for the order
 * (head and neighbours in O(1)) with an rbtree over the same timers for the
 * place to insert (O(log n)).
 */
#include "queue.h"

#define node_timer(n) rb_entry(n, struct apic_timer_list, node)

/**
 * apic_timer_queue_init() - make a queue empty
 * @queue:	the queue
 */
void apic_timer_queue_init(struct apic_timer_queue *queue)
{
	*queue = (struct apic_timer_queue){ .index = RB_ROOT };
}

/**
 * apic_timer_queue_add() - insert a timer by its expiry
 * @queue:	the queue
 * @timer:	in no queue; @timer->expires is read
 *
 * Return: true when @timer is the new head, which means that what is armed
 * must change.
 */
bool apic_timer_queue_add(struct apic_timer_queue *queue,
			  struct apic_timer_list *timer)
{
	struct rb_node **link = &queue->index.rb_node, *parent = NULL;
	struct apic_timer_list *prev = NULL, *next = NULL;

	if (!queue->first) {
		/* The first one: the root itself. */
	} else if (timer->expires < queue->first->expires) {
		next = queue->first;
		parent = &next->node;
		link = &parent->rb_left;
	} else if (timer->expires >= queue->last->expires) {
		prev = queue->last;
		parent = &prev->node;
		link = &parent->rb_right;
	} else {
		while (*link) {
			parent = *link;
			if (timer->expires < node_timer(parent)->expires) {
				next = node_timer(parent);
				link = &parent->rb_left;
			} else {
				prev = node_timer(parent);
				link = &parent->rb_right;
			}
		}
	}

	timer->prev = prev;
	timer->next = next;
	*(prev ? &prev->next : &queue->first) = timer;
	*(next ? &next->prev : &queue->last) = timer;

	rb_link_node(&timer->node, parent, link);
	rb_insert_color(&timer->node, &queue->index);
	queue->count++;

	return !prev;
}

/**
 * apic_timer_queue_del() - take a timer out
 * @queue:	the queue that @timer is in
 * @timer:	the timer
 */
void apic_timer_queue_del(struct apic_timer_queue *queue,
			  struct apic_timer_list *timer)
{
	struct apic_timer_list *prev = timer->prev, *next = timer->next;

	*(prev ? &prev->next : &queue->first) = next;
	*(next ? &next->prev : &queue->last) = prev;
	timer->prev = NULL;
	timer->next = NULL;

	rb_erase(&timer->node, &queue->index);
	queue->count--;
}

/**
 * apic_timer_queue_find() - first timer that expires at or after a moment
 * @queue:	the queue
 * @expires:	absolute TSC, cycles
 *
 * Return: the timer, or NULL when all expire earlier.
 */
struct apic_timer_list *
apic_timer_queue_find(const struct apic_timer_queue *queue, u64 expires)
{
	struct rb_node *node = queue->index.rb_node;
	struct apic_timer_list *found = NULL;

	while (node) {
		if (node_timer(node)->expires >= expires) {
			found = node_timer(node);
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}
