/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_TIMER_H
#define _APIC_TIMER_DEVICE_TIMER_H

#include <linux/apic_timer.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "epoch.h"
#include "later.h"

struct device_user;

/**
 * struct device_timer - a file's timer: ARM arms it, read() and poll() wait for it
 * @timer:	the timer
 * @user:	account that pays for its expiries
 * @mutex:	serialises ARM
 * @lock:	protects the fields below against the handler
 * @armed:	the handler may arm the timer again; it is counted as pending
 * @paid:	CPU that has paid for the next interrupt, or DEVICE_SPENT
 * @usable:	TSC from which that payment is available; 0: it was when it was made
 * @clock:	clock of @expires and @interval
 * @epoch:	epoch that @expires belongs to; 0: any, or the timer is not armed and nothing
 *		is left to read
 * @expires:	next expiry
 * @interval:	time from one expiry to the next; 0: no further expiry
 * @set:	TSC value that @timer was armed for; a new epoch moves @timer away from it
 * @ticks:	expirations not read yet
 * @wake:	wakes @wait
 * @refs:	the file, and each time that @wake is queued or running
 * @free:	frees the memory
 * @wait:	readers and pollers
 * @waiter:	wakes readers and pollers when a new epoch begins
 */
struct device_timer {
	struct apic_timer_list timer;
	struct device_user *user;
	struct mutex mutex;	/* serialises ARM */
	raw_spinlock_t lock;
	bool armed;
	int paid;
	u64 usable;
	u32 clock;
	u32 epoch;
	u64 expires;
	u64 interval;
	u64 set;
	u64 ticks;
	struct device_later wake;
	refcount_t refs;
	void (*free)(struct device_timer *timer);
	wait_queue_head_t wait;
	struct device_epoch_waiter waiter;
};

void device_timer_init(struct device_timer *timer, struct device_user *user,
		       void (*free)(struct device_timer *timer));
void device_timer_exit(struct device_timer *timer);
void device_timer_put(struct device_timer *timer);
long device_timer_arm(struct device_timer *timer, void __user *argument);
ssize_t device_timer_read(struct device_timer *timer, char __user *to, size_t size,
			  bool nonblocking);
__poll_t device_timer_poll(struct device_timer *timer, struct file *file,
			   poll_table *table);

#endif /* _APIC_TIMER_DEVICE_TIMER_H */
