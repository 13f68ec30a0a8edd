// SPDX-License-Identifier: GPL-2.0
/*
 * PTP hardware clocks as clocks of timers.
 *
 * Such a clock is on the other side of a bus: reading it takes microseconds, may sleep, and
 * is not possible where moments are converted. Therefore a work item reads each attached
 * clock every 50 ms, or more often while its line is new, and publishes a line (see
 * phc_map.h), which any context can use. Attaching a clock yields a number that differs from
 * those of the kernel's clocks and of all clocks attached earlier.
 *
 * The line holds until the clock is steered or set. The steering frequency is read along with
 * the clock. A clock that was set is recognised because it is off its line; pending timers
 * are then armed anew.
 *
 * The clock may vanish at any time, together with its driver. Its timers are then cancelled,
 * and their owners notified. The number stays in use until they detach it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "phc.h"
#include "phc_file.h"
#include "phc_line.h"
#include "phc_map.h"
#include "phc_timers.h"

/* Time between bursts of reads, ms; shorter for a new line, so that its rate is known soon. */
#define PERIOD_MS	50
#define FIRST_MS	10
#define FIRST		4

/**
 * struct attached - a user that has attached a clock
 * @node:	entry in the clock's list
 * @owner:	the module, NULL for the kernel; only compared
 */
struct attached {
	struct list_head node;
	const struct module *owner;
};

/**
 * struct phc - a slot for a clock
 * @users:	users that have attached it; under phc_mutex
 * @index:	N of /dev/ptpN
 * @file:	the clock; NULL once the work has found it gone
 * @work:	reads the clock
 * @ready:	completed when the clock's rate is known, or it is gone
 * @map:	estimate of the clock; only for the work, like the next two
 * @known:	see apic_clock_phc_read()
 * @asleep:	total time that the machine had been suspended at the last reading, ns
 * @bursts:	number of bursts of reads
 * @failed:	number of bursts that gave no reading
 * @set:	number of times that the clock was found to have been set
 */
struct phc {
	struct list_head users;
	int index;
	struct file *file;
	struct delayed_work work;
	struct completion ready;
	struct apic_clock_phc_map *map;
	struct apic_clock_phc_known known;
	ktime_t asleep;
	u64 bursts;
	u64 failed;
	u64 set;
};

static struct phc phcs[APIC_CLOCK_PHCS];
static unsigned int given;
static DEFINE_MUTEX(phc_mutex);		/* attach and detach */

/* Called by the work, or while it does not run. */
static void publish(const struct phc *phc, const struct apic_clock_published *published)
{
	apic_clock_phc_publish(phc - phcs, published);
}

static struct apic_clock_published published_of(const struct phc *phc)
{
	return apic_clock_phc_published(phc - phcs);
}

/*
 * Always read on the same CPU, because TSCs may differ: the one that others are compared with.
 * The workqueue is freezable: during a suspend, devices may be off and must not be touched.
 */
static void read_in(struct phc *phc, unsigned int ms)
{
	cpus_read_lock();
	queue_delayed_work_on(cpumask_first(cpu_online_mask), system_freezable_wq, &phc->work,
			      msecs_to_jiffies(ms));
	cpus_read_unlock();
}

/* From here on no timer can be armed for the clock; cancel the pending ones. */
static unsigned int end(struct phc *phc)
{
	struct apic_clock_published published = published_of(phc);

	published.ret = -ENODEV;
	publish(phc, &published);
	return apic_clock_timers_lose(published.clock);
}

/* Use a reading. Return: true if pending timers have to be armed anew. */
static bool use(struct phc *phc, const struct apic_clock_reading *reading)
{
	ktime_t asleep = ktime_mono_to_any(0, TK_OFFS_BOOT);
	struct apic_clock_published published = published_of(phc);
	bool set, slept = asleep != phc->asleep, again = published.line.rate;

	phc->asleep = asleep;
	if (phc->known.frequency != phc->map->frequency)
		apic_clock_phc_map_steer(phc->map, phc->known.frequency);
	set = apic_clock_phc_map_use(phc->map, reading);
	if (set && published.line.rate)
		phc->set++;
	published.line = phc->map->line;
	publish(phc, &published);
	/* A clock may be steered before each reading: then the line always has a single one. */
	if (again && !set && phc->map->count)
		complete_all(&phc->ready);
	/* After a suspend, the hrtimers are late by its length. */
	return set || slept;
}

static void read_work(struct work_struct *work)
{
	struct phc *phc = container_of(to_delayed_work(work), struct phc, work);
	struct apic_clock_rate runs = apic_clock_phc_map_runs(phc->map);
	struct apic_clock_reading reading;
	unsigned int lost;
	int ret;

	phc->bursts++;
	ret = apic_clock_phc_read(phc->file, &runs, &phc->known, &reading);
	if (ret == -ENODEV) {
		lost = end(phc);
		pr_warn("ptp%d is gone: cancelled its %u timer(s)\n", phc->index, lost);
		/* Close the file: the index is free for another clock. */
		apic_clock_phc_close(phc->file);
		phc->file = NULL;
		complete_all(&phc->ready);
		return;
	}
	if (ret)
		phc->failed++;
	else if (use(phc, &reading))
		apic_clock_timers_renew(published_of(phc).clock);
	read_in(phc, phc->map->count < FIRST ? FIRST_MS : PERIOD_MS);
}

static struct phc *find(int index)
{
	struct phc *phc;

	for (phc = phcs; phc < phcs + APIC_CLOCK_PHCS; phc++)
		if (!list_empty(&phc->users) && phc->index == index && !published_of(phc).ret)
			return phc;
	return NULL;
}

static struct phc *find_free(void)
{
	struct phc *phc;

	for (phc = phcs; phc < phcs + APIC_CLOCK_PHCS; phc++)
		if (list_empty(&phc->users))
			return phc;
	return NULL;
}

static struct phc *start(int index, struct file *file)
{
	struct phc *phc = find_free();
	struct apic_clock_published published = {};

	if (!phc)
		return ERR_PTR(-ENOSPC);
	phc->map = kmalloc(sizeof(*phc->map), GFP_KERNEL);
	if (!phc->map)
		return ERR_PTR(-ENOMEM);
	phc->file = file;
	phc->index = index;
	phc->known = (struct apic_clock_phc_known) {};
	phc->bursts = 0;
	phc->failed = 0;
	phc->set = 0;
	phc->asleep = ktime_mono_to_any(0, TK_OFFS_BOOT);
	apic_clock_phc_map_init(phc->map, apic_timer_ns_to_tsc(1ULL << APIC_CLOCK_RATE_SHIFT));
	reinit_completion(&phc->ready);
	given++;
	published.clock = apic_clock_phc_number(phc - phcs, given);
	publish(phc, &published);
	return phc;
}

/* Stop a clock: its last user has left, or is about to. */
static void stop(struct phc *phc)
{
	const struct apic_clock_published none = {};
	unsigned int lost;

	cancel_delayed_work_sync(&phc->work);
	lost = end(phc);
	if (lost)
		pr_warn("ptp%d is detached: cancelled its %u timer(s)\n", phc->index, lost);
	if (phc->file)
		apic_clock_phc_close(phc->file);
	phc->file = NULL;
	kfree(phc->map);
	phc->map = NULL;
	publish(phc, &none);
}

/* Wait for two bursts, until the clock's rate is known. Return: 0, or an error. */
static int wait_for_rate(struct phc *phc)
{
	read_in(phc, 0);
	/* No driver takes that long for anything, unless it always fails. */
	if (!wait_for_completion_timeout(&phc->ready, HZ))
		return -EIO;
	return published_of(phc).ret;
}

/* Take over the file. Return: the clock's number, or an error. */
static int enter(int index, struct file *file, struct attached *user)
{
	struct phc *phc = find(index);
	int ret;

	lockdep_assert_held(&phc_mutex);
	if (phc) {
		apic_clock_phc_close(file);
	} else {
		phc = start(index, file);
		if (IS_ERR(phc)) {
			apic_clock_phc_close(file);
			return PTR_ERR(phc);
		}
		ret = wait_for_rate(phc);
		if (ret) {
			stop(phc);
			return ret;
		}
	}
	list_add(&user->node, &phc->users);
	return published_of(phc).clock;
}

/**
 * __apic_clock_phc_attach() - use a PTP hardware clock for timers
 * @index:	N of /dev/ptpN, as the calling process sees it
 * @owner:	THIS_MODULE, which apic_clock_phc_attach() passes
 *
 * From then on the clock is read every 50 ms; four times, 10 ms apart, after each change of its
 * steering. A clock that is already attached only gets another user.
 *
 * Context: Task. Sleeps, for some 20 ms.
 * Return: the clock's number for add_apic_timer_at() and the like, which is positive; or
 * * %-EINVAL - there is no such clock, or the kernel has none
 * * %-ENOSPC - 16 are attached
 * * %-EIO - it cannot be read
 * * %-ENOMEM - no memory
 * * otherwise - as open() of its file
 */
int __apic_clock_phc_attach(int index, const struct module *owner)
{
	/* Not under the mutex: this may wait for modprobe, which may unload a module. */
	struct file *file = apic_clock_phc_open(index);
	struct attached *user;
	int ret;

	if (IS_ERR(file))
		return PTR_ERR(file);
	user = kmalloc(sizeof(*user), GFP_KERNEL);
	if (!user) {
		apic_clock_phc_close(file);
		return -ENOMEM;
	}
	user->owner = owner;
	mutex_lock(&phc_mutex);
	ret = enter(index, file, user);
	mutex_unlock(&phc_mutex);
	if (ret < 0)
		kfree(user);
	return ret == -ENODEV ? -EINVAL : ret;
}
EXPORT_SYMBOL_GPL(__apic_clock_phc_attach);

static unsigned int users_of(const struct phc *phc)
{
	const struct attached *user;
	unsigned int count = 0;

	list_for_each_entry(user, &phc->users, node)
		count++;
	return count;
}

static void leave(struct phc *phc, struct attached *user)
{
	list_del(&user->node);
	kfree(user);
	if (list_empty(&phc->users))
		stop(phc);
}

/* The module's entry among the users, or NULL. */
static struct attached *user_of(struct phc *phc, const struct module *owner)
{
	struct attached *user, *any = NULL;

	list_for_each_entry(user, &phc->users, node) {
		any = user;
		if (user->owner == owner)
			break;
	}
	return any;
}

/**
 * __apic_clock_phc_detach() - undo __apic_clock_phc_attach()
 * @clock:	the number that it returned
 * @owner:	THIS_MODULE, which apic_clock_phc_detach() passes
 *
 * When the last user detaches the clock, its pending timers are cancelled and their owners
 * notified, as if the clock had vanished.
 *
 * Context: Task. Sleeps.
 * Return: 0; -EINVAL if @clock is not attached.
 */
int __apic_clock_phc_detach(clockid_t clock, const struct module *owner)
{
	struct phc *phc = &phcs[apic_clock_phc_slot(clock)];
	int ret = -EINVAL;

	mutex_lock(&phc_mutex);
	if (apic_clock_is_phc(clock) && published_of(phc).clock == clock) {
		leave(phc, user_of(phc, owner));
		ret = 0;
	}
	mutex_unlock(&phc_mutex);
	return ret;
}
EXPORT_SYMBOL_GPL(__apic_clock_phc_detach);

/* Detach the clocks of a module that is being unloaded; its timers have been cancelled. */
static int detach_left(struct notifier_block *block, unsigned long state, void *data)
{
	const struct module *module = data;
	struct attached *user, *next;
	struct phc *phc;

	if (state != MODULE_STATE_GOING)
		return NOTIFY_OK;
	mutex_lock(&phc_mutex);
	for (phc = phcs; phc < phcs + APIC_CLOCK_PHCS; phc++)
		list_for_each_entry_safe(user, next, &phc->users, node)
			if (user->owner == module) {
				pr_warn("module %s left ptp%d attached: detached\n",
					module->name, phc->index);
				leave(phc, user);
			}
	mutex_unlock(&phc_mutex);
	return NOTIFY_OK;
}

/* Runs after those of unload.c. */
static struct notifier_block module_block = {
	.notifier_call = detach_left,
	.priority = -2,
};

/**
 * apic_clock_phc_show() - show the attached clocks
 * @file:	debugfs file
 *
 * Context: Task. Sleeps.
 */
void apic_clock_phc_show(struct seq_file *file)
{
	u64 now = apic_timer_now(), error;
	struct apic_clock_published published;
	struct phc *phc;
	ktime_t time;

	mutex_lock(&phc_mutex);
	for (phc = phcs; phc < phcs + APIC_CLOCK_PHCS; phc++) {
		if (list_empty(&phc->users))
			continue;
		published = published_of(phc);
		time = apic_clock_phc_line_read(&published.line, now);
		apic_clock_phc_line_tsc(&published.line, time, &error);
		seq_printf(file, "ptp%d: clock %d, %lld ns at TSC %llu, error %llu cycles, steered by %lld ppb, in steps of %llu ns; users %u, bursts %llu, failed %llu, set %llu%s\n",
			   phc->index, published.clock, time, now, error,
			   (s64)READ_ONCE(phc->map->frequency) * 1000 >> 16,
			   max_t(u64, READ_ONCE(phc->known.step), READ_ONCE(phc->map->step)),
			   users_of(phc),
			   READ_ONCE(phc->bursts), READ_ONCE(phc->failed), READ_ONCE(phc->set),
			   published.ret ? ", gone" : "");
	}
	mutex_unlock(&phc_mutex);
}

/**
 * apic_clock_phc_init() - initialise, before the first clock is attached
 *
 * Context: Task. Sleeps.
 * Return: 0 or an error.
 */
int apic_clock_phc_init(void)
{
	struct phc *phc;

	apic_clock_phc_line_init();
	for (phc = phcs; phc < phcs + APIC_CLOCK_PHCS; phc++) {
		INIT_LIST_HEAD(&phc->users);
		INIT_DELAYED_WORK(&phc->work, read_work);
		init_completion(&phc->ready);
	}
	return register_module_notifier(&module_block);
}

/**
 * apic_clock_phc_exit() - detach all clocks
 *
 * Context: Task. Sleeps. The module has no users any more.
 */
void apic_clock_phc_exit(void)
{
	struct attached *user, *next;
	struct phc *phc;

	unregister_module_notifier(&module_block);
	mutex_lock(&phc_mutex);
	for (phc = phcs; phc < phcs + APIC_CLOCK_PHCS; phc++)
		list_for_each_entry_safe(user, next, &phc->users, node)
			leave(phc, user);
	mutex_unlock(&phc_mutex);
}
