// SPDX-License-Identifier: GPL-2.0
/*
 * Moments as io_uring commands: a command completes when its moment has arrived.
 *
 * The completion is as exact as a thread that a handler wakes, as with read(): nothing spins
 * until the moment. It is posted in the task, which io_uring notifies outside the hard
 * interrupt.
 */
#include <linux/apic_timer.h>
#include <linux/fs.h>
#include <linux/io_uring/cmd.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "epoch.h"
#include "file.h"
#include "later.h"
#include "limit.h"
#include "moment.h"
#include "page.h"
#include "uring.h"

static_assert(sizeof(struct apic_timer_uring) == 16);

/**
 * struct uring_wait - a command that waits for its moment
 * @timer:	timer that expires at the moment
 * @notify:	makes io_uring call us in the task
 * @command:	the command, ours until it is completed
 * @user:	account that pays
 * @paid:	CPU that has paid for the interrupt, DEVICE_SPENT from the first one on
 * @lock:	protects @waits, arming again, and queueing @notify
 * @waits:	armed, and its completion has not begun
 * @clock:	clock of @expires
 * @epoch:	epoch that @expires belongs to; 0: any
 * @expires:	the moment
 * @result:	result of the command
 * @waiter:	completes the command in a new epoch
 */
struct uring_wait {
	struct apic_timer_list timer;
	struct device_later notify;
	struct io_uring_cmd *command;
	struct device_user *user;
	int paid;
	raw_spinlock_t lock;
	bool waits;
	u32 clock;
	u32 epoch;
	u64 expires;
	int result;
	struct device_epoch_waiter waiter;
};

/* Our private data in the command. */
struct uring_private {
	struct uring_wait *wait;
};

static struct uring_wait *wait_of(struct io_uring_cmd *command)
{
	return io_uring_cmd_to_pdu(command, struct uring_private)->wait;
}

static void end(struct io_uring_cmd *command, int result, unsigned int issue_flags)
{
#if APIC_TIMER_URING_DONE_HAS_RES2
	io_uring_cmd_done(command, result, 0, issue_flags);
#else
	io_uring_cmd_done(command, result, issue_flags);
#endif
}

/* Runs in the task, or in a worker if the task is exiting. */
static void finish(struct io_uring_cmd *command, unsigned int issue_flags)
{
	struct uring_wait *wait = wait_of(command);

	device_epoch_del(&wait->waiter);
	/* The handler may still be finishing on another CPU. */
	del_apic_timer_sync(&wait->timer);
	device_user_return(wait->user, wait->paid);
	device_user_unpend(wait->user);
	/* Until this, the command has a reference to the file, and may be cancelled. */
	end(command, wait->result, issue_flags);
	kfree(wait);
}

#if APIC_TIMER_URING_HAS_TW_REQ
static void finish_work(struct io_tw_req request, io_tw_token_t token)
{
	finish(io_uring_cmd_from_tw(request), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);
}
#else
static void finish_work(struct io_uring_cmd *command, unsigned int issue_flags)
{
	finish(command, issue_flags);
}
#endif

/* Called by the side that has cleared @waits. The wait may be freed from here on. */
static void notify(struct device_later *later)
{
	struct uring_wait *wait = container_of(later, struct uring_wait, notify);

	io_uring_cmd_complete_in_task(wait->command, finish_work);
}

/* Arm for the moment, or for an earlier one at which to convert it again. */
static int arm(struct uring_wait *wait, u64 now)
	__must_hold(&wait->lock)
{
	lockdep_assert_held(&wait->lock);
	wait->timer.expires = device_moment_leg(wait->clock,
						device_moment_tsc(wait->clock, wait->expires),
						now);
	return device_moment_arm(&wait->timer);
}

static int pay_and_arm(struct uring_wait *wait)
	__must_hold(&wait->lock)
{
	int paid = device_user_take(wait->user);

	if (paid < 0)
		return paid;
	wait->paid = paid;
	return arm(wait, apic_timer_now());
}

static void expire(unsigned long long now, unsigned long data)
{
	struct uring_wait *wait = (struct uring_wait *)data;

	raw_spin_lock(&wait->lock);
	wait->paid = DEVICE_SPENT;
	if (!wait->waits)
		goto out;
	if (wait->clock == APIC_TIMER_CLOCK_TSC) {
		if (wait->epoch && wait->epoch != device_page_epoch())
			wait->result = -ESTALE;
	} else if (device_moment_now(wait->clock, now) < wait->expires) {
		wait->result = arm(wait, now);
		if (!wait->result)
			goto out;
		/* No CPU accepts timers any more. */
	}
	wait->waits = false;
	/* finish() waits for this handler. */
	device_later(&wait->notify);
out:
	raw_spin_unlock(&wait->lock);
}

static void epoch_began(struct device_epoch_waiter *waiter)
{
	struct uring_wait *wait = container_of(waiter, struct uring_wait, waiter);
	unsigned long flags;
	bool stale;

	raw_spin_lock_irqsave(&wait->lock, flags);
	/* A command issued since then belongs to the new epoch. */
	stale = wait->waits && wait->clock == APIC_TIMER_CLOCK_TSC && wait->epoch &&
		wait->epoch != device_page_epoch();
	if (stale) {
		wait->waits = false;
		wait->result = -ESTALE;
	}
	raw_spin_unlock_irqrestore(&wait->lock, flags);
	/* finish() waits for us in device_epoch_del(). */
	if (stale)
		notify(&wait->notify);
}

/*
 * The ring is closed, or the task executes a program. Complete the command here unless its
 * completion has begun. One that is queued but has not begun is taken over as well, because
 * on a CPU that goes offline or is kept busy it might never run.
 */
static int cancel(struct io_uring_cmd *command, unsigned int issue_flags)
{
	struct uring_wait *wait = wait_of(command);
	unsigned long flags;
	bool ours, completes;

	raw_spin_lock_irqsave(&wait->lock, flags);
	ours = wait->waits;
	wait->waits = false;
	if (ours)
		wait->result = -ECANCELED;
	completes = ours || device_later_cancel(&wait->notify);
	raw_spin_unlock_irqrestore(&wait->lock, flags);
	if (completes)
		finish(command, issue_flags);
	return 0;
}

/**
 * device_uring() - handle an io_uring command
 * @command:	the command
 * @issue_flags: io_uring's flags
 *
 * Context: Task. Sleeps.
 * Return: -EIOCBQUEUED if it completes later, otherwise its result.
 */
int device_uring(struct io_uring_cmd *command, unsigned int issue_flags)
{
	struct device_file *file = command->file->private_data;
	const struct apic_timer_uring *a;
	struct uring_wait *wait;
	unsigned long flags;
	int ret;

	if (issue_flags & IO_URING_F_CANCEL)
		return cancel(command, issue_flags);
	if (command->cmd_op != APIC_TIMER_URING_WAIT)
		return -ENOTTY;
	wait = kzalloc(sizeof(*wait), GFP_KERNEL_ACCOUNT);
	if (!wait)
		return -ENOMEM;
	/* The ring is the user's memory: each field is read once. */
	a = (const void *)command->sqe->cmd;
	wait->clock = READ_ONCE(a->clock);
	wait->expires = device_moment_of_caller(wait->clock, READ_ONCE(a->expires));
	wait->epoch = READ_ONCE(a->epoch);
	ret = -EINVAL;
	if (!device_moment_clock(wait->clock))
		goto free;
	ret = -ESTALE;
	if (wait->epoch && wait->clock == APIC_TIMER_CLOCK_TSC &&
	    wait->epoch != device_page_epoch())
		goto free;

	ret = device_user_pend(file->user);
	if (ret)
		goto free;
	wait->paid = DEVICE_SPENT;
	wait->user = file->user;
	wait->command = command;
	raw_spin_lock_init(&wait->lock);
	wait->notify.call = notify;
	wait->timer.function = expire;
	wait->timer.data = (unsigned long)wait;
	init_apic_timer(&wait->timer);
	wait->timer.flags = APIC_TIMER_RAW;
	wait->waiter.began = epoch_began;
	io_uring_cmd_to_pdu(command, struct uring_private)->wait = wait;
	io_uring_cmd_mark_cancelable(command, issue_flags);
	device_epoch_add(&wait->waiter);
	raw_spin_lock_irqsave(&wait->lock, flags);
	/* If another thread cancelled it before this, io_uring retries until it completes. */
	ret = pay_and_arm(wait);
	wait->waits = !ret;
	wait->result = ret;
	raw_spin_unlock_irqrestore(&wait->lock, flags);
	/*
	 * Complete it as if it had waited: io_uring already knows it. If -EAGAIN were returned, it
	 * would also try again, from another CPU.
	 */
	if (ret)
		finish(command, issue_flags);
	return -EIOCBQUEUED;
free:
	kfree(wait);
	return ret;
}
