// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers on several CPUs that start at one instant.
 *
 * Each CPU has a timer of mode exact and waits on its own TSC, so that the CPUs exchange no
 * data right before the moment. They share one cache line for each member, which the last
 * member reads for the receipt. With APIC_CLOCK_GROUP_ALL they also share a decision: the
 * first member that reaches it counts the members that have arrived, and decides for all.
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

/* Minimum time to the moment: arming takes an interrupt on each CPU. */
#define LEAST_NS	(20 * NSEC_PER_USEC)
/*
 * Times before the moment at which the members of an all-or-none group enter, and decide. The
 * decision takes each of them some cache misses, and a PAUSE before it may take 140 cycles of
 * a slow core.
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
 * @error:	possible error of its TSC, cycles
 * @late:	start of the handler less the moment on the CPU's own TSC, if @called
 * @called:	the handler was called
 * @armed:	the member was armed, and has not left since
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
 * @node:	entry in the list of all groups
 * @function:	the members' handler
 * @done:	receives the receipt, may be NULL
 * @data:	argument for both
 * @flags:	APIC_CLOCK_GROUP_*
 * @count:	number of members
 * @when:	the moment
 * @busy:	the group is armed, or its last expiry is not over
 * @arming:	apic_clock_group_fire() arms the members
 * @left:	number of members that are armed or run, plus 1 while apic_clock_group_fire()
 *		arms them
 * @failed:	apic_clock_group_fire() could not arm all: there is no receipt
 * @arrived:	members that wait in their interrupt
 * @decision:	an &enum decision
 * @cancelled:	the group is being cancelled, or its module is being unloaded
 * @cancel:	serialises apic_clock_group_cancel(), for @cancelled
 * @work:	calls @done when a member left last outside a handler
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
	/* Between two CPUs, the error of each counts. */
	if (receipt.error <= U64_MAX / 2)
		receipt.error *= 2;
	if (!receipt.called) {
		receipt.first = 0;
		receipt.last = 0;
	}
	return receipt;
}

/* Return: true if no member is left: the caller makes sure that conclude() is called. */
static bool leave(struct apic_clock_group *group, unsigned int members)
{
	return members && atomic_sub_and_test(members, &group->left);
}

/* Leave after the member's handler has returned. */
static bool leave_handler(struct member *member)
{
	WRITE_ONCE(member->armed, false);
	return leave(member->group, 1);
}

/*
 * Write the receipt. The group may be armed again before @done is called, so that @done itself
 * can arm it. It is not freed before @done has returned, because apic_clock_group_cancel()
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

	/* Members that left earlier have written all that is read here. */
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
 * Leave outside a handler. The caller may hold a lock that @done takes, or be @done itself.
 * Therefore an interrupt of its own calls @done.
 */
static void leave_from_outside(struct apic_clock_group *group, unsigned int members)
{
	if (leave(group, members))
		irq_work_queue(&group->work);
}

/* Call the handler of a member whose moment is @target. */
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

	/* Only one of the CPUs writes; the others can read at the same time. */
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
	/* Not saved when arming: a suspend that changes the TSC also moves the expiry. */
	u64 target = apic_timer_add_tsc(member->timer.expires, apic_timer_ns_to_tsc(EARLY_NS));
	u64 decide_at = target - apic_timer_ns_to_tsc(DECIDE_NS), start;

	atomic_inc(&group->arrived);
	while (rdtsc_ordered() < decide_at)
		cpu_relax();
	if (decide(group) == ALL) {
		/* No fence: a shorter loop ends nearer to the moment. */
		while ((start = rdtsc()) < target)
			;
		call(member, start, target);
	}
	if (leave_handler(member))
		conclude(group);
}

/**
 * apic_clock_group_alloc() - allocate a group
 * @cpus:	CPUs that get one timer each; may change meanwhile, as cpu_online_mask does
 * @function:	called on each CPU at the moment
 * @done:	called once for each moment, with the receipt; may be NULL
 * @data:	passed to both
 * @flags:	APIC_CLOCK_GROUP_*
 *
 * Context: Task; may sleep.
 * Return: the group; NULL if there is no memory, for no or unknown CPUs, without a
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
	unsigned int count;
	int cpu;

	if (!cpus || !cpumask_subset(cpus, cpu_possible_mask) || !function ||
	    flags & ~(APIC_CLOCK_GROUP_CORRECT | APIC_CLOCK_GROUP_ALL))
		return NULL;
	count = cpumask_weight(cpus);
	if (!count)
		return NULL;
	group = kzalloc(struct_size(group, members, count), GFP_KERNEL);
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
		/* A CPU has come online since they were counted. */
		if (group->count == count)
			break;
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

/* Maximum distance of a CPU's uncorrected TSC from the reference's. */
static u64 uncorrected(int cpu)
{
	struct apic_clock_skew skew;

	if (apic_clock_get_skew(cpu, &skew))
		return U64_MAX;
	return max(abs(skew.high), abs(skew.low));
}

/* Convert the moment to a member's TSC. */
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
 * Cancel a member if it is pending, and wait for its handler.
 *
 * A member that was armed and is neither pending nor has left was cancelled by the core: its
 * CPU has gone offline, and no other CPU accepts timers. While apic_clock_group_fire() arms
 * the group, such a member cannot be distinguished from one not armed yet. @armed is read
 * first: once it is set, no other expiry begins.
 *
 * Return: true if this makes the member leave.
 */
static bool take_out_member(struct member *member)
{
	/* Pairs with arm(): if @armed is set, @arming is visible. */
	bool armed = smp_load_acquire(&member->armed);
	/* Pairs with arm(): once @arming is clear, the core has all armed members. */
	bool arming = smp_load_acquire(&member->group->arming);

	if (del_apic_timer_sync(&member->timer) != 1 && (!armed || arming))
		return false;
	return xchg(&member->armed, false);
}

/* Cancel pending members, and wait for handlers. Return: number of members that leave by it. */
static unsigned int take_out(struct apic_clock_group *group)
{
	unsigned int i, taken = 0;

	for (i = 0; i < group->count; i++)
		taken += take_out_member(&group->members[i]);
	return taken;
}

/* The present value of the TSC that the moment is given in. */
static u64 now_of(const struct apic_clock_group *group)
{
	u64 now = apic_timer_now();

	if (group->flags & APIC_CLOCK_GROUP_CORRECT)
		now = apic_clock_from_cpu(smp_processor_id(), now, NULL);
	return now;
}

/* Arm all members. Return: 0, or an error if none is armed. */
static int arm(struct apic_clock_group *group, u64 when)
{
	unsigned int i, armed, undone = 0;
	int ret = 0;

	group->when = when;
	WRITE_ONCE(group->failed, false);
	atomic_set(&group->arrived, 0);
	atomic_set(&group->decision, NOT_YET);
	/* Count one more than the members, so that none is the last before all are armed. */
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
	 * The last member tried and those after it were not armed. The core may already have
	 * cancelled those before. A handler that is running leaves by itself.
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
 * Context: Any but NMI; not the group's own handlers, but its @done may call it.
 * Return:
 * * %0 - armed
 * * %-EBUSY - its last expiry is not over
 * * %-ECANCELED - the group is being cancelled
 * * %-ENODEV - a CPU does not accept timers
 * * %-ETIME - @when is too near
 */
int apic_clock_group_fire(struct apic_clock_group *group, u64 when)
{
	int ret;

	/* apic_clock_group_cancel() waits until this is done, perhaps on this CPU. */
	preempt_disable();
	if (when < apic_timer_add_tsc(now_of(group), apic_timer_ns_to_tsc(LEAST_NS))) {
		ret = -ETIME;
	} else if (atomic_cmpxchg(&group->busy, 0, 1)) {
		ret = -EBUSY;
	} else if (READ_ONCE(group->cancelled)) {
		/* If @cancelled is set after this check, stop() finds the armed members. */
		atomic_set_release(&group->busy, 0);
		ret = -ECANCELED;
	} else {
		ret = arm(group, when);
	}
	preempt_enable();
	return ret;
}
EXPORT_SYMBOL_GPL(apic_clock_group_fire);

/* Cancel an expiry. From then on the group cannot be armed. */
static void stop(struct apic_clock_group *group)
{
	WRITE_ONCE(group->cancelled, true);
	/* Pairs with the cmpxchg in apic_clock_group_fire(). */
	smp_mb();
	/* If the group is being armed, cancel each member as it is armed. */
	do {
		leave_from_outside(group, take_out(group));
		cpu_relax();
	} while (atomic_read_acquire(&group->busy));
	/* The last handler, or the work, may still be running @done. */
	take_out(group);
	/*
	 * If @done arms the group again, the work may run on two CPUs at a time. The first
	 * run to end makes both look idle:
	 *
	 *	CPU0: work                              CPU1: apic_clock_group_free()
	 *	  done()
	 *	    apic_clock_group_fire()
	 *	                                        all taken out: work
	 *	                                          done() returns, not BUSY
	 *	                                        irq_work_sync() returns
	 *	    still runs                          kfree(group)
	 *
	 * The work runs with interrupts off, so RCU waits for all runs.
	 */
	irq_work_sync(&group->work);
	synchronize_rcu();
}

/**
 * apic_clock_group_cancel() - cancel an expiry
 * @group:	the group
 *
 * On return, @done has been called if the group was armed, and the group is idle, unless code
 * other than its @done has armed it again. If the core has cancelled members because no CPU
 * accepts timers, the receipt lacks them. It is written only now: until this call the group
 * counts as armed.
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
 * The group's functions may belong to another module, and its data as well, if that is a
 * pointer. The caller of apic_clock_group_alloc() is no help: it is usually a module's
 * initialisation code, whose memory may later belong to another module.
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
 * From then on the module's groups cannot be armed. Its handlers may still run, and try to.
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
 * @module:	module whose handlers are not called any more
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
		pr_warn("module %s left %u group(s) behind: cancelled and freed\n", module->name,
			count);
}

#endif
