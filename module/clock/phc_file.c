// SPDX-License-Identifier: GPL-2.0
/*
 * A PTP hardware clock, read through its file /dev/ptpN.
 *
 * The kernel has no function to read a clock that another module has registered. We do with
 * the file what the system call clock_gettime() does with its descriptor: the inode leads to a
 * struct posix_clock, whose operations are called under its semaphore, unless it is a zombie.
 *
 * References: the open file holds the memory of the clock, its index, and the module of the
 * PTP core. It does not hold the driver. To unregister its clock, the driver takes the
 * semaphore, and waits at most for the reads of one burst, some microseconds. From then on
 * the clock is a zombie, which the next burst finds.
 */
#include <linux/cpu.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/posix-clock.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/timex.h>

#include <linux/apic_timer.h>

#include "bounds.h"
#include "map.h"
#include "phc_file.h"

/*
 * Number of reads in a burst; the narrowest bounds are kept. With up to 300 cycles of jitter
 * each way, a prediction over 100 ms is off by at most 18 cycles with 8 reads, by 9 with 16.
 */
#define READS	16
/* Time after which a driver that has refused to tell the steering frequency is asked again, s. */
#define REFUSED_S	10

static struct posix_clock *clock_of(const struct file *file)
{
	/* Valid as long as the file is open. */
	return container_of(file_inode(file)->i_cdev, struct posix_clock, cdev);
}

/*
 * Users who may write to /dev can put any file there. A character device's parent is the
 * device that it was added with, and only the PTP core has a class of that name.
 */
static bool is_phc(const struct file *file, int index)
{
	const struct inode *inode = file_inode(file);
	const struct kobject *parent;
	const struct device *device;
	char name[16];

	if (!S_ISCHR(inode->i_mode) || !inode->i_cdev)
		return false;
	parent = inode->i_cdev->kobj.parent;
	/* Make sure that the parent is a device: all devices have the same type of object. */
	if (!parent || parent->ktype != get_cpu_device(raw_smp_processor_id())->kobj.ktype)
		return false;
	device = container_of(parent, struct device, kobj);
	snprintf(name, sizeof(name), "ptp%d", index);
	return device->class && !strcmp(device->class->name, "ptp") &&
	       !strcmp(dev_name(device), name) && clock_of(file)->ops.clock_gettime;
}

/**
 * apic_clock_phc_open() - open a clock
 * @index:	N of /dev/ptpN, as the calling process sees it
 *
 * Context: Task. Sleeps.
 * Return: the file, or an error pointer; -EINVAL if there is no such clock.
 */
struct file *apic_clock_phc_open(int index)
{
	struct file *file;
	char path[24];

	if (index < 0)
		return ERR_PTR(-EINVAL);
	snprintf(path, sizeof(path), "/dev/ptp%d", index);
	/* Don't block if the file is a pipe. */
	file = filp_open(path, O_RDONLY | O_NONBLOCK, 0);
	if (IS_ERR(file))
		return PTR_ERR(file) == -ENOENT || PTR_ERR(file) == -ENXIO ||
		       PTR_ERR(file) == -ENODEV ? ERR_PTR(-EINVAL) : file;
	if (is_phc(file, index))
		return file;
	filp_close(file, NULL);
	return ERR_PTR(-EINVAL);
}

/**
 * apic_clock_phc_close() - close a clock
 * @file:	as opened; the clock may be gone
 *
 * Context: Task. Sleeps.
 */
void apic_clock_phc_close(struct file *file)
{
	filp_close(file, NULL);
}

/*
 * Ask for the clock's steering frequency. Without an answer from the driver, assume no steering.
 * A clock that has virtual clocks cannot be steered, so it keeps its frequency. Until 6.16 the PTP
 * core refuses even to tell it then, and logs an error each time.
 */
static void ask_frequency(struct posix_clock *clock, struct apic_clock_phc_known *known)
{
	struct __kernel_timex timex = {};
	int ret;

	if (!clock->ops.clock_adjtime || time_before64(get_jiffies_64(), known->ask_at))
		return;
	ret = clock->ops.clock_adjtime(clock, &timex);
	if (ret == -EBUSY)
		known->ask_at = get_jiffies_64() + REFUSED_S * HZ;
	else
		known->frequency = ret ? 0 : timex.freq;
}

static int read_burst(struct posix_clock *clock, const struct apic_clock_rate *runs, u64 *step,
		      struct apic_clock_reading *reading)
{
	struct timespec64 time;
	unsigned int i;
	u64 before;
	int ret;

	*reading = (struct apic_clock_reading) {};
	for (i = 0; i < READS; i++) {
		before = apic_timer_now();
		ret = clock->ops.clock_gettime(clock, &time);
		if (ret)
			return ret;
		apic_clock_reading_add(reading, runs, before, timespec64_to_ns(&time),
				       apic_timer_now());
		*step = apic_clock_gcd(*step, abs(timespec64_to_ns(&time) - (s64)reading->ref));
	}
	/* A clock that counts in steps of several ns may have been just before the next step. */
	if (*step > 1)
		reading->low -= (u64)(((__int128)(*step - 1) * runs->high) >>
				      APIC_CLOCK_RATE_SHIFT);
	return 0;
}

/**
 * apic_clock_phc_read() - read a clock, bracketed by reads of the TSC
 * @file:	the clock
 * @runs:	bounds of the clock's rate
 * @known:	what earlier reads have shown; updated
 * @reading:	set; the step at which the clock read &apic_clock_reading.ref
 *
 * Context: Task, bound to a CPU. Sleeps.
 * Return: 0; -ENODEV if the clock is gone; -EAGAIN if it was steered meanwhile; or the
 * driver's error.
 */
int apic_clock_phc_read(struct file *file, const struct apic_clock_rate *runs,
			struct apic_clock_phc_known *known, struct apic_clock_reading *reading)
{
	struct posix_clock *clock = clock_of(file);
	int ret = -ENODEV;
	s64 frequency;

	down_read(&clock->rwsem);
	if (!clock->zombie) {
		ask_frequency(clock, known);
		frequency = known->frequency;
		ret = read_burst(clock, runs, &known->step, reading);
		/* Reserve that error for a clock that is gone. */
		if (ret == -ENODEV)
			ret = -EIO;
		if (!ret)
			ask_frequency(clock, known);
		if (!ret && known->frequency != frequency)
			ret = -EAGAIN;
	}
	up_read(&clock->rwsem);
	return ret;
}
