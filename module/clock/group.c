// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers on several CPUs that start at one instant.
 *
 * Each CPU has a timer of mode exact and waits on its own TSC, so that nothing goes
 * between the CPUs in the last stretch. What they share is one line for each
 * member, read by the last of them for the receipt, and with
 * APIC_CLOCK_GROUP_ALL a decision: the first to come to it counts who is there,
 * and its word holds for all.
 *
 *	CPU0: arrives                       CPU1: is held up by an SMI
 *	  waits until 1.5 us before
 *	  one of two is there: NONE
 *	  returns                           arrives, reads NONE, returns
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <asm/msr.h>

#include <trace/events/apic_clock.h>

#include "group.h"

/* Arming the CPUs takes an interrupt of each. */
#define LEAST_NS	(20 * NSEC_PER_USEC)
/*
 * How early the members of an all-or-none group enter, and when they decide. That takes
 * each of them some cache misses, and a PAUSE before may take 140 cycles of a slow core.
 */
#define EARLY_NS	(5 * NSEC_PER_USEC)
#define DECIDE_NS	1500

enum decision {
	NOT_YET,
	ALL,
	NONE,
};

/**
 * struct member - a CPU of a group
 * @timer:	its timer
 * @group:	the group
 * @cpu:	the CPU
 * @error:	how far its TSC may be from where it is taken to be, cycles
 * @late:	start of the handler less the moment on the CPU's own TSC, if @called
 * @called:	the handler was called
 * @armed:	it was, and has not left since
 */
struct member {
	struct apic_timer_list timer;
	struct apic_clock_group *group;
	int cpu;
	u64 error;
	s64 late;
	bool called;
	bool armed;
} __aligned(128);

/**
 * struct apic_clock_group - a group
 * @node:	of the list of all
 * @function:	the members' handler
 * @done:	receives the receipt, may be NULL
 * @data:	for both
 * @flags:	APIC_CLOCK_GROUP_*
 * @count:	number of members
 * @when:	the moment
 * @busy:	it is armed, or its last expiry is not over
 * @arming:	apic_clock_group_fire() arms the members
 * @left:	members that are armed or run, and apic_clock_group_fire() while it arms them
 * @failed:	apic_clock_group_fire() could not arm all: there is no receipt
 * @arrived:	members that wait in their interrupt
 * @decision:	an &enum decision
 * @cancelled:	it is being cancelled, or its module is being unloaded
 * @cancel:	serialises apic_clock_group_cancel(), for @cancelled
 * @work:	calls @done when no handler was the last
 * @members:	the members
 */
struct apic_clock_group {
	struct list_head node;
	void (*function)(unsigned long long now, unsigned long data);
	void (*done)(const struct apic_clock_receipt *receipt, unsigned long data);
	unsigned long data;
	unsigned int flags;
	unsigned int count;
	u64 when;
	bool cancelled;
	bool failed;
	bool arming;
	struct mutex cancel;	/* see above */
	struct irq_work work;
	atomic_t busy;
	atomic_t left;
	atomic_t arrived;
	atomic_t decision;
	struct member members[];
};

static DEFINE_MUTEX(groups_mutex);
static LIST_HEAD(groups);

static struct apic_clock_receipt receipt_of(const struct apic_clock_group *group)
{
	struct apic_clock_receipt receipt = {
		.when = group->when, .first = S64_MAX, .last = S64_MIN,
	};
	const struct member *member;

	for (member = group->members; member < group->members + group->count; member++) {
		receipt.error = max(receipt.error, member->error);
		if (!member->called)
			continue;
		receipt.first = min(receipt.first, member->late);
		receipt.last = max(receipt.last, member->late);
		receipt.called++;
	}
	if (receipt.called < group->count)
		receipt.ret = READ_ONCE(group->cancelled) ? -ECANCELED : -EAGAIN;
	/* Two CPUs, each known to so much. */
	if (receipt.error <= U64_MAX / 2)
		receipt.error *= 2;
	if (!receipt.called) {
		receipt.first = 0;
		receipt.last = 0;
	}
	return receipt;
}

/* Return: true if none is left: the caller sees to it that conclude() is called. */
static bool leave(struct apic_clock_group *group, unsigned int members)
{
	return members && atomic_sub_and_test(members, &group->left);
}

/* Its handler has returned. */
static bool leave_handler(struct member *member)
{
	WRITE_ONCE(member->armed, false);
	return leave(member->group, 1);
}

/*
 * Write the receipt. The group may be armed again before @done is called, so that @done
 * can do that; it is not freed before @done has returned, as apic_clock_group_cancel()
 * waits for handlers and the work.
 */
static void conclude(struct apic_clock_group *group)
{
	void (*done)(const struct apic_clock_receipt *receipt, unsigned long data) = group->done;
	void (*function)(unsigned long long now, unsigned long data) = group->function;
	unsigned long data = group->data;
	unsigned int cpus = group->count;
	struct apic_clock_receipt receipt;
	bool failed;

	/* Those that have left before have written what is read here. */
	receipt = receipt_of(group);
	failed = READ_ONCE(group->failed);
	atomic_set_release(&group->busy, 0);
	if (failed)
		return;
	trace_apic_clock_group(function, cpus, &receipt);
	if (done)
		done(&receipt, data);
}

static void conclude_in_interrupt(struct irq_work *work)
{
	conclude(container_of(work, struct apic_clock_group, work));
}

/*
 * Not in a handler. The caller may hold a lock that @done takes, or be @done: that is
 * called by an interrupt of its own.
 */
static void leave_from_outside(struct apic_clock_group *group, unsigned int members)
{
	if (leave(group, members))
		irq_work_queue(&group->work);
}

/* Call the handler of a member, whose moment is @target. */
static void call(struct member *member, u64 start, u64 target)
{
	struct apic_clock_group *group = member->group;

	group->function(start, group->data);
	member->late = start - target;
	member->called = true;
}

static void run_alone(unsigned long long now, unsigned long data)
{
	struct member *member = (struct member *)data;

	call(member, now, member->timer.expires);
	if (leave_handler(member))
		conclude(member->group);
}

static enum decision decide(struct apic_clock_group *group)
{
	int was = atomic_read(&group->decision);
	bool all;

	/* One of many CPUs writes; the others can read at the same time. */
	if (was != NOT_YET)
		return was;
	all = atomic_read(&group->arrived) == group->count;
	was = atomic_cmpxchg(&group->decision, NOT_YET, all ? ALL : NONE);
	return was ?: all ? ALL : NONE;
}

static void run_with_all(unsigned long long now, unsigned long data)
{
	struct member *member = (struct member *)data;
	struct apic_clock_group *group = member->group;
	/* Not kept from when it was armed: it has moved, if the TSC has in a sleep. */
	u64 target = apic_timer_add_tsc(member->timer.expires, apic_timer_ns_to_tsc(EARLY_NS));
	u64 decide_at = target - apic_timer_ns_to_tsc(DECIDE_NS), start;

	atomic_inc(&group->arrived);
	while (rdtsc_ordered() < decide_at)
		cpu_relax();
	if (decide(group) == ALL) {
		/* Not fenced: the shorter the loop, the nearer to the moment. */
		while ((start = rdtsc()) < target)
			;
		call(member, start, target);
	}
	if (leave_handler(member))
		conclude(group);
}

/**
 * apic_clock_group_alloc() - make a group
 * @cpus:	one timer on each of these
 * @function:	called on each CPU at the moment
 * @done:	called once for each moment, with the receipt; may be NULL
 * @data:	passed to both
 * @flags:	APIC_CLOCK_GROUP_*
 *
 * Context: Task; may sleep.
 * Return: the group; NULL without memory, for no or unknown CPUs, without a
 * function, or for unknown flags.
 */
struct apic_clock_group *
apic_clock_group_alloc(const struct cpumask *cpus,
		       void (*function)(unsigned long long now, unsigned long data),
		       void (*done)(const struct apic_clock_receipt *receipt, unsigned long data),
		       unsigned long data, unsigned int flags)
{
	struct apic_clock_group *group;
	struct member *member;
	int cpu;

	if (!cpus || cpumask_empty(cpus) || !cpumask_subset(cpus, cpu_possible_mask) ||
	    !function || flags & ~(APIC_CLOCK_GROUP_CORRECT | APIC_CLOCK_GROUP_ALL))
		return NULL;
	group = kzalloc(struct_size(group, members, cpumask_weight(cpus)), GFP_KERNEL);
	if (!group)
		return NULL;
	group->function = function;
	group->done = done;
	group->data = data;
	group->flags = flags;
	mutex_init(&group->cancel);
	group->work = IRQ_WORK_INIT_HARD(conclude_in_interrupt);
	member = group->members;
	for_each_cpu(cpu, cpus) {
		member->group = group;
		member->cpu = cpu;
		member->timer.function = flags & APIC_CLOCK_GROUP_ALL ? run_with_all : run_alone;
		member->timer.data = (unsigned long)member;
		init_apic_timer(&member->timer);
		member->timer.flags = APIC_TIMER_EXACT;
		group->count++;
		member++;
	}
	mutex_lock(&groups_mutex);
	list_add(&group->node, &groups);
	mutex_unlock(&groups_mutex);
	return group;
}
EXPORT_SYMBOL_GPL(apic_clock_group_alloc);

/* How far a CPU's TSC may be from the reference's, if nothing is taken off: by all of it. */
static u64 uncorrected(int cpu)
{
	struct apic_clock_skew skew;

	if (apic_clock_get_skew(cpu, &skew))
		return U64_MAX;
	return max(abs(skew.high), abs(skew.low));
}

/* Where the moment is on a member's TSC. */
static void convert(struct member *member, u64 when, unsigned int flags)
{
	u64 target = when;

	member->called = false;
	if (flags & APIC_CLOCK_GROUP_CORRECT)
		target = apic_clock_to_cpu(member->cpu, when, &member->error);
	else
		member->error = uncorrected(member->cpu);
	if (flags & APIC_CLOCK_GROUP_ALL)
		target -= min(target, apic_timer_ns_to_tsc(EARLY_NS));
	member->timer.expires = target;
}

/*
 * Take a member out if it is pending, and wait for its handler.
 *
 * One that was armed and is neither pending nor has left was cancelled by the core: its CPU
 * has gone offline, and no other takes timers. While apic_clock_group_fire() arms, that is
 * not known yet. What it armed is read first: once that is so, no other expiry begins.
 *
 * Return: true if it leaves by that.
 */
static bool take_out_member(struct member *member)
{
	/* Pairs with arm(): with it, @arming is seen. */
	bool armed = smp_load_acquire(&member->armed);
	/* Pairs with arm(): the core has all that were armed. */
	bool arming = smp_load_acquire(&member->group->arming);

	if (del_apic_timer_sync(&member->timer) != 1 && (!armed || arming))
		return false;
	return xchg(&member->armed, false);
}

/* Take out what is pending, and wait for handlers. Return: how many leave by that. */
static unsigned int take_out(struct apic_clock_group *group)
{
	unsigned int i, taken = 0;

	for (i = 0; i < group->count; i++)
		taken += take_out_member(&group->members[i]);
	return taken;
}

/* What the TSC that the moment is one of reads now. */
static u64 now_of(const struct apic_clock_group *group)
{
	u64 now = apic_timer_now();

	if (group->flags & APIC_CLOCK_GROUP_CORRECT)
		now = apic_clock_from_cpu(smp_processor_id(), now, NULL);
	return now;
}

/* Arm all members. Return: 0 or an error, with which none is armed. */
static int arm(struct apic_clock_group *group, u64 when)
{
	unsigned int i, armed, undone = 0;
	int ret = 0;

	group->when = when;
	WRITE_ONCE(group->failed, false);
	atomic_set(&group->arrived, 0);
	atomic_set(&group->decision, NOT_YET);
	/* With one more than members none of them is the last before all are armed. */
	atomic_set(&group->left, group->count + 1);
	WRITE_ONCE(group->arming, true);
	for (i = 0; i < group->count; i++) {
		convert(&group->members[i], when, group->flags);
		/* Pairs with take_out_member(). */
		smp_store_release(&group->members[i].armed, true);
	}

	for (armed = 0; !ret && armed < group->count; armed++)
		ret = add_apic_timer_on(&group->members[armed].timer, group->members[armed].cpu);
	if (!ret) {
		/* Pairs with take_out_member(). */
		smp_store_release(&group->arming, false);
		leave_from_outside(group, 1);
		return 0;
	}
	/*
	 * The last one was not armed, nor were those after it. Those before may have been
	 * cancelled by the core already; the handler of one that runs leaves itself.
	 */
	WRITE_ONCE(group->failed, true);
	for (i = 0, armed--; i < group->count; i++)
		if (i >= armed || del_apic_timer(&group->members[i].timer) != -EBUSY)
			undone += xchg(&group->members[i].armed, false);
	/* Pairs with take_out_member(). */
	smp_store_release(&group->arming, false);
	if (leave(group, undone + 1))
		conclude(group);
	return ret;
}

/**
 * apic_clock_group_fire() - arm a group
 * @group:	the group
 * @when:	moment, TSC
 *
 * Context: Any but NMI; not from the group's own handlers, but from its @done.
 * Return:
 * * %0 - armed
 * * %-EBUSY - its last expiry is not over
 * * %-ECANCELED - it is being cancelled
 * * %-ENODEV - a CPU does not accept timers
 * * %-ETIME - @when is too near
 */
int apic_clock_group_fire(struct apic_clock_group *group, u64 when)
{
	int ret;

	/* apic_clock_group_cancel() waits for it to be over, perhaps on this CPU. */
	preempt_disable();
	if (when < apic_timer_add_tsc(now_of(group), apic_timer_ns_to_tsc(LEAST_NS))) {
		ret = -ETIME;
	} else if (atomic_cmpxchg(&group->busy, 0, 1)) {
		ret = -EBUSY;
	} else if (READ_ONCE(group->cancelled)) {
		/* Otherwise what is armed from now on is found by the one that cancels. */
		atomic_set_release(&group->busy, 0);
		ret = -ECANCELED;
	} else {
		ret = arm(group, when);
	}
	preempt_enable();
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_group_fire);

/* Cancel an expiry; the group cannot be armed from then on. */
static void stop(struct apic_clock_group *group)
{
	WRITE_ONCE(group->cancelled, true);
	/* Pairs with the cmpxchg in apic_clock_group_fire(). */
	smp_mb();
	/* One that is being armed is taken out as it comes. */
	do {
		leave_from_outside(group, take_out(group));
		cpu_relax();
	} while (atomic_read_acquire(&group->busy));
	/* The last handler, or the work, may be in @done still. */
	take_out(group);
	/*
	 * Where @done arms the group again, the work may run on two CPUs at a time. The first
	 * run that ends makes it look idle for both:
	 *
	 *	CPU0: work                              CPU1: apic_clock_group_free()
	 *	  done()
	 *	    apic_clock_group_fire()
	 *	                                        all taken out: work
	 *	                                          done() returns, not BUSY
	 *	                                        irq_work_sync() returns
	 *	    still runs                          kfree(group)
	 *
	 * Interrupts are off in it, so that RCU waits for all runs.
	 */
	irq_work_sync(&group->work);
	synchronize_rcu();
}

/**
 * apic_clock_group_cancel() - cancel an expiry
 * @group:	the group
 *
 * On return, @done has been called for whatever was armed, and the group is idle, unless
 * others than its @done have armed it again. Where the core has cancelled members, as no CPU
 * accepts timers, they are missing in the receipt, which comes now: until this call the
 * group counts as armed.
 *
 * Context: Task; may sleep.
 */
void apic_clock_group_cancel(struct apic_clock_group *group)
{
	mutex_lock(&group->cancel);
	stop(group);
	WRITE_ONCE(group->cancelled, false);
	mutex_unlock(&group->cancel);
}
EXPORT_SYMBOL_GPL(apic_clock_group_cancel);

/**
 * apic_clock_group_free() - cancel what is pending, and free a group
 * @group:	the group, or NULL
 *
 * Context: Task; may sleep.
 */
void apic_clock_group_free(struct apic_clock_group *group)
{
	if (!group)
		return;
	stop(group);
	mutex_lock(&groups_mutex);
	list_del(&group->node);
	mutex_unlock(&groups_mutex);
	kfree(group);
}
EXPORT_SYMBOL_GPL(apic_clock_group_free);

#ifdef CONFIG_MODULES	/* in a kernel tree there may be none */

/*
 * Its functions may be another module's, and its data, too, if that is a pointer. Who made
 * it does not tell: that is code of the module's initialisation as a rule, in memory that
 * is another module's later.
 */
static bool belongs_to(const struct apic_clock_group *group, const struct module *module)
{
	return within_module((unsigned long)group->function, module) ||
	       within_module((unsigned long)group->done, module) ||
	       within_module(group->data, module);
}

/**
 * apic_clock_groups_stop() - cancel what a module has left armed
 * @module:	module whose exit function has returned
 *
 * From then on its groups cannot be armed: its handlers may still run, and try.
 *
 * Context: Task.
 */
void apic_clock_groups_stop(const struct module *module)
{
	struct apic_clock_group *group;

	mutex_lock(&groups_mutex);
	list_for_each_entry(group, &groups, node)
		if (belongs_to(group, module))
			stop(group);
	mutex_unlock(&groups_mutex);
}

/**
 * apic_clock_groups_free() - free the groups that a module has left
 * @module:	module none of whose handlers is called any more
 *
 * Context: Task.
 */
void apic_clock_groups_free(const struct module *module)
{
	struct apic_clock_group *group, *next;
	unsigned int count = 0;

	mutex_lock(&groups_mutex);
	list_for_each_entry_safe(group, next, &groups, node) {
		if (!belongs_to(group, module))
			continue;
		list_del(&group->node);
		kfree(group);
		count++;
	}
	mutex_unlock(&groups_mutex);
	if (count)
		pr_warn("module %s has left %u group(s): cancelled and freed\n", module->name,
			count);
}

#endif
