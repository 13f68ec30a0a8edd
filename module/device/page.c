// SPDX-License-Identifier: GPL-2.0
/*
 * The time page: the parameters by which programs convert TSC values without a system call.
 * The device itself converts by the same parameters.
 *
 * The kernel's timekeeping calls a notifier with its multiplier at each update (KVM's clock
 * uses the same notifier), so a conversion is exact to a nanosecond even while NTP steers
 * the clock. The notifier is registered only while the device is open.
 */
#include <linux/apic_struct.h>
#include <linux/apic_timer.h>
#include <linux/clocksource.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pvclock_gtod.h>
#include <linux/spinlock.h>
#include <linux/timekeeper_internal.h>
#include <asm/tsc.h>

#include "epoch.h"
#include "page.h"

static struct apic_timer_page *page;
static DEFINE_RAW_SPINLOCK(page_lock);	/* writers */
static DEFINE_MUTEX(open_lock);
static unsigned int open_count;		/* open_lock */

static unsigned long write_begin(void)
	__acquires(&page_lock)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&page_lock, flags);
	WRITE_ONCE(page->seq, page->seq + 1);
	smp_wmb();	/* make seq odd before any change: device_page_read() */
	return flags;
}

static void write_end(unsigned long flags)
	__releases(&page_lock)
{
	smp_wmb();	/* complete all changes before seq is even: device_page_read() */
	WRITE_ONCE(page->seq, page->seq + 1);
	raw_spin_unlock_irqrestore(&page_lock, flags);
}

/* Called under the timekeeper's lock. */
static int clock_updated(struct notifier_block *block, unsigned long stepped,
			 void *data)
{
	const struct timekeeper *tk = data;
	const struct tk_read_base *mono = &tk->tkr_mono;
	unsigned long flags = write_begin();

	if (mono->clock->vdso_clock_mode == VDSO_CLOCKMODE_TSC)
		page->flags |= APIC_TIMER_TSC_IS_CLOCK;
	else
		page->flags &= ~APIC_TIMER_TSC_IS_CLOCK;
	/* The kernel measures the TSC rate once more after it has booted. */
	page->tsc_khz = tsc_khz;
	page->mult = mono->mult;
	page->shift = mono->shift;
	page->tsc = mono->cycle_last;
	/* @base is the time at which the second began: programs also convert before @tsc. */
	page->mono = ktime_to_ns(mono->base) + (mono->xtime_nsec >> mono->shift);
	page->mono_shifted = mono->xtime_nsec & ((1ULL << mono->shift) - 1);
	page->tai = ktime_to_ns(tk->offs_tai);
	write_end(flags);
	return NOTIFY_OK;
}

static struct notifier_block clock_block = {
	.notifier_call = clock_updated,
};

static int tsc_changed(struct notifier_block *block, unsigned long event, void *data)
{
	const struct apic_timer_notice *notice = data;
	unsigned long flags = write_begin();

	if (event == APIC_TIMER_TSC_EPOCH)
		WRITE_ONCE(page->epoch, apic_struct_epoch(notice->epoch)); /* device_page_epoch() */
	if (event == APIC_TIMER_TSC_UNSTABLE)
		page->flags &= ~APIC_TIMER_TSC_IS_STABLE;
	write_end(flags);
	if (event == APIC_TIMER_TSC_EPOCH)
		device_epoch_began();
	return NOTIFY_OK;
}

static struct notifier_block tsc_block = {
	.notifier_call = tsc_changed,
};

/**
 * device_page_init() - create the page
 *
 * Context: Task.
 * Return: 0, or an error.
 */
int device_page_init(void)
{
	struct apic_timer_info info = {};
	unsigned long flags;
	int ret;

	page = (struct apic_timer_page *)get_zeroed_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	page->version = 1;
	ret = apic_timer_register_notifier(&tsc_block);
	if (ret) {
		free_page((unsigned long)page);
		return ret;
	}
	flags = write_begin();
	/*
	 * The query describes the TSC even if this CPU has no timer. A notice of what it does not
	 * show yet waits for the lock, and comes after it.
	 */
	apic_timer_query(raw_smp_processor_id(), &info);
	page->epoch = apic_struct_epoch(info.tsc_epoch);
	if (info.tsc_kind >= APIC_TIMER_TSC_CONSTANT)
		page->flags |= APIC_TIMER_TSC_IS_CONSTANT;
	if (info.tsc_kind >= APIC_TIMER_TSC_NONSTOP)
		page->flags |= APIC_TIMER_TSC_IS_NONSTOP;
	if (info.tsc_stable)
		page->flags |= APIC_TIMER_TSC_IS_STABLE;
	write_end(flags);
	return 0;
}

/**
 * device_page_exit() - free the page
 *
 * Context: Task. The page is not mapped: a mapping holds its file, and the file the module.
 */
void device_page_exit(void)
{
	apic_timer_unregister_notifier(&tsc_block);
	device_epoch_sync();
	free_page((unsigned long)page);
}

/**
 * device_page_open() - keep the page up to date
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error.
 */
int device_page_open(void)
{
	int ret = 0;

	mutex_lock(&open_lock);
	if (!open_count)
		ret = pvclock_gtod_register_notifier(&clock_block); /* and calls it */
	if (!ret)
		open_count++;
	mutex_unlock(&open_lock);
	return ret;
}

/**
 * device_page_release() - undo device_page_open()
 *
 * Context: Task. Sleeps.
 */
void device_page_release(void)
{
	mutex_lock(&open_lock);
	if (!--open_count)
		pvclock_gtod_unregister_notifier(&clock_block);
	mutex_unlock(&open_lock);
}

/**
 * device_page_read() - copy the page
 * @copy:	destination
 *
 * Context: Any but NMI, and not from a notifier that writes the page.
 */
void device_page_read(struct apic_timer_page *copy)
{
	u32 seq;

	do {
		while ((seq = READ_ONCE(page->seq)) & 1)
			cpu_relax();
		smp_rmb();	/* seq before the rest: write_begin() */
		data_race(*copy = *page);	/* discarded if it raced */
		smp_rmb();	/* the rest before seq: write_end() */
	} while (READ_ONCE(page->seq) != seq);
}

/**
 * device_page_epoch() - return the present epoch, as users number it
 *
 * Context: Any.
 * Return: its number, not 0.
 */
u32 device_page_epoch(void)
{
	return READ_ONCE(page->epoch);
}

/**
 * device_page_struct() - return the page, for mapping
 *
 * Context: Any.
 * Return: its descriptor.
 */
struct page *device_page_struct(void)
{
	return virt_to_page(page);
}
