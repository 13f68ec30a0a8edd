// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that leave at a moment of a kernel clock, while that is far.
 *
 * NTP steers the kernel's clocks by up to 500 ppm, and may set them. A conversion a second
 * ahead may be off by half a millisecond when its moment arrives. Such packets therefore wait in
 * the order of their clock, which no conversion changes. Only the first packet of each clock is
 * converted again on the way to its moment. Once that is near, the packet joins the others, with
 * a TSC value that holds:
 *
 *	enqueue ---- near ------------------------------> queue (edf.c, class.c)
 *	        \--- far ---> by clock ---- near ------/
 *
 * A packet with a class is put into it only then. If the packets of a flow must keep their
 * order, all are queued at once, because a far packet may have a near one behind it.
 *
 * With a clocksource other than the TSC, a conversion may be off by the time to read it, and by
 * more the farther ahead the moment is. A packet may be late by that, but not early: the last
 * conversion adds the error. Adding it to a conversion from afar would cost 2 ms in a second,
 * without need. A late packet delays those behind it in its clock, so that they do not overtake
 * it.
 */
#include <linux/apic_timer.h>
#include <linux/bitops.h>
#include <linux/minmax.h>

#include "cb.h"
#include "far.h"
#include "shift.h"

static const clockid_t clocks[SHAPER_CLOCKS] = { CLOCK_MONOTONIC, CLOCK_TAI, CLOCK_REALTIME };

/* A TSC value in the past. It is not 0, which means that a timer is not armed. */
#define PASSED	1

static unsigned int index_of(clockid_t clock)
{
	unsigned int i = 0;

	while (i < SHAPER_CLOCKS - 1 && clocks[i] != clock)
		i++;
	return i;
}

/**
 * shaper_far_init() - initialise, without packets
 * @far:	packets
 *
 * Context: Any.
 */
void shaper_far_init(struct shaper_far *far)
{
	unsigned int i;

	*far = (struct shaper_far) {};
	for (i = 0; i < SHAPER_CLOCKS; i++) {
		far->clock[i].id = clocks[i];
		far->clock[i].bit = BIT(i);
		shaper_edf_init(&far->clock[i].edf);
	}
	shaper_far_look_again(far);
}

/**
 * shaper_far_to_tsc() - convert a departure time
 * @clock:	CLOCK_MONOTONIC, CLOCK_REALTIME or CLOCK_TAI
 * @time:	departure time in that clock
 * @near:	absolute TSC up to which a departure time is near
 * @is_far:	set to true if it is far, and has to be converted again
 *
 * Context: Any but NMI.
 * Return: absolute TSC; 0 if that was before the TSC started, U64_MAX if it does not fit.
 */
u64 shaper_far_to_tsc(clockid_t clock, ktime_t time, u64 near, bool *is_far)
{
	u64 error, tsc = apic_timer_clock_to_tsc(clock, time, &error);

	*is_far = tsc > near;
	return *is_far ? tsc : shaper_later(tsc, error);
}

/*
 * Find the remembered packet that a new one must stay behind, or replaces: the first that leaves
 * no later than the new one, by their clock or by the TSC. The places are in descending order of
 * TSC, so those further down delay no packet that this one does not.
 */
static struct shaper_far_last *place_of(struct shaper_far_clock *clock, ktime_t time, u64 at)
{
	struct shaper_far_last *last = clock->before;
	unsigned int i;

	for (i = 0; i < SHAPER_SENDERS; i++, last++)
		if (time >= last->time || at >= last->at)
			return last;
	return NULL;
}

static u64 in_order(struct shaper_far_clock *clock, ktime_t time, u64 at)
{
	struct shaper_far_last *last = place_of(clock, time, at);

	if (unlikely(!last))
		return at;
	if (time >= last->time)
		at = max(at, last->at);
	*last = (struct shaper_far_last) { .time = time, .at = at };
	return at;
}

/**
 * shaper_far_in_order() - keep a packet behind those before it in its clock
 * @far:	packets
 * @clock:	as for shaper_far_to_tsc()
 * @time:	departure time of the packet, which is near, in that clock
 * @at:		the converted departure time, absolute TSC
 *
 * Of all packets passed to this function, the one that leaves last is remembered; of those that
 * leave before it, in their clock and by the TSC, again the last; and so on. That keeps the order
 * of each sender, if a few senders queue their packets ahead of time, each by its own interval. If
 * two senders use about the same interval, the packet of one may make the other's forgotten.
 *
 * Context: Any; the caller serialises access to @far.
 * Return: when the packet must leave, absolute TSC: @at, or when the one before it does.
 */
u64 shaper_far_in_order(struct shaper_far *far, clockid_t clock, ktime_t time, u64 at)
{
	return in_order(&far->clock[index_of(clock)], time, at);
}

/**
 * shaper_far_behind() - keep a packet that wants to leave at once behind those before it
 * @far:	packets
 * @clock:	as for shaper_far_to_tsc()
 * @time:	departure time of the packet, which has passed, in that clock
 * @now:	absolute TSC
 *
 * No packet is kept behind it, because it is later than its time.
 *
 * Context: Any; the caller serialises access to @far.
 * Return: when the packet must leave, absolute TSC: @now, or when the one before it does.
 */
u64 shaper_far_behind(struct shaper_far *far, clockid_t clock, ktime_t time, u64 now)
{
	const struct shaper_far_last *last = place_of(&far->clock[index_of(clock)], time, now);

	return last ? max(now, last->at) : now;
}

/*
 * The first packet of a clock. Of two with the same time, the one in the list was queued first:
 * the other had a time before @latest, and the list has had only later times since.
 */
static struct sk_buff *first_of(const struct shaper_far_clock *clock)
{
	struct sk_buff *listed = clock->first, *other = shaper_edf_first(&clock->edf);

	if (likely(!other))
		return listed;
	return !listed || shaper_cb(other)->want < shaper_cb(listed)->want ? other : listed;
}

/* Most packets are queued in the order of their times, and need no tree. */
static bool append(struct shaper_far_clock *clock, struct sk_buff *skb)
{
	u64 time = shaper_cb(skb)->want;

	if (clock->first ? time < clock->latest : !!shaper_edf_first(&clock->edf))
		return false;
	skb->next = NULL;
	skb->prev = clock->last;
	if (clock->last)
		clock->last->next = skb;
	else
		clock->first = skb;
	clock->last = skb;
	clock->latest = time;
	return true;
}

static void unlink(struct shaper_far_clock *clock, struct sk_buff *skb)
{
	if (skb->prev)
		skb->prev->next = skb->next;
	else
		clock->first = skb->next;
	if (skb->next)
		skb->next->prev = skb->prev;
	else
		clock->last = skb->prev;
	skb->next = NULL;
	skb->prev = NULL;
}

/* Find when the first of the clocks needs a look. */
static void settle(struct shaper_far *far)
{
	struct shaper_far_clock *clock;
	u32 left;

	far->look = U64_MAX;
	far->due = U64_MAX;
	for (left = far->clocks; left; left &= left - 1) {
		clock = &far->clock[__ffs(left)];
		far->look = min(far->look, clock->look);
		if (clock->due < far->due) {
			far->due = clock->due;
			far->next = clock;
		}
	}
}

/**
 * shaper_far_insert() - keep a packet until its departure time is near
 * @far:	packets
 * @skb:	the packet; &shaper_cb.want is set
 * @clock:	as for shaper_far_to_tsc()
 *
 * Context: Any; the caller serialises access to @far.
 * Return: true if it is the first of its clock, which shaper_far_pop() has to check.
 */
bool shaper_far_insert(struct shaper_far *far, struct sk_buff *skb, clockid_t clock)
{
	struct shaper_far_clock *own = &far->clock[index_of(clock)];

	shaper_cb(skb)->want = ktime_to_ns(skb->tstamp);
	far->count++;
	far->clocks |= own->bit;
	if (!append(own, skb))
		shaper_edf_insert(&own->edf, skb);
	if (first_of(own) != skb)
		return false;
	own->look = PASSED;
	own->due = PASSED;
	settle(far);
	return true;
}

/**
 * shaper_far_precedes() - check whether a near packet would overtake a far one
 * @far:	packets
 * @clock:	as for shaper_far_to_tsc()
 * @time:	departure time of the packet, which is near, in that clock
 *
 * Context: Any; the caller serialises access to @far.
 * Return: true if @far has a packet that was queued earlier, and leaves no later.
 */
bool shaper_far_precedes(const struct shaper_far *far, clockid_t clock, ktime_t time)
{
	struct sk_buff *skb = first_of(&far->clock[index_of(clock)]);

	/* A negative @time has passed, but times of far packets have not: compare signed. */
	return skb && (s64)shaper_cb(skb)->want <= ktime_to_ns(time);
}

/* Set the cursor to the first packet of a clock's list or, from its end on, of its tree. */
static void enter(struct shaper_far *far, bool listed)
{
	const struct shaper_far_clock *clock = &far->clock[far->cursor_clock];

	far->cursor_listed = listed && clock->first;
	far->cursor = far->cursor_listed ? clock->first : shaper_edf_first(&clock->edf);
}

static void step(struct shaper_far *far)
{
	if (!far->cursor_listed)
		far->cursor = rb_to_skb(rb_next(&far->cursor->rbnode));
	else if (far->cursor->next)
		far->cursor = far->cursor->next;
	else
		enter(far, false);
	while (!far->cursor && ++far->cursor_clock < SHAPER_CLOCKS)
		enter(far, true);
}

static void erase(struct shaper_far *far, struct shaper_far_clock *clock, struct sk_buff *skb,
		  bool listed)
{
	if (unlikely(skb == far->cursor))
		step(far);
	if (likely(listed))
		unlink(clock, skb);
	else
		shaper_edf_erase(&clock->edf, skb);
	far->count--;
	if (!first_of(clock))
		far->clocks &= ~clock->bit;
}

/* Note when to look at a clock's first packet, which has to be handed over at @at. */
static __always_inline void note(struct shaper_far_clock *clock, u64 at, u64 now, u64 near)
{
	/* Convert again after 15/16 of the way: four conversions for ten seconds. */
	clock->look = at - (at - now) / 16 - 1;
	clock->due = min(clock->look, at - near);
}

/* Longest distance of two packets that foresee() computes with, ns: the product fits. */
#define DISTANCE	(36 * NSEC_PER_SEC)

/*
 * The first packet of a clock has come near: note the next one. A far packet is not converted for
 * this, which would make two conversions for each packet. Its moment follows from the first one's;
 * steering of the clock matters as little as it does for a conversion from afar.
 * @time, @at: of the first packet: its departure time, and when it has to be handed over
 */
static __always_inline void foresee(const struct shaper_far *far, struct shaper_far_clock *clock,
				    u64 time, u64 at, u64 now, u64 near)
{
	const struct sk_buff *next = first_of(clock);
	u64 distance;

	if (!next)
		return;
	distance = min_t(u64, shaper_cb(next)->want - time, DISTANCE);
	at = shaper_later(at, distance * far->rate >> SHAPER_FAR_SHIFT);
	if (likely(at > shaper_later(now, near))) {
		note(clock, at, now, near);
	} else {
		clock->look = PASSED;
		clock->due = PASSED;
	}
}

/* Remove the first packet of a clock. */
static __always_inline void erase_first(struct shaper_far *far, struct shaper_far_clock *clock,
					struct sk_buff *skb)
{
	struct sk_buff *next = skb->next;

	if (unlikely(skb != clock->first || !next || far->cursor)) {
		erase(far, clock, skb, skb == clock->first);
		return;
	}
	clock->first = next;
	next->prev = NULL;
	skb->next = NULL;
	far->count--;
}

/* Convert the first packet of a clock, and remove it if it is near; otherwise return NULL. */
static __always_inline struct sk_buff *pop(struct shaper_far *far, struct shaper_far_clock *clock,
					   u64 now, u64 near, u64 ahead)
{
	struct sk_buff *skb = first_of(clock);
	u64 time = shaper_cb(skb)->want, error, at, handing;

	at = apic_timer_clock_to_tsc(clock->id, ns_to_ktime(time), &error);
	handing = at > ahead ? at - ahead : 0;
	if (handing > shaper_later(now, near)) {
		note(clock, handing, now, near);
		return NULL;
	}
	erase_first(far, clock, skb);
	foresee(far, clock, time, handing, now, near);
	shaper_cb(skb)->want = in_order(clock, skb->tstamp, shaper_later(at, error));
	return skb;
}

/**
 * shaper_far_pop() - remove a packet that has come near
 * @far:	packets
 * @now:	TSC
 * @near:	distance up to which a packet is near, TSC cycles; 2 or more
 * @ahead:	how long before its moment a packet is handed over, TSC cycles
 *
 * Converts at most one departure time of each clock. Packets of one clock are returned in order.
 * After a change of @near or @ahead, call shaper_far_look_again() first.
 *
 * Context: Any but NMI; the caller serialises access to @far.
 * Return: the packet, with an absolute TSC as &shaper_cb.want; NULL if there is none.
 */
struct sk_buff *shaper_far_pop(struct shaper_far *far, u64 now, u64 near, u64 ahead)
{
	struct shaper_far_clock *clock;
	struct sk_buff *skb = NULL;

	while (!skb && far->clocks && shaper_far_due(far, now)) {
		clock = far->next;
		skb = pop(far, clock, now, near, ahead);
		if (likely(far->clocks == clock->bit)) {
			far->look = clock->look;
			far->due = clock->due;
		} else {
			settle(far);
		}
	}
	return skb;
}

/**
 * shaper_far_look_again() - convert all departure times anew
 * @far:	packets
 *
 * For example, a clock was set, or the rate of the TSC refined.
 *
 * Context: Any; the caller serialises access to @far.
 */
void shaper_far_look_again(struct shaper_far *far)
{
	unsigned int i;

	far->rate = apic_timer_ns_to_tsc(BIT(SHAPER_FAR_SHIFT));
	for (i = 0; i < SHAPER_CLOCKS; i++) {
		far->clock[i].look = PASSED;
		far->clock[i].due = PASSED;
	}
	settle(far);
}

/**
 * shaper_far_shift() - follow the TSC into a new epoch: convert all departure times anew
 * @far:	packets
 * @shift:	cycles to add to TSC values of the old one
 *
 * Context: Any; the caller serialises access to @far.
 */
void shaper_far_shift(struct shaper_far *far, s64 shift)
{
	struct shaper_far_last *last;
	unsigned int i, n;

	shaper_far_look_again(far);
	for (i = 0; i < SHAPER_CLOCKS; i++) {
		for (n = 0; n < SHAPER_SENDERS; n++) {
			last = &far->clock[i].before[n];
			last->at = shaper_shifted(last->at, shift);
		}
	}
}

/**
 * shaper_far_rewind() - begin to search
 * @far:	packets
 *
 * Context: Any; the caller serialises access to @far.
 */
void shaper_far_rewind(struct shaper_far *far)
{
	far->cursor_clock = 0;
	enter(far, true);
	while (!far->cursor && ++far->cursor_clock < SHAPER_CLOCKS)
		enter(far, true);
}

/**
 * shaper_far_find() - search for packets of a class, and remove one
 * @far:	packets; shaper_far_rewind() was called
 * @class:	lower half of the number of the class
 * @budget:	number of packets to check; decremented
 *
 * Between two calls, other code may use @far, but must not insert or search.
 *
 * Context: Any; the caller serialises access to @far.
 * Return: a packet; NULL if the budget is used up, or if all packets were checked and some of
 * the budget is left.
 */
struct sk_buff *shaper_far_find(struct shaper_far *far, u32 class, unsigned int *budget)
{
	while (*budget && far->cursor) {
		struct sk_buff *skb = far->cursor;

		--*budget;
		if (SHAPER_CLASS(shaper_cb(skb)->flags) == class) {
			erase(far, &far->clock[far->cursor_clock], skb, far->cursor_listed);
			settle(far);
			return skb;
		}
		step(far);
	}
	return NULL;
}
