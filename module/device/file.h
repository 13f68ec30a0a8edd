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

/* Threads of which a file remembers the last sleep. */
#define DEVICE_LAST	16

/**
 * struct device_last - the last sleep of a thread
 * @tid:	the thread, 0: none
 * @kind:	how it returned
 * @resumed:	TSC when it ran again; 0: it did not sleep
 * @left:	TSC as last read by the kernel's last stretch; 0: there was none
 * @receipt:	number of its receipt
 * @has_receipt: there is one
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
 * @user:	who pays: who opened it
 * @mutex:	the making of @ring
 * @lock:	@learn and @last
 * @learn:	how long wake-ups take. Threads share it: one that differs from the
 *		others, in priority or CPU, opens the device itself.
 * @last:	by thread number modulo their number
 * @ring:	receipts, NULL until they are mapped
 * @timer:	what ARM arms
 */
struct device_file {
	struct device_user *user;
	struct mutex mutex;	/* the making of the ring */
	raw_spinlock_t lock;
	struct device_learn learn;
	struct device_last last[DEVICE_LAST];
	struct device_ring *ring;
	struct device_timer timer;
};

#endif /* _APIC_TIMER_DEVICE_FILE_H */
