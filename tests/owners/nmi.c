// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_nmi: sends NMIs to all CPUs, and makes timer calls in them, which must be rejected.
 */
#include <linux/apic_timer.h>
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/module.h>

#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>

static unsigned int times = 1000;
module_param(times, uint, 0444);
MODULE_PARM_DESC(times, "NMIs sent to each CPU, by loading");

static atomic_t handled, wrong;

static int handled_get(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&handled));
}

static const struct kernel_param_ops handled_ops = { .get = handled_get };
module_param_cb(handled, &handled_ops, NULL, 0444);
MODULE_PARM_DESC(handled, "NMIs that came");

static void no_handler(unsigned long long now, unsigned long data)
{
	atomic_inc(&wrong);
}

static DEFINE_APIC_TIMER(timer, no_handler, 0);

static int nmi(unsigned int type, struct pt_regs *regs)
{
	if (add_apic_timer(&timer) != -EPERM ||
	    add_apic_timer_on(&timer, 0) != -EPERM ||
	    mod_apic_timer(&timer, 0) != -EPERM ||
	    del_apic_timer(&timer) != -EPERM ||
	    del_apic_timer_sync(&timer) != -EPERM)
		atomic_inc(&wrong);
	atomic_inc(&handled);
	return NMI_HANDLED;
}

static int __init nmi_init(void)
{
	unsigned int i;
	int cpu, ret;

	ret = register_nmi_handler(NMI_LOCAL, nmi, 0, "apic_timer_nmi");
	if (ret)
		return ret;
	cpus_read_lock();
	for (i = 0; i < times; i++) {
		for_each_online_cpu(cpu)
			apic->send_IPI(cpu, NMI_VECTOR);
		usleep_range(20, 40);
	}
	cpus_read_unlock();
	/* An NMI still in flight would have no handler. */
	msleep(100);
	unregister_nmi_handler(NMI_LOCAL, "apic_timer_nmi");
	return atomic_read(&wrong) ? -EBADE : 0;
}

static void __exit nmi_exit(void)
{
}

module_init(nmi_init);
module_exit(nmi_exit);

MODULE_DESCRIPTION("Sends NMIs");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
