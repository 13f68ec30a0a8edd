// SPDX-License-Identifier: GPL-2.0
/*
 * Sleep until shortly before a moment.
 *
 * A timer that does not spin wakes the thread before the moment, by as much as its wake-up
 * may take. The thread's own library then waits for the rest on the TSC, so that no kernel
 * exit lies between the end of the wait and its next instruction. For callers without that
 * library the kernel waits, and returns to user space early by the shortest kernel exit
 * seen so far.
 *
 * The kernel's own timer events would interrupt the wait. A fence defers those that are
 * due shortly before the moment until after it.
 */
#include <linux/apic_struct.h>
#include <linux/apic_timer.h>
#include <linux/irqflags.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/mwait.h>
#include <asm/processor.h>
#include <asm/tsc.h>

#include "file.h"
#include "limit.h"
#include "moment.h"
#include "page.h"
#include "sleep.h"

/* Size of the structure's first version. */
#define SLEEP_SIZE_VER0		72
#define SLEEP_FLAGS		(APIC_TIMER_SLEEP_KERNEL_FINISH |	\
				 APIC_TIMER_SLEEP_SKIP_LATE |		\
				 APIC_TIMER_SLEEP_NO_FENCE |		\
				 APIC_TIMER_SLEEP_NO_RESTART)

#define BUDGET_NS		(20 * NSEC_PER_USEC)
#define BUDGET_MAX_NS		(50 * NSEC_PER_USEC)
#define GUESS_NS		(10 * NSEC_PER_USEC)
/* The last part of a wait in the kernel, with interrupts off; before that it is preemptible. */
#define CLOSE_NS		(2 * NSEC_PER_USEC)
/* Time that the fence lasts beyond the moment, for the caller's first instructions. */
#define FENCE_NS		500
/* A return to user space that took longer than this was interrupted. */
#define BACK_MAX_NS		(20 * NSEC_PER_USEC)

static_assert(sizeof(struct apic_timer_sleep) == SLEEP_SIZE_VER0);
static_assert(offsetof(struct apic_timer_sleep, expires) == 8);
static_assert(offsetof(struct apic_timer_sleep, began) == 24);
static_assert(offsetof(struct apic_timer_sleep, tsc) == 40);
static_assert(offsetof(struct apic_timer_sleep, result) == 68);
static_assert(offsetofend(struct apic_timer_sleep, result) == SLEEP_SIZE_VER0);

static unsigned int cost_ns = 4000;

/* The lead never exceeds the budget, so a larger cost has no effect. */
static int set_cost(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 0, BUDGET_MAX_NS);
}

static const struct kernel_param_ops cost_ops = {
	.set = set_cost, .get = param_get_uint,
};

module_param_cb(cost_ns, &cost_ops, &cost_ns, 0644);
MODULE_PARM_DESC(cost_ns, "maximum mean time that a sleeper waits for its moment after its wake-up, in ns (0 to 50000)");

static unsigned int quantile = APIC_TIMER_QUANTILE_ONE;

static int set_quantile(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, APIC_TIMER_QUANTILE_MIN,
				     APIC_TIMER_QUANTILE_ONE);
}

static const struct kernel_param_ops quantile_ops = {
	.set = set_quantile, .get = param_get_uint,
};

module_param_cb(quantile, &quantile_ops, &quantile, 0644);
MODULE_PARM_DESC(quantile, "fraction of wake-ups that must be early enough, in 1/10000 (5000 to 10000; applies to files opened later)");

/* TSC until which the last sleeper that woke up on this CPU may wait for its moment */
static DEFINE_PER_CPU(u64, occupied_until);

/**
 * struct sleeper - a thread that sleeps
 * @timer:	timer that wakes the thread
 * @user:	account that pays
 * @task:	the thread
 * @clock:	clock of @expires
 * @expires:	the moment
 * @lead:	TSC cycles before the moment at which to wake the thread
 * @fence:	whether to ask for a fence
 * @paid:	CPU that has paid for the wake-up, DEVICE_SPENT from the first interrupt on
 * @woken:	TSC in the handler; @fired is set after it
 * @fired:	the handler has woken the thread
 */
struct sleeper {
	struct apic_timer_list timer;
	struct device_user *user;
	struct task_struct *task;
	u32 clock;
	u64 expires;
	u64 lead;
	bool fence;
	int paid;
	u64 woken;
	bool fired;
};

static u64 lead_before(u64 tsc, u64 lead)
{
	return tsc - min(tsc, lead);
}

/* Runs on the timer's CPU, which is the thread's unless the thread was moved. */
static void wake(unsigned long long now, unsigned long data)
{
	struct sleeper *sleeper = (struct sleeper *)data;
	struct task_struct *task = sleeper->task;
	u64 tsc, wake_at;

	sleeper->paid = DEVICE_SPENT;
	if (sleeper->clock != APIC_TIMER_CLOCK_TSC) {
		tsc = device_moment_tsc(sleeper->clock, sleeper->expires);
		wake_at = lead_before(tsc, sleeper->lead);
		if (wake_at > now && wake_at - now > apic_timer_ns_to_tsc(CLOSE_NS)) {
			sleeper->timer.expires = device_moment_leg(sleeper->clock,
								   wake_at, now);
			if (!device_moment_arm(&sleeper->timer))
				return;
			/* No CPU accepts timers any more: wake the thread early. */
		}
	}
	/* A new epoch may have moved the timer, and the moment with it. */
	if (sleeper->fence)
		apic_timer_fence(sleeper->timer.expires + sleeper->lead +
				 apic_timer_ns_to_tsc(FENCE_NS));
	sleeper->woken = now;
	/* Once the thread sees this, it may return and its stack may be gone. */
	smp_store_release(&sleeper->fired, true);
	wake_up_process(task);
}

static int pay_and_arm(struct sleeper *sleeper)
{
	unsigned long flags;
	int paid, ret;

	local_irq_save(flags);
	paid = device_user_take(sleeper->user);
	/* The handler changes it. */
	sleeper->paid = paid < 0 ? DEVICE_SPENT : paid;
	ret = paid < 0 ? paid : device_moment_arm(&sleeper->timer);
	local_irq_restore(flags);
	return ret;
}

/* Sleep until the timer has fired: return 0 then, else an error. */
static int sleep_on(struct sleeper *sleeper)
{
	bool armed = false;
	int ret = 0;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!armed) {
			ret = pay_and_arm(sleeper);
			if (ret)
				break;
			armed = true;
		}
		if (smp_load_acquire(&sleeper->fired)) /* wake() */
			break;
		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			break;
		}
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	/* The handler may still be running, and it uses our stack. */
	if (armed)
		del_apic_timer_sync(&sleeper->timer);
	return ret;
}

/* Wait for the rest in the kernel. Return the last TSC value read. */
static u64 finish(u64 until)
{
	u64 close = apic_timer_ns_to_tsc(CLOSE_NS), now;
	unsigned long flags;

	while ((s64)(until - rdtsc() - close) > 0) {
		if (need_resched())
			cond_resched();
		if (boot_cpu_has(X86_FEATURE_WAITPKG))
			__tpause(TPAUSE_C01_STATE, upper_32_bits(until - close),
				 lower_32_bits(until - close));
		else
			cpu_relax();
	}
	/* From here on, an interrupt would not end in time. */
	local_irq_save(flags);
	do {
		now = rdtsc();
	} while ((s64)(until - now) > 0);
	local_irq_restore(flags);
	return now;
}

/* Learn from what the caller reports about its last sleep. */
static void learn_from(struct device_file *file, u64 began)
{
	struct device_last *last = &file->last[current->pid % DEVICE_LAST];
	u64 limit = apic_timer_ns_to_tsc(BACK_MAX_NS), number = 0;
	bool has_receipt = false;
	unsigned long flags;

	raw_spin_lock_irqsave(&file->lock, flags);
	if (last->tid == current->pid) {
		/* The caller may report anything: ignore impossible values. */
		if (last->left && began > last->left && began - last->left < limit)
			device_learn_least(&file->learn, last->kind,
					   began - last->left);
		else if (last->resumed && !last->left && began > last->resumed &&
			 began - last->resumed < limit)
			device_learn_back(&file->learn, began - last->resumed);
		has_receipt = last->has_receipt;
		number = last->receipt;
		last->tid = 0;
	}
	raw_spin_unlock_irqrestore(&file->lock, flags);
	if (has_receipt && began)
		device_ring_began(file->ring, number, began);
}

static void remember(struct device_file *file, const struct device_last *last)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&file->lock, flags);
	file->last[current->pid % DEVICE_LAST] = *last;
	raw_spin_unlock_irqrestore(&file->lock, flags);
}

static u64 lead_of(struct device_file *file, enum device_wake kind, u64 budget)
{
	unsigned long flags;
	u64 lead;

	raw_spin_lock_irqsave(&file->lock, flags);
	lead = device_learn_lead(&file->learn, kind,
				 apic_timer_ns_to_tsc(READ_ONCE(cost_ns)), budget);
	raw_spin_unlock_irqrestore(&file->lock, flags);
	return lead;
}

/*
 * Return when to leave the kernel at the end of a wait there. Callers that report nothing are never
 * early: what the file has learnt is from other threads, which may report anything.
 */
static u64 leave_at(struct device_file *file, enum device_return kind,
		    const struct apic_timer_sleep *a)
{
	unsigned long flags;
	u64 back;

	if (!a->began)
		return a->tsc;
	raw_spin_lock_irqsave(&file->lock, flags);
	back = device_learn_exit(&file->learn, kind);
	raw_spin_unlock_irqrestore(&file->lock, flags);
	return lead_before(a->tsc, back);
}

/* Only interrupts delay a real-time thread's wake-up. Other threads gain nothing by a fence. */
static bool may_fence(void)
{
	return current->policy == SCHED_FIFO || current->policy == SCHED_RR ||
	       current->policy == SCHED_DEADLINE;
}

static bool switched(unsigned long since)
{
	return current->nvcsw + current->nivcsw != since;
}

/*
 * Learn from a wake-up, except from one that had to wait until another sleeper's moment: that one
 * may just as well have to wait for this one, and each would learn the lead of the other.
 */
static void learn_wake(struct device_file *file, enum device_wake kind,
		       const struct apic_timer_sleep *a, u64 armed)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&file->lock, flags);
	if (a->resumed > armed && (s64)(armed - __this_cpu_read(occupied_until)) > 0)
		device_learn_wake(&file->learn, kind, a->resumed - armed);
	__this_cpu_write(occupied_until, min(a->tsc, a->resumed + device_sleep_budget_max()));
	raw_spin_unlock_irqrestore(&file->lock, flags);
}

/* Sleep until @expires, in the kernel's time, unless that is too near. */
static int sleep_until(struct device_file *file, struct apic_timer_sleep *a, u64 expires)
{
	u64 now = apic_timer_now(), budget = a->budget, wake_at;
	struct sleeper sleeper = {
		.user = file->user,
		.task = current,
		.clock = a->clock,
		.expires = expires,
	};
	enum device_wake kind = DEVICE_WAKE_PLAIN;
	int ret;

	if (!budget)
		budget = apic_timer_ns_to_tsc(BUDGET_NS);
	if (device_moment_tick_between(now, a->tsc))
		kind = DEVICE_WAKE_TICK;
	sleeper.lead = lead_of(file, kind, budget);
	a->lead = sleeper.lead;
	wake_at = lead_before(a->tsc, sleeper.lead);
	if (wake_at <= now) {
		a->resumed = now;
		return 0;
	}

	ret = device_user_pend(file->user);
	if (ret)
		return ret;
	sleeper.fence = may_fence() && !(a->flags & APIC_TIMER_SLEEP_NO_FENCE);
	if (sleeper.fence)
		a->result |= APIC_TIMER_SLEPT_FENCED;
	sleeper.timer.function = wake;
	sleeper.timer.data = (unsigned long)&sleeper;
	init_apic_timer(&sleeper.timer);
	/*
	 * Defer kernel events that are due shortly before the expiry and would delay the
	 * wake-up. Mode exact with next to no spin would do so too, but the CPU would have to
	 * poll before the expiry: see apic_timer_lead_room().
	 */
	sleeper.timer.flags = APIC_TIMER_RAW | APIC_TIMER_UNDISTURBED;
	sleeper.timer.expires = device_moment_leg(a->clock, wake_at, now);
	ret = sleep_on(&sleeper);
	device_user_unpend(file->user);
	if (ret) {
		device_user_return(file->user, sleeper.paid);
		return ret;
	}

	a->resumed = apic_timer_now();
	a->woken = sleeper.woken;
	a->result |= APIC_TIMER_SLEPT;
	if (a->clock == APIC_TIMER_CLOCK_TSC)
		a->tsc = sleeper.timer.expires + sleeper.lead;
	else
		a->tsc = device_moment_tsc(a->clock, expires);
	learn_wake(file, kind, a, sleeper.timer.expires);
	return 0;
}

/**
 * device_sleep() - APIC_TIMER_SLEEP
 * @file:	the file
 * @argument:	the user's struct apic_timer_sleep
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_timer_sleep.
 */
long device_sleep(struct device_file *file, void __user *argument)
{
	unsigned long switches = current->nvcsw + current->nivcsw;
	struct device_last last = { .tid = current->pid };
	u32 usize, epoch = device_page_epoch(), wanted;
	struct apic_timer_receipt receipt;
	struct device_ring *ring;
	struct apic_timer_sleep a;
	u64 expires;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), SLEEP_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	if (a.flags & ~SLEEP_FLAGS || !device_moment_clock(a.clock) ||
	    a.budget > device_sleep_budget_max())
		return -EINVAL;
	learn_from(file, a.began);

	wanted = a.epoch;
	a.epoch = epoch;
	if (wanted && a.clock == APIC_TIMER_CLOCK_TSC && wanted != epoch) {
		ret = -ESTALE;
		goto out;
	}
	a.woken = 0;
	a.result = 0;
	a.lead = 0;
	/* The user's value stays: the kernel may restart the call. */
	expires = device_moment_of_caller(a.clock, a.expires);
	a.tsc = device_moment_tsc(a.clock, expires);
	a.resumed = apic_timer_now();
	if (a.resumed >= a.tsc) {
		if (a.flags & APIC_TIMER_SLEEP_SKIP_LATE)
			return -ETIME;
	} else {
		/* Sleep again if someone has set CLOCK_TAI back meanwhile. */
		do {
			ret = sleep_until(file, &a, expires);
			if (ret == -ERESTARTSYS && a.flags & APIC_TIMER_SLEEP_NO_RESTART)
				ret = -ERESTARTNOHAND;
			/* The kernel restarts the call, maybe in another epoch. */
			if ((ret == -ERESTARTSYS || ret == -ERESTARTNOHAND) &&
			    a.clock == APIC_TIMER_CLOCK_TSC)
				goto out;
			if (ret)
				return ret;
		} while (a.tsc > a.resumed &&
			 a.tsc - a.resumed > device_sleep_budget_max());
		a.epoch = device_page_epoch();
		if (wanted && a.clock == APIC_TIMER_CLOCK_TSC && wanted != a.epoch) {
			ret = -ESTALE;
			goto out;
		}
	}

	a.cpu = raw_smp_processor_id();
	if (a.resumed >= a.tsc)
		a.result |= APIC_TIMER_SLEPT_LATE;
	ring = smp_load_acquire(&file->ring); /* device_mmap() */
	if (ring) {
		receipt = (struct apic_timer_receipt) {
			.tsc = a.tsc, .woken = a.woken, .resumed = a.resumed,
			.lead = a.lead, .cpu = a.cpu, .result = a.result,
			.tid = device_ring_tid(ring),
		};
		last.receipt = device_ring_add(ring, &receipt);
		last.has_receipt = true;
	}
	last.kind = switched(switches) ? DEVICE_RETURN_SWITCHED : DEVICE_RETURN_STRAIGHT;
	if (a.flags & APIC_TIMER_SLEEP_KERNEL_FINISH) {
		ret = apic_struct_out(argument, usize, &a, sizeof(a));
		if (ret)
			return ret;
		last.left = finish(leave_at(file, last.kind, &a));
		/* A preemption during the wait changes the kind of return. */
		last.kind = switched(switches) ? DEVICE_RETURN_SWITCHED :
			    DEVICE_RETURN_STRAIGHT;
		remember(file, &last);
		return 0;
	}
	last.resumed = a.woken ? a.resumed : 0;
	remember(file, &last);
	ret = 0;
out:
	return apic_struct_out(argument, usize, &a, sizeof(a)) ?: ret;
}

/**
 * device_sleep_init() - prepare a file for sleepers
 * @file:	the file
 *
 * Context: Any.
 */
void device_sleep_init(struct device_file *file)
{
	raw_spin_lock_init(&file->lock);
	device_learn_init(&file->learn, apic_timer_ns_to_tsc(GUESS_NS),
			  READ_ONCE(quantile));
}

/**
 * device_sleep_budget_max() - largest budget that a caller may ask for
 *
 * Context: Any.
 * Return: TSC cycles.
 */
u64 device_sleep_budget_max(void)
{
	return apic_timer_ns_to_tsc(BUDGET_MAX_NS);
}
