// SPDX-License-Identifier: GPL-2.0
/*
 * Limits for each user: wake-ups a second on each CPU, and sleepers and timers at a time.
 *
 * A file is charged to the user who opened it, even after it was passed to another process.
 * Otherwise a user with many subordinate user ids would have the limits of each of them.
 *
 * An account outlives its last file until its buckets are full again. Otherwise a user would get
 * a burst by closing the file and opening another one.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include "bucket.h"
#include "limit.h"
#include "page.h"

#define RATE_MAX	1000000
#define BURST_MAX	10000
#define PENDING_MAX	100000

static unsigned int rate = 20000;
static unsigned int burst = 64;
static unsigned int pending = 256;

static int set_rate(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, RATE_MAX);
}

static int set_burst(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, BURST_MAX);
}

static int set_pending(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, PENDING_MAX);
}

static const struct kernel_param_ops rate_ops = {
	.set = set_rate, .get = param_get_uint,
};

static const struct kernel_param_ops burst_ops = {
	.set = set_burst, .get = param_get_uint,
};

static const struct kernel_param_ops pending_ops = {
	.set = set_pending, .get = param_get_uint,
};

module_param_cb(rate, &rate_ops, &rate, 0644);
MODULE_PARM_DESC(rate, "maximum wake-ups of one user per second on each CPU (1 to 1000000)");
module_param_cb(burst, &burst_ops, &burst, 0644);
MODULE_PARM_DESC(burst, "maximum burst of wake-ups of one user on each CPU (1 to 10000)");
module_param_cb(pending, &pending_ops, &pending, 0644);
MODULE_PARM_DESC(pending, "maximum concurrent sleepers and timers of one user (1 to 100000)");

/**
 * struct device_tokens - a user's tokens for wake-ups on a CPU
 * @bucket:	the tokens
 * @epoch:	epoch of the TSC that @bucket belongs to
 */
struct device_tokens {
	struct device_bucket bucket;
	u32 epoch;
};

/**
 * struct device_user - a user's account
 * @node:	entry in the list of users
 * @uid:	the user's id
 * @files:	number of open files; under users_lock
 * @pending:	number of sleepers and timers
 * @tokens:	tokens for wake-ups, on each CPU
 */
struct device_user {
	struct list_head node;
	kuid_t uid;
	unsigned int files;
	atomic_t pending;
	struct device_tokens __percpu *tokens;
};

static LIST_HEAD(users);
static DEFINE_MUTEX(users_lock);	/* the list, and numbers of files */

/**
 * device_limit_rate() - return parameter rate
 *
 * Context: Any.
 * Return: wake-ups a second.
 */
unsigned int device_limit_rate(void)
{
	return READ_ONCE(rate);
}

/**
 * device_limit_burst() - return parameter burst
 *
 * Context: Any.
 * Return: wake-ups.
 */
unsigned int device_limit_burst(void)
{
	return READ_ONCE(burst);
}

/**
 * device_limit_pending() - return parameter pending
 *
 * Context: Any.
 * Return: sleepers and timers.
 */
unsigned int device_limit_pending(void)
{
	return READ_ONCE(pending);
}

/* Check whether a new account would have as many tokens. No file uses this one. */
static bool is_full(const struct device_user *user)
{
	u32 epoch = device_page_epoch();
	u64 now = apic_timer_now();
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct device_tokens *tokens = per_cpu_ptr(user->tokens, cpu);

		/* Of an earlier epoch: bucket_of() */
		if (tokens->epoch == epoch && tokens->bucket.full > now)
			return false;
	}
	return true;
}

static void free_user(struct device_user *user)
{
	list_del(&user->node);
	free_percpu(user->tokens);
	kfree(user);
}

/*
 * Free the accounts without files whose buckets are full. What remains until the next call are
 * the accounts of users who may open the node and did so shortly before.
 */
static void sweep(void)
	__must_hold(&users_lock)
{
	struct device_user *user, *next;

	lockdep_assert_held(&users_lock);
	list_for_each_entry_safe(user, next, &users, node) {
		if (!user->files && is_full(user))
			free_user(user);
	}
}

static struct device_user *find(kuid_t uid)
	__must_hold(&users_lock)
{
	struct device_user *user;

	list_for_each_entry(user, &users, node) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

static struct device_user *add(kuid_t uid)
	__must_hold(&users_lock)
{
	struct device_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->tokens = alloc_percpu_gfp(struct device_tokens, GFP_KERNEL_ACCOUNT);
	if (!user->tokens) {
		kfree(user);
		return NULL;
	}
	user->uid = uid;
	list_add(&user->node, &users);
	return user;
}

/**
 * device_user_get() - find a user's account, or open one
 * @uid:	the user
 *
 * Context: Task. Sleeps.
 * Return: the account, to be released by device_user_put(), or NULL if there is no memory.
 */
struct device_user *device_user_get(kuid_t uid)
{
	struct device_user *user;

	mutex_lock(&users_lock);
	sweep();
	user = find(uid) ?: add(uid);
	if (user)
		user->files++;
	mutex_unlock(&users_lock);
	return user;
}

/**
 * device_user_put() - release an account
 * @user:	the account
 *
 * Context: Task. Sleeps.
 */
void device_user_put(struct device_user *user)
{
	mutex_lock(&users_lock);
	user->files--;
	sweep();
	mutex_unlock(&users_lock);
}

/**
 * device_user_exit() - free all accounts
 *
 * Context: Task, when no file exists any more. Sleeps.
 */
void device_user_exit(void)
{
	struct device_user *user, *next;

	list_for_each_entry_safe(user, next, &users, node)
		free_user(user);
}

/**
 * device_user_pend() - count a sleeper or timer, unless the user has the maximum
 * @user:	the account
 *
 * Context: Any.
 * Return: 0, to be followed by device_user_unpend(), or -EBUSY.
 */
int device_user_pend(struct device_user *user)
{
	if (atomic_inc_return(&user->pending) <= device_limit_pending())
		return 0;
	atomic_dec(&user->pending);
	return -EBUSY;
}

/**
 * device_user_unpend() - count one sleeper or timer less
 * @user:	the account
 *
 * Context: Any.
 */
void device_user_unpend(struct device_user *user)
{
	atomic_dec(&user->pending);
}

/*
 * Return this CPU's bucket. If the TSC has restarted, the old value would be far ahead, and the
 * bucket would seem empty: after a sleep it is full. Interrupts are off.
 */
static struct device_bucket *bucket_of(struct device_user *user)
{
	struct device_tokens *tokens = this_cpu_ptr(user->tokens);
	u32 epoch = device_page_epoch();

	lockdep_assert_irqs_disabled();
	if (unlikely(tokens->epoch != epoch))
		*tokens = (struct device_tokens) { .epoch = epoch };
	return &tokens->bucket;
}

/* TSC cycles in which a bucket gains one token. */
static u64 token_interval(void)
{
	return apic_timer_ns_to_tsc(div_u64(NSEC_PER_SEC, device_limit_rate()));
}

/**
 * device_user_take() - pay for a wake-up on this CPU
 * @user:	the account
 *
 * Interrupts stay off until the timer is armed. Otherwise the thread could be moved meanwhile,
 * and a user could collect the tokens of all CPUs on one.
 *
 * Context: Any but NMI, with interrupts off.
 * Return: this CPU, which has paid, for device_user_return(); -EAGAIN if there were too many
 * wake-ups recently.
 */
int device_user_take(struct device_user *user)
{
	if (!device_bucket_take(bucket_of(user), apic_timer_now(), token_interval(),
				device_limit_burst(), device_limit_pending()))
		return -EAGAIN;
	return smp_processor_id();
}

/**
 * device_user_reserve() - pay for a timer's next wake-up on this CPU
 * @user:	the account
 *
 * Context: Hard interrupt.
 * Return: TSC before which the wake-up must not happen.
 */
u64 device_user_reserve(struct device_user *user)
{
	return device_bucket_reserve(bucket_of(user), apic_timer_now(), token_interval(),
				     device_limit_burst(), device_limit_pending());
}

/**
 * device_user_return() - take back a payment for a wake-up that does not happen
 * @user:	the account
 * @cpu:	CPU that has paid, or DEVICE_SPENT
 *
 * A payment by another CPU is lost. If it were credited to this CPU, a user could collect
 * the rate of all CPUs on one. The hardware may stay programmed and cause a spurious
 * interrupt: at most one for each call that armed it, on the CPU of that call.
 *
 * Context: Any but NMI.
 */
void device_user_return(struct device_user *user, int cpu)
{
	u64 interval = token_interval();
	unsigned long flags;

	local_irq_save(flags);
	if (cpu == smp_processor_id())
		device_bucket_return(bucket_of(user), interval);
	local_irq_restore(flags);
}
