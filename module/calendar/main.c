// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/apic_calendar: a time-driven system, run from a table.
 *
 * An open file is a calendar. The node belongs to root. To change a thread's priority, or to
 * run a calendar, also takes CAP_SYS_NICE. See docs/reference/calendar.md.
 */
#include <linux/apic_struct.h>
#include <linux/apic_timer.h>
#include <linux/apic_version.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/user_namespace.h>

#include "calendar.h"
#include "table.h"

/* Sizes of the structures' first versions. */
#define QUERY_SIZE_VER0		40
#define STATUS_SIZE_VER0	96

static_assert(sizeof(struct apic_calendar_query) == QUERY_SIZE_VER0);
static_assert(sizeof(struct apic_calendar_status) == STATUS_SIZE_VER0);
static_assert(offsetof(struct apic_calendar_status, run) == 32);
static_assert(sizeof(struct apic_calendar_receipt) == 80);
static_assert(offsetof(struct apic_calendar_receipt, entry) == 56);

static long query(void __user *argument)
{
	struct apic_timer_info info = { };
	struct calendar_limits limits;
	struct apic_calendar_query a;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), QUERY_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	/* The query describes the TSC even if this CPU has no timer. */
	apic_timer_query(raw_smp_processor_id(), &info);
	calendar_limits_ns(&limits);
	a.epoch = calendar_epoch();
	a.tsc_khz = info.tsc_khz;
	a.priority = calendar_priority();
	a.outranked_by = APIC_CALENDAR_OUTRANKED_INTERRUPTS | APIC_CALENDAR_OUTRANKED_STOP |
			 APIC_CALENDAR_OUTRANKED_DEADLINE | APIC_CALENDAR_OUTRANKED_FIFO |
			 APIC_CALENDAR_OUTRANKED_THROTTLING;
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		a.outranked_by |= APIC_CALENDAR_OUTRANKED_SOFTIRQS;
	a.major_min = limits.major_min;
	a.budget_min = limits.budget_min;
	a.gap_user = limits.gap_user;
	a.gap_function = limits.gap_function;
	a.share = limits.share;
	return apic_struct_out(argument, usize, &a, sizeof(a));
}

static long status(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_status a;
	struct calendar_unit *unit;
	unsigned long flags;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), STATUS_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	if (!smp_load_acquire(&calendar->n_tables)) /* calendar_load() */
		return -ENOENT;
	unit = calendar_unit_of(calendar, a.unit);
	if (!unit)
		return -EINVAL;
	WRITE_ONCE(calendar->urgent, false);
	raw_spin_lock_irqsave(&unit->cpu->lock, flags);
	a = unit->count;
	a.tid = unit->task ? task_pid_vnr(unit->task) : 0;
	a.lead = unit->def.kind == APIC_CALENDAR_FUNCTION ? 0 : calendar_lead(unit);
	raw_spin_unlock_irqrestore(&unit->cpu->lock, flags);
	a.size = usize;
	a.unit = unit->number;
	a.table = APIC_CALENDAR_NONE;
	a.next = APIC_CALENDAR_NONE;
	raw_spin_lock_irqsave(&calendar->lock, flags);
	a.state = calendar->running ? APIC_CALENDAR_RUNNING : APIC_CALENDAR_IDLE;
	if (!calendar->running)
		a.error = -calendar->error;
	if (calendar->running) {
		a.table = calendar->table->number;
		if (calendar->change.at != CALENDAR_NEVER && calendar->change.table)
			a.next = calendar->change.table->number;
	}
	raw_spin_unlock_irqrestore(&calendar->lock, flags);
	return apic_struct_out(argument, usize, &a, sizeof(a));
}

static long calendar_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct calendar *calendar = file->private_data;

	switch (command) {
	case APIC_CALENDAR_QUERY:
		return query(user);
	case APIC_CALENDAR_LOAD:
		return calendar_load(calendar, user);
	case APIC_CALENDAR_START:
		return calendar_start(calendar, user);
	case APIC_CALENDAR_SWITCH:
		return calendar_switch(calendar, user);
	case APIC_CALENDAR_STOP:
		return calendar_stop_by_user(calendar, user);
	case APIC_CALENDAR_BIND:
		return calendar_bind(calendar, user);
	case APIC_CALENDAR_UNBIND:
		return calendar_unbind(calendar, user);
	case APIC_CALENDAR_WAIT:
		return calendar_wait(calendar, user);
	case APIC_CALENDAR_STATUS:
		return status(calendar, user);
	default:
		return -ENOTTY;
	}
}

static ssize_t calendar_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	struct calendar *calendar = file->private_data;

	return calendar_ring_read(&calendar->ring, to, size);
}

static __poll_t calendar_poll(struct file *file, poll_table *table)
{
	struct calendar *calendar = file->private_data;
	__poll_t events = 0;

	poll_wait(file, &calendar->pollers->wait, table);
	/* Pairs with wq_has_sleeper(): the writer sees us wait, or we see its receipt. */
	smp_mb();
	if (!calendar_ring_empty(&calendar->ring))
		events |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(calendar->urgent))
		events |= EPOLLPRI;
	return events;
}

static int calendar_open(struct inode *inode, struct file *file)
{
	struct calendar *calendar;
	int ret;

	/* Side channels can be measured with exact moments. */
	ret = security_locked_down(LOCKDOWN_PERF);
	if (ret)
		return ret;
	if (file->f_cred->user_ns != &init_user_ns)
		return -EPERM;
	calendar = calendar_new();
	if (IS_ERR(calendar))
		return PTR_ERR(calendar);
	calendar_outside_add(calendar);
	file->private_data = calendar;
	return stream_open(inode, file);
}

static int calendar_release(struct inode *inode, struct file *file)
{
	struct calendar *calendar = file->private_data;

	/*
	 * While the calendar runs, cpu_goes() must find it to stop it. As long as threads have
	 * its priority, BIND must find it as well.
	 */
	calendar_stop_sync(calendar, -ECANCELED);
	calendar_keeper_release(calendar);
	calendar_outside_del(calendar);
	calendar_unload(calendar);
	calendar_put(calendar);
	return 0;
}

static const struct file_operations calendar_ops = {
	.owner = THIS_MODULE,
	.open = calendar_open,
	.release = calendar_release,
	.unlocked_ioctl = calendar_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = calendar_read,
	.poll = calendar_poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "apic_calendar",
	.fops = &calendar_ops,
	.mode = 0600,
};

static int __init calendar_init(void)
{
	int ret;

	calendar_pollers_init();
	calendar_dispatch_init();
	ret = calendar_functions_init();
	if (ret)
		return ret;
	ret = calendar_outside_init();
	if (ret)
		goto functions;
	ret = misc_register(&device);
	if (ret)
		goto outside;
	return 0;
outside:
	calendar_outside_exit();
functions:
	calendar_functions_exit();
	return ret;
}

static void __exit calendar_exit(void)
{
	misc_deregister(&device);
	calendar_outside_exit();
	calendar_functions_exit();
	calendar_pollers_exit();
	/*
	 * A parked thread may still be in break_off() after it has dropped its reference to
	 * this module. It does not sleep after that, and neither does the code that
	 * calendar_pollers_exit() has not waited for.
	 */
	synchronize_rcu_tasks();
}

module_init(calendar_init);
module_exit(calendar_exit);

MODULE_DESCRIPTION("Runs threads and functions from a table of TSC values: /dev/apic_calendar");
MODULE_LICENSE("GPL");
MODULE_VERSION(APIC_TIMER_VERSION);
