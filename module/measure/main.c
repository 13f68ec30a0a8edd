// SPDX-License-Identifier: GPL-2.0
/*
 * apic_measure: instruments for the program apic-timer, behind a device that one process at
 * a time may open. All code that it runs is built in.
 */
#include <linux/apic_timer.h>
#include <linux/apic_version.h>
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/security.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "measure.h"

static_assert(sizeof(struct apic_measure_loop) == 40);
static_assert(sizeof(struct apic_measure_sample) == 8);
static_assert(sizeof(struct apic_measure_counts) == 104);
static_assert(sizeof(struct apic_measure_periodic) == 256);
static_assert(sizeof(struct apic_measure_chain) == 24);
static_assert(sizeof(struct apic_measure_record) == 40);
static_assert(sizeof(struct apic_measure_port) == 16);
static_assert(sizeof(struct apic_measure_cost) == 32);

static atomic_t users;

/* The threads of that process use one instrument at a time. */
static DEFINE_MUTEX(mutex);

union request {
	struct apic_measure_loop loop;
	struct apic_measure_periodic periodic;
	struct apic_measure_chain chain;
	struct apic_measure_port port;
	struct apic_measure_cost cost;
};

static long measure(unsigned int command, union request *request)
{
	switch (command) {
	case APIC_MEASURE_LOOP:
		return measure_loop(&request->loop);
	case APIC_MEASURE_PERIODIC:
		return measure_periodic(&request->periodic);
	case APIC_MEASURE_CHAIN:
		return measure_chain_set(&request->chain);
	case APIC_MEASURE_PORT:
		return measure_port(&request->port);
	case APIC_MEASURE_COST:
		return measure_cost(&request->cost);
	default:
		return -ENOTTY;
	}
}

static long measure_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	size_t size = _IOC_SIZE(command);
	union request request;
	long ret;

	if (size > sizeof(request))
		return -ENOTTY;
	if (copy_from_user(&request, user, size))
		return -EFAULT;
	ret = mutex_lock_interruptible(&mutex);
	if (ret)
		return ret;
	ret = measure(command, &request);
	mutex_unlock(&mutex);
	if (!ret && _IOC_DIR(command) & _IOC_READ && copy_to_user(user, &request, size))
		return -EFAULT;
	return ret;
}

static ssize_t measure_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	ssize_t ret = mutex_lock_interruptible(&mutex);

	if (ret)
		return ret;
	ret = measure_chain_read(to, size);
	mutex_unlock(&mutex);
	return ret;
}

static int measure_open(struct inode *inode, struct file *file)
{
	int ret;

	/* Side channels can be measured with exact moments. */
	ret = security_locked_down(LOCKDOWN_PERF);
	if (ret)
		return ret;
	if (file->f_cred->user_ns != &init_user_ns || !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (atomic_cmpxchg(&users, 0, 1))
		return -EBUSY;
	ret = stream_open(inode, file);
	if (ret)
		atomic_set(&users, 0);
	return ret;
}

static int measure_release(struct inode *inode, struct file *file)
{
	mutex_lock(&mutex);
	measure_chain_clear();
	mutex_unlock(&mutex);
	/* The next user sees our cleanup: pairs with measure_open(). */
	atomic_set_release(&users, 0);
	return 0;
}

static const struct file_operations measure_ops = {
	.owner = THIS_MODULE,
	.open = measure_open,
	.release = measure_release,
	.unlocked_ioctl = measure_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = measure_read,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "apic_measure",
	.fops = &measure_ops,
	.mode = 0600,
};

module_misc_device(device);

MODULE_DESCRIPTION("Instruments of the program apic-timer: accuracy, interrupt chain, port costs");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(APIC_TIMER_VERSION);
