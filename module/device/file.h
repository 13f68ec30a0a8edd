/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_FILE_H
#define _APIC_TIMER_DEVICE_FILE_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "learn.h"
#include "ring.h"
#include "timer.h"

struct device_user;

/* Number of threads whose last sleep a file remembers. */
#define DEVICE_LAST	16

/**
 * struct device_last - the last sleep of a thread
 * @tid:	the thread, 0: none
 * @kind:	how it returned
 * @resumed:	TSC when it ran again; 0: it did not sleep
 * @left:	last TSC value that finish() read in the kernel; 0: the kernel did not wait
 * @receipt:	number of its receipt
 * @has_receipt: @receipt is valid
 */
struct device_last {
	pid_t tid;
	enum device_return kind;
	u64 resumed;
	u64 left;
	u64 receipt;
	bool has_receipt;
};

/**
 * struct device_file - an open file
 * @user:	account of the user who opened the file
 * @mutex:	serialises the creation of @ring
 * @lock:	protects @learn and @last
 * @learn:	estimates of how long wake-ups take. The threads that use the file share them;
 *		a thread of another priority or CPU should open the device itself.
 * @last:	last sleeps, indexed by thread id modulo %DEVICE_LAST
 * @ring:	receipts, NULL until they are mapped
 * @timer:	the timer that ARM arms
 */
struct device_file {
	struct device_user *user;
	struct mutex mutex;	/* creation of the ring */
	raw_spinlock_t lock;
	struct device_learn learn;
	struct device_last last[DEVICE_LAST];
	struct device_ring *ring;
	struct device_timer timer;
};

#endif /* _APIC_TIMER_DEVICE_FILE_H */
