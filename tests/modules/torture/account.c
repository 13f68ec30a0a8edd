// SPDX-License-Identifier: GPL-2.0
/*
 * Timers with an exact account: which shot is armed, and which shots a CPU has dequeued without
 * having started their handlers.
 *
 * Each timer has a lock that serialises calls for that timer, so that the account is exact;
 * expiries on CPUs and calls for other timers happen at the same time. The results of calls must
 * agree with the account, and each handler must find the shot that it was called for.
 */
#include <linux/apic_timer.h>
#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "torture.h"

/* No CPU is certain. */
#define ANY_CPU	(-1)
/* A CPU that goes offline may be behind by as much as this when another takes its timers. */
#define BEHIND_US	1000000

/* The expiry that a CPU has run last */
static DEFINE_PER_CPU(u64, reached);

/**
 * struct shot - a shot
 * @expires:	its moment
 * @cpu:	the CPU that it was armed on, or %ANY_CPU
 * @since:	torture_onoff_now() before arming
 * @armed:	TSC after arming
 */
struct shot {
	u64 expires;
	int cpu;
	u32 since;
	u64 armed;
};

/**
 * struct account - a timer and its known state
 * @timer:	the timer
 * @lock:	covers the members below, and is held in every call except the
 *		waiting one
 * @armed:	@shot is armed, by the results of calls
 * @shot:	the current or last shot
 * @place:	the timer's CPU while not pending, or %ANY_CPU
 * @place_since: torture_onoff_now() when that was found
 * @taken:	expired shots whose handlers have not begun, the oldest first;
 *		one for each CPU at most
 * @takens:	number of them
 * @closing:	a thread waits in del_apic_timer_sync(): do not arm
 * @used:	was ever armed
 * @inside:	handlers running
 * @state:	random numbers for the handler
 */
struct account {
	struct apic_timer_list timer;
	raw_spinlock_t lock;
	bool armed;
	struct shot shot;
	int place;
	u32 place_since;
	struct shot taken[64];
	unsigned int takens;
	bool closing;
	bool used;
	unsigned int inside;
	u32 state;
};

static struct account *accounts;
static unsigned int count;

static struct account *any(u32 *state)
{
	return &accounts[(torture_random(state) >> 8) % count];
}

static void fault(const struct account *account, const char *what, int ret)
{
	torture_fault("timer %ld: %s (returned %d, expires %llu, now %llu, cpu %d on %d)",
		      account - accounts, what, ret, account->shot.expires,
		      apic_timer_now(), account->shot.cpu,
		      raw_smp_processor_id());
}

/* A call found the timer not pending: its shot, if any, has expired. */
static void take(struct account *account)
{
	if (!account->armed)
		return;
	account->armed = false;
	if (account->takens == ARRAY_SIZE(account->taken))
		fault(account, "expired repeatedly, but its handler never started", 0);
	else
		account->taken[account->takens++] = account->shot;
}

static void place(struct account *account, int cpu, u32 since)
{
	account->place = cpu;
	account->place_since = since;
}

static void arm(struct account *account, u64 expires, int cpu, u32 since)
{
	take(account);
	account->armed = true;
	account->used = true;
	account->shot = (struct shot){ expires, cpu, since, apic_timer_now() };
	place(account, cpu, since);
	torture_inc(ARMED);
}

/* The CPU rejected the timer. Check that it does not accept timers. */
static void not_taken(struct account *account, int cpu)
{
	take(account);
	place(account, ANY_CPU, 0);
	torture_inc(REFUSED);
	if (!torture_onoff_away(cpu))
		fault(account, "refused by an online CPU", -ENODEV);
}

/* Return the expiry that the timer's CPU has run last. */
static u64 reached_by(const struct account *account)
{
	unsigned int cpu = READ_ONCE(account->timer.cpu);

	return cpu < nr_cpu_ids ? READ_ONCE(per_cpu(reached, cpu)) : 0;
}

/*
 * A call found the timer pending. Check that its CPU had not run much later ones before the call,
 * @passed being the last. How late a CPU is says nothing, for it may get little time.
 */
static void was_pending(const struct account *account, u64 passed)
{
	u64 due = max(account->shot.expires, account->shot.armed);

	if (passed > apic_timer_add_tsc(due, apic_timer_us_to_tsc(BEHIND_US)))
		fault(account, "passed over and still pending", 0);
}

/* -1 is this CPU. */
static void add(struct account *account, u64 expires, int cpu)
{
	int target = cpu < 0 ? smp_processor_id() : cpu, ret;
	u32 since = torture_onoff_now();

	/* It may be pending, and must not be touched. */
	if (account->armed)
		expires = account->timer.expires;
	else
		account->timer.expires = expires;

	ret = cpu < 0 ? add_apic_timer(&account->timer) :
			add_apic_timer_on(&account->timer, cpu);
	if (!ret)
		arm(account, expires, target, since);
	else if (ret == -ENODEV)
		not_taken(account, target);
	else if (ret != -EBUSY || !account->armed)
		fault(account, "add", ret);
}

/* Return where mod_apic_timer() arms a timer that is not pending. */
static int stays_on(const struct account *account)
{
	if (!account->used)
		return smp_processor_id();
	/* An offline CPU cannot have it, and a pending one was moved. */
	return torture_onoff_since(account->place_since) ? ANY_CPU :
							    account->place;
}

static void mod(struct account *account, u64 expires)
{
	u64 passed = reached_by(account);
	u32 since = torture_onoff_now();
	int ret = mod_apic_timer(&account->timer, expires);

	if (ret == 1 && account->armed) {
		was_pending(account, passed);
		account->shot.expires = expires;
		account->shot.armed = apic_timer_now();
		torture_inc(SUPERSEDED);
	} else if (!ret) {
		arm(account, expires, stays_on(account), since);
	} else if (ret == -ENODEV) {
		not_taken(account, smp_processor_id());
	} else {
		fault(account, "mod", ret);
	}
}

static void deleted(struct account *account)
{
	account->armed = false;
	torture_inc(DELETED);
	torture_inc(FATES);
}

static void del(struct account *account)
{
	u64 passed = reached_by(account);
	int ret = del_apic_timer(&account->timer);

	if (ret == 1 && account->armed) {
		was_pending(account, passed);
		deleted(account);
	} else if (ret == -EBUSY) {
		take(account);
		torture_inc(BUSY);
	} else if (account->armed || ret != (account->used ? 0 : -ENOENT)) {
		/* Its handler cannot have ended: it needs the lock that we hold. */
		fault(account, "del", ret);
	}
}

static void del_sync(struct account *account)
{
	unsigned long flags;
	u64 passed;
	int ret;

	raw_spin_lock_irqsave(&account->lock, flags);
	if (account->closing) {
		raw_spin_unlock_irqrestore(&account->lock, flags);
		return;
	}
	account->closing = true;
	passed = reached_by(account);
	raw_spin_unlock_irqrestore(&account->lock, flags);

	ret = del_apic_timer_sync(&account->timer);
	torture_inc(WAITED);

	raw_spin_lock_irqsave(&account->lock, flags);
	if (ret == 1 && account->armed) {
		was_pending(account, passed);
		deleted(account);
	} else if (account->armed || ret != (account->used ? 0 : -ENOENT)) {
		fault(account, "waiting deletion", ret);
	}
	if (account->takens)
		fault(account, "waiting deletion returned before the handler began",
		      ret);
	if (account->inside)
		fault(account, "waiting deletion returned before the handler ended",
		      ret);
	if (apic_timer_pending(&account->timer))
		fault(account, "pending after a waiting deletion", ret);
	account->closing = false;
	raw_spin_unlock_irqrestore(&account->lock, flags);
}

/* Any call except the waiting one, which a handler must not make. */
static void operate(struct account *account, u32 *state)
{
	u64 expires = torture_moment(state);
	int cpu = torture_cpu(state);
	unsigned long flags;

	if (!torture_operation())
		return;
	raw_spin_lock_irqsave(&account->lock, flags);
	if (!account->closing) {
		switch ((torture_random(state) >> 8) % 8) {
		case 0:
			add(account, expires, -1);
			break;
		case 1 ... 2:
			add(account, expires, cpu);
			break;
		case 3 ... 5:
			mod(account, expires);
			break;
		default:
			del(account);
		}
	}
	raw_spin_unlock_irqrestore(&account->lock, flags);
}

/* Check a shot that has begun to run here. */
static void check(const struct account *account, const struct shot *shot,
		  u64 now)
{
	int here = smp_processor_id();

	torture_inc(RAN);
	torture_inc(FATES);
	this_cpu_write(reached, shot->expires);
	if (now < shot->expires)
		fault(account, "early", 0);
	if (shot->cpu == ANY_CPU)
		torture_inc(ANYWHERE);
	else if (!torture_onoff_may_be_on(shot->cpu, shot->since, here))
		fault(account, "on a CPU other than requested", 0);
	else if (shot->cpu != here)
		torture_inc(MOVED);
}

static void handler(unsigned long long now, unsigned long data)
{
	struct account *account = (struct account *)data;
	unsigned int i;
	u32 choice;

	raw_spin_lock(&account->lock);
	if (account->inside++)
		fault(account, "on two CPUs at once", 0);
	if (account->takens) {
		check(account, &account->taken[0], now);
		account->takens--;
		for (i = 0; i < account->takens; i++)
			account->taken[i] = account->taken[i + 1];
	} else if (account->armed) {
		check(account, &account->shot, now);
		account->armed = false;
		place(account, smp_processor_id(), torture_onoff_now());
	} else {
		fault(account, "ran without being armed", 0);
	}
	choice = torture_random(&account->state) >> 8;
	raw_spin_unlock(&account->lock);

	/* Itself, others, or time passes. */
	if (choice & 1)
		operate(account, &account->state);
	if (choice & 2)
		operate(any(&account->state), &account->state);
	for (i = choice >> 4 & 255; choice & 4 && i; i--)
		cpu_relax();

	raw_spin_lock(&account->lock);
	account->inside--;
	raw_spin_unlock(&account->lock);
}

/**
 * torture_account_setup() - set up the timers
 * @timers:	their number
 * @seed:	of the random numbers
 *
 * Return: 0 or -errno.
 */
int torture_account_setup(unsigned int timers, u32 seed)
{
	struct account *account;

	count = 0;
	accounts = kvcalloc(timers, sizeof(*accounts), GFP_KERNEL);
	if (!accounts)
		return -ENOMEM;
	for (count = 0; count < timers; count++) {
		account = &accounts[count];
		raw_spin_lock_init(&account->lock);
		account->state = (seed + count) * 2654435761U | 1;
		account->timer.function = handler;
		account->timer.data = (unsigned long)account;
		init_apic_timer(&account->timer);
	}
	return 0;
}

/**
 * torture_account_step() - do one random operation
 * @state:	of the random numbers
 */
void torture_account_step(u32 *state)
{
	struct account *account = any(state);

	if ((torture_random(state) >> 8) % 8)
		operate(account, state);
	else if (torture_operation())
		del_sync(account);
}

/**
 * torture_account_busy() - whether shots are due, or handlers running
 *
 * Return: true if waiting is useful.
 */
bool torture_account_busy(void)
{
	u64 soon = apic_timer_now() + apic_timer_us_to_tsc(60000000);
	struct account *account;
	unsigned long flags;
	unsigned int i;
	bool busy = false;

	for (i = 0; i < count && !busy; i++) {
		account = &accounts[i];
		raw_spin_lock_irqsave(&account->lock, flags);
		busy = account->takens || account->inside ||
		       (account->armed && account->shot.expires < soon);
		raw_spin_unlock_irqrestore(&account->lock, flags);
	}
	return busy;
}

/**
 * torture_account_finish() - check that the rest are pending; delete them
 */
void torture_account_finish(void)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (accounts[i].armed &&
		    !apic_timer_pending(&accounts[i].timer))
			fault(&accounts[i], "lost", 0);
		del_sync(&accounts[i]);
	}
	count = 0;
	kvfree(accounts);
	accounts = NULL;
}
