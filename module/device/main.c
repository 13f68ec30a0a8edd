// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/apic_timer: timers at a TSC value for programs.
 *
 * Access is decided when the node is opened: it belongs to root, and an open file may be
 * passed on. The influence of its holders on others is limited, see limit.c and
 * docs/reference/user-device.md.
 */
#include <linux/apic_struct.h>
#include <linux/apic_timer.h>
#include <linux/apic_version.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "file.h"
#include "later.h"
#include "limit.h"
#include "page.h"
#include "ring.h"
#include "sleep.h"
#include "uring.h"

/* Size of the structure's first version. */
#define QUERY_SIZE_VER0	72

static_assert(sizeof(struct apic_timer_device) == QUERY_SIZE_VER0);
static_assert(offsetof(struct apic_timer_device, ring_offset) == 48);
static_assert(offsetofend(struct apic_timer_device, source) == QUERY_SIZE_VER0);
static_assert(sizeof(struct apic_timer_page) == 64);
static_assert(offsetof(struct apic_timer_page, tsc) == 32);
static_assert(sizeof(struct apic_timer_ring) == 16);
static_assert(sizeof(struct apic_timer_receipt) == 64);
static_assert(offsetof(struct apic_timer_receipt, tid) == 44);

static long query(void __user *argument)
{
	struct apic_timer_info info = {};
	struct apic_timer_device a;
	struct apic_timer_page page;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), QUERY_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	if (a.cpu == APIC_TIMER_CPU_THIS)
		a.cpu = raw_smp_processor_id();
	if (a.cpu >= nr_cpu_ids)
		return -EINVAL;
	a.cpu = array_index_nospec(a.cpu, nr_cpu_ids);
	/* Describe a CPU without a timer as well: hardware is 0. */
	ret = apic_timer_query(a.cpu, &info);
	if (ret && ret != -ENODEV)
		return ret;
	device_page_read(&page);
	a.epoch = page.epoch;
	a.tsc_khz = page.tsc_khz;
	a.tsc_flags = page.flags;
	a.hardware = info.hardware;
	a.modes = info.modes;
	a.rate = device_limit_rate();
	a.burst = device_limit_burst();
	a.pending = device_limit_pending();
	a.budget_max = device_sleep_budget_max();
	a.ring_entries = DEVICE_RING_ENTRIES;
	a.ring_offset = APIC_TIMER_RING_OFFSET;
	memset(a.source, 0, sizeof(a.source));
	if (info.source)
		strscpy(a.source, info.source, sizeof(a.source));
	return apic_struct_out(argument, usize, &a, sizeof(a));
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct device_file *own = file->private_data;

	switch (command) {
	case APIC_TIMER_QUERY:
		return query(user);
	case APIC_TIMER_SLEEP:
		return device_sleep(own, user);
	case APIC_TIMER_ARM:
		return device_timer_arm(&own->timer, user);
	default:
		return -ENOTTY;
	}
}

static ssize_t device_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	struct device_file *own = file->private_data;

	return device_timer_read(&own->timer, to, size, file->f_flags & O_NONBLOCK);
}

static __poll_t device_poll(struct file *file, poll_table *table)
{
	struct device_file *own = file->private_data;

	return device_timer_poll(&own->timer, file, table);
}

static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct device_file *own = file->private_data;
	struct device_ring *ring = NULL;

	if (vma->vm_pgoff) {
		mutex_lock(&own->mutex);
		ring = own->ring;
		if (!ring) {
			ring = device_ring_new();
			/* Initialise before publishing: pairs with device_sleep(). */
			smp_store_release(&own->ring, ring);
		}
		mutex_unlock(&own->mutex);
		if (!ring)
			return -ENOMEM;
	}
	return device_map(ring, vma);
}

static void free_file(struct device_timer *timer)
{
	kfree(container_of(timer, struct device_file, timer));
}

static int device_open(struct inode *inode, struct file *file)
{
	struct device_file *own;
	int ret;

	/* Side channels can be measured with exact moments. */
	ret = security_locked_down(LOCKDOWN_PERF);
	if (ret)
		return ret;
	if (file->f_cred->user_ns != &init_user_ns)
		return -EPERM;

	own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);
	if (!own)
		return -ENOMEM;
	ret = -ENOMEM;
	own->user = device_user_get(file->f_cred->uid);
	if (!own->user)
		goto free;
	ret = device_page_open();
	if (ret)
		goto put;
	mutex_init(&own->mutex);
	device_sleep_init(own);
	device_timer_init(&own->timer, own->user, free_file);
	file->private_data = own;
	return stream_open(inode, file);
put:
	device_user_put(own->user);
free:
	kfree(own);
	return ret;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct device_file *own = file->private_data;

	device_timer_exit(&own->timer);
	device_ring_free(own->ring);
	device_page_release();
	device_user_put(own->user);
	device_timer_put(&own->timer);
	return 0;
}

static const struct file_operations device_ops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = device_read,
	.poll = device_poll,
	.mmap = device_mmap,
	.uring_cmd = device_uring,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "apic_timer",
	.fops = &device_ops,
	.mode = 0600,
};

static int __init device_init(void)
{
	int ret;

	ret = device_later_init();
	if (ret)
		return ret;
	ret = device_page_init();
	if (ret)
		goto later;
	ret = misc_register(&device);
	if (ret)
		goto page;
	return 0;
page:
	device_page_exit();
later:
	device_later_exit();
	return ret;
}

static void __exit device_exit(void)
{
	misc_deregister(&device);
	device_later_exit();
	device_page_exit();
	device_user_exit();
}

module_init(device_init);
module_exit(device_exit);

MODULE_DESCRIPTION("Timers at a chosen TSC value for user programs: /dev/apic_timer");
MODULE_LICENSE("GPL");
MODULE_VERSION(APIC_TIMER_VERSION);
