// SPDX-License-Identifier: GPL-2.0
/*
 * apic_fake_phc: PTP hardware clocks whose true values are known. Each is a linear function of the
 * TSC until it is steered or set, and is read over a bus that takes up to @jitter cycles each way.
 *
 * Driven through /sys/kernel/debug/apic_fake_phc/:
 *
 *	command	"steer N PPB": as a user of the clock would, through its operations
 *		"drift N PPB": a drift of the clock itself, which is not announced
 *		"set N NS": forward by NS, or back
 *		"remove N": unregister the clock
 *	clocks	for each "clock N index I ref NS tsc TSC mult M": from TSC on it reads
 *		NS + ((its TSC - TSC) * M >> 40)
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/posix-clock.h>
#include <linux/prandom.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#include <asm/msr.h>
#include <asm/processor.h>

#include <linux/apic_timer.h>

#include "fake_phc.h"

#define SHIFT	40

static unsigned int jitter = 300;
module_param(jitter, uint, 0600);
MODULE_PARM_DESC(jitter, "maximum TSC cycles that a read takes each way");

static unsigned int smi;
module_param(smi, uint, 0600);
MODULE_PARM_DESC(smi, "one way in this many takes up to 100 us longer; 0 for none");

static int ppb[FAKE_PHCS] = { 100000, -70000 };
module_param_array(ppb, int, NULL, 0400);
MODULE_PARM_DESC(ppb, "rate of each clock relative to the TSC, in ppb");

static int offset_ns[FAKE_PHCS] = { 0, 1234567 };
module_param_array(offset_ns, int, NULL, 0400);
MODULE_PARM_DESC(offset_ns, "initial offset of each clock from CLOCK_TAI, in ns");

/**
 * struct fake - a clock
 * @info:	for the PTP core
 * @ptp:	the clock; NULL once it is removed
 * @lock:	protects the members below
 * @ref:	an earlier value of the clock, ns
 * @tsc:	TSC at that value
 * @mult:	ns per cycle times 2^40
 * @own:	drift of the clock itself, 10^-9
 * @steered:	change of the rate by steering, 10^-9
 * @rnd:	random durations of reads
 */
struct fake {
	struct ptp_clock_info info;
	struct ptp_clock *ptp;
	spinlock_t lock;	/* held for the duration of a read */
	s64 ref;
	u64 tsc;
	u64 mult;
	s64 own;
	s64 steered;
	struct rnd_state rnd;
};

static struct fake fakes[FAKE_PHCS];
static struct dentry *directory;
static DEFINE_MUTEX(command_mutex);

static s64 reads(const struct fake *fake, u64 tsc)
{
	return fake->ref + (s64)((__int128)(tsc - fake->tsc) * fake->mult >> SHIFT);
}

/**
 * fake_phc_reads() - read a clock without a bus
 * @n:		number of the clock
 * @tsc:	TSC, not before the last change of the clock's function
 *
 * Not in an interrupt.
 *
 * Return: value of the clock at @tsc, ns.
 */
s64 fake_phc_reads(unsigned int n, u64 tsc)
{
	struct fake *fake = &fakes[n];
	s64 ns;

	spin_lock(&fake->lock);
	ns = reads(fake, tsc);
	spin_unlock(&fake->lock);
	return ns;
}
EXPORT_SYMBOL_GPL(fake_phc_reads);

/**
 * fake_phc_index() - get the number of a clock's /dev/ptp
 * @n:	number of the clock
 *
 * Return: the number; -1 once the clock is removed.
 */
int fake_phc_index(unsigned int n)
{
	return fakes[n].ptp ? ptp_clock_index(fakes[n].ptp) : -1;
}
EXPORT_SYMBOL_GPL(fake_phc_index);

/* Change the clock's function from now on. */
static void change(struct fake *fake, s64 own, s64 steered, s64 step)
{
	u64 now, second = apic_timer_us_to_tsc(USEC_PER_SEC);

	spin_lock(&fake->lock);
	now = rdtsc_ordered();
	fake->ref = reads(fake, now) + step;
	fake->tsc = now;
	fake->own = own;
	fake->steered = steered;
	fake->mult = mul_u64_u64_div_u64(NSEC_PER_SEC + own + steered, 1ULL << SHIFT, second);
	spin_unlock(&fake->lock);
}

static void cross_bus(struct fake *fake)
{
	u64 from = rdtsc_ordered(), cycles = 0;

	if (READ_ONCE(jitter))
		cycles = prandom_u32_state(&fake->rnd) % READ_ONCE(jitter);
	if (READ_ONCE(smi) && !(prandom_u32_state(&fake->rnd) % READ_ONCE(smi)))
		cycles += prandom_u32_state(&fake->rnd) % (u32)apic_timer_us_to_tsc(100);
	while (rdtsc_ordered() - from < cycles)
		cpu_relax();
}

static int fake_gettime(struct ptp_clock_info *info, struct timespec64 *time)
{
	struct fake *fake = container_of(info, struct fake, info);
	s64 ns;

	spin_lock(&fake->lock);
	cross_bus(fake);
	ns = reads(fake, rdtsc_ordered());
	cross_bus(fake);
	spin_unlock(&fake->lock);
	*time = ns_to_timespec64(ns);
	return 0;
}

static int fake_settime(struct ptp_clock_info *info, const struct timespec64 *time)
{
	struct fake *fake = container_of(info, struct fake, info);

	change(fake, fake->own, fake->steered,
	       timespec64_to_ns(time) - reads(fake, rdtsc_ordered()));
	return 0;
}

static int fake_adjtime(struct ptp_clock_info *info, s64 by)
{
	struct fake *fake = container_of(info, struct fake, info);

	change(fake, fake->own, fake->steered, by);
	return 0;
}

static int fake_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	struct fake *fake = container_of(info, struct fake, info);

	change(fake, fake->own, ((s64)scaled_ppm * 1000) >> 16, 0);
	return 0;
}

static int fake_enable(struct ptp_clock_info *info, struct ptp_clock_request *request, int on)
{
	return -EOPNOTSUPP;
}

/* Do what clock_adjtime() does with the file descriptor. */
static int steer(struct fake *fake, s64 by)
{
	struct __kernel_timex timex = {
		.modes = ADJ_FREQUENCY,
		.freq = div_s64(by << 16, 1000),
	};
	struct posix_clock *clock;
	struct file *file;
	char path[24];
	int ret;

	snprintf(path, sizeof(path), "/dev/ptp%d", ptp_clock_index(fake->ptp));
	file = filp_open(path, O_RDWR, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	clock = container_of(file_inode(file)->i_cdev, struct posix_clock, cdev);
	ret = clock->ops.clock_adjtime(clock, &timex);
	filp_close(file, NULL);
	return ret;
}

static void remove(struct fake *fake)
{
	if (fake->ptp)
		ptp_clock_unregister(fake->ptp);
	fake->ptp = NULL;
}

static int perform(const char *verb, struct fake *fake, s64 value)
{
	if (!fake->ptp)
		return -ENODEV;
	if (!strcmp(verb, "steer"))
		return steer(fake, value);
	if (!strcmp(verb, "drift"))
		change(fake, fake->own + value, fake->steered, 0);
	else if (!strcmp(verb, "set"))
		change(fake, fake->own, fake->steered, value);
	else if (!strcmp(verb, "remove"))
		remove(fake);
	else
		return -EINVAL;
	return 0;
}

static ssize_t command_write(struct file *file, const char __user *user, size_t size, loff_t *pos)
{
	char text[64] = {}, verb[16] = {};
	long long value = 0;
	unsigned int n = 0;
	int ret;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, size))
		return -EFAULT;
	if (sscanf(text, "%15s %u %lld", verb, &n, &value) < 2 || n >= FAKE_PHCS)
		return -EINVAL;
	mutex_lock(&command_mutex);
	ret = perform(verb, &fakes[n], value);
	mutex_unlock(&command_mutex);
	return ret ?: size;
}

static const struct file_operations command_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = command_write,
};

static int clocks_show(struct seq_file *file, void *unused)
{
	struct fake *fake;

	mutex_lock(&command_mutex);
	for (fake = fakes; fake < fakes + FAKE_PHCS; fake++)
		seq_printf(file, "clock %zd index %d ref %lld tsc %llu mult %llu\n", fake - fakes,
			   fake_phc_index(fake - fakes), fake->ref, fake->tsc, fake->mult);
	mutex_unlock(&command_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clocks);

static const struct ptp_clock_info fake_info = {
	.owner = THIS_MODULE,
	.name = "apic_fake_phc",
	.max_adj = 1000000,
	.adjfine = fake_adjfine,
	.adjtime = fake_adjtime,
	.gettime64 = fake_gettime,
	.settime64 = fake_settime,
	.enable = fake_enable,
};

static int add(unsigned int n)
{
	struct fake *fake = &fakes[n];
	struct ptp_clock *ptp;

	fake->info = fake_info;
	spin_lock_init(&fake->lock);
	prandom_seed_state(&fake->rnd, n + 1);
	fake->tsc = rdtsc_ordered();
	fake->ref = ktime_get_clocktai() + offset_ns[n];
	change(fake, ppb[n], 0, 0);
	ptp = ptp_clock_register(&fake->info, NULL);
	if (IS_ERR_OR_NULL(ptp))
		return ptp ? PTR_ERR(ptp) : -EOPNOTSUPP;
	fake->ptp = ptp;
	return 0;
}

static void remove_all(void)
{
	unsigned int n;

	for (n = 0; n < FAKE_PHCS; n++)
		remove(&fakes[n]);
}

static int __init fake_phc_init(void)
{
	unsigned int n;
	int ret;

	for (n = 0; n < FAKE_PHCS; n++) {
		ret = add(n);
		if (ret) {
			remove_all();
			return ret;
		}
	}
	directory = debugfs_create_dir("apic_fake_phc", NULL);
	debugfs_create_file("command", 0200, directory, NULL, &command_fops);
	debugfs_create_file("clocks", 0400, directory, NULL, &clocks_fops);
	return 0;
}

static void __exit fake_phc_exit(void)
{
	debugfs_remove(directory);
	remove_all();
}

module_init(fake_phc_init);
module_exit(fake_phc_exit);

MODULE_DESCRIPTION("PTP hardware clocks of known error");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
