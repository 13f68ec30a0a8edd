// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that everybody calls for at the same moment, without any lock.
 *
 * Here the account is of numbers: in the end, shots armed == run + deleted.
 * Only of shots that were armed while somebody waited in del_apic_timer_sync()
 * is it not known whether that call deleted them: those are counted apart.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/slab.h>

#include "stress.h"

/**
 * struct loose - a timer and its numbers
 * @timer:	the timer
 * @armed:	shots armed; counted before the call, taken back if refused
 * @ran:	handlers begun
 * @deleted:	calls that have deleted a shot
 * @unclear:	shots that a waiting call may have deleted
 * @waiting:	callers of del_apic_timer_sync()
 * @waited:	number of those that began
 * @inside:	handlers running
 * @state:	random numbers for the handler
 */
struct loose {
	struct apic_timer_list timer;
	atomic_t armed, ran, deleted, unclear;
	atomic_t waiting, waited;
	atomic_t inside;
	u32 state;
};

static struct loose *looses;
static unsigned int count;

static void arm(struct loose *loose, u32 *state)
{
	int before = atomic_read(&loose->waited), ret;
	bool waiting = atomic_read(&loose->waiting);
	u64 expires = stress_moment(state);
	int cpu = stress_cpu(state);

	atomic_inc(&loose->armed);
	/* Only mod_apic_timer() may set another expiry: it may be pending. */
	switch ((stress_random(state) >> 8) % 4) {
	case 0:
		ret = add_apic_timer(&loose->timer);
		break;
	case 1:
		ret = add_apic_timer_on(&loose->timer, cpu);
		break;
	default:
		ret = mod_apic_timer(&loose->timer, expires);
	}
	if (!ret) {
		stress_inc(ARMED);
		if (waiting || atomic_read(&loose->waited) != before)
			atomic_inc(&loose->unclear);
		return;
	}
	atomic_dec(&loose->armed);
	if (ret == 1)
		stress_inc(SUPERSEDED);
	else if (ret != -EBUSY)
		stress_fault("loose timer: arming returned %d", ret);
}

static void del(struct loose *loose)
{
	int ret = del_apic_timer(&loose->timer);

	if (ret == 1) {
		atomic_inc(&loose->deleted);
		stress_inc(DELETED);
	} else if (ret == -EBUSY) {
		stress_inc(BUSY);
	} else if (ret && ret != -ENOENT) {
		stress_fault("loose timer: deleting returned %d", ret);
	}
}

static void del_sync(struct loose *loose)
{
	int ret;

	atomic_inc(&loose->waiting);
	atomic_inc(&loose->waited);
	ret = del_apic_timer_sync(&loose->timer);
	atomic_dec(&loose->waiting);

	stress_inc(WAITED);
	if (ret == 1) {
		atomic_inc(&loose->deleted);
		stress_inc(DELETED);
	} else if (ret && ret != -ENOENT) {
		stress_fault("loose timer: waiting deletion returned %d", ret);
	}
}

static void operate(struct loose *loose, u32 *state)
{
	if (!stress_operation())
		return;
	if ((stress_random(state) >> 8) % 4)
		arm(loose, state);
	else
		del(loose);
}

static void handler(unsigned long long now, unsigned long data)
{
	struct loose *loose = (struct loose *)data;
	u32 choice = stress_random(&loose->state) >> 8;

	if (atomic_inc_return(&loose->inside) != 1)
		stress_fault("loose timer: on two CPUs at a time");
	atomic_inc(&loose->ran);
	if (atomic_read(&loose->ran) + atomic_read(&loose->deleted) >
	    atomic_read(&loose->armed))
		stress_fault("loose timer: ran more often than armed");
	stress_inc(RAN);

	if (choice & 1)
		operate(loose, &loose->state);
	if (choice & 2)
		operate(&looses[(choice >> 2) % count], &loose->state);
	atomic_dec(&loose->inside);
}

/**
 * stress_loose_setup() - set up the timers
 * @timers:	their number
 * @seed:	of the random numbers
 *
 * Return: 0 or -errno.
 */
int stress_loose_setup(unsigned int timers, u32 seed)
{
	struct loose *loose;

	count = 0;
	looses = kvcalloc(timers, sizeof(*looses), GFP_KERNEL);
	if (!looses)
		return -ENOMEM;
	for (count = 0; count < timers; count++) {
		loose = &looses[count];
		loose->state = (seed + count) * 2246822519U | 1;
		loose->timer.function = handler;
		loose->timer.data = (unsigned long)loose;
		init_apic_timer(&loose->timer);
	}
	return 0;
}

/**
 * stress_loose_step() - one random operation
 * @state:	of the random numbers
 */
void stress_loose_step(u32 *state)
{
	struct loose *loose = &looses[(stress_random(state) >> 8) % count];

	if ((stress_random(state) >> 8) % 16)
		operate(loose, state);
	else if (stress_operation())
		del_sync(loose);
}

/**
 * stress_loose_finish() - delete what is pending, and add up
 */
void stress_loose_finish(void)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct loose *loose = &looses[i];
		int armed, gone, unclear;

		/* Nothing arms it any more, so this deletes one shot at most. */
		del_sync(loose);
		armed = atomic_read(&loose->armed);
		gone = atomic_read(&loose->ran) + atomic_read(&loose->deleted);
		unclear = atomic_read(&loose->unclear);
		if (gone > armed || gone < armed - unclear)
			stress_fault("loose timer %u: armed %d, run or deleted %d, unclear %d",
				     i, armed, gone, unclear);
		if (atomic_read(&loose->inside))
			stress_fault("loose timer %u: handler running", i);
	}
	count = 0;
	kvfree(looses);
	looses = NULL;
}
