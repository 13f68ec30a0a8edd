// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_frequency: a frequency for a guest's CPUs, which have no choice of them, so that the
 * kernel has a governor. There is only one: if a CPU's TSC is not known to be constant, the kernel
 * takes another frequency for another TSC rate.
 */
#include <linux/cpufreq.h>
#include <linux/module.h>

static struct cpufreq_frequency_table table[] = {
	{ .frequency = 1000000 },	/* kHz */
	{ .frequency = CPUFREQ_TABLE_END },
};

static int frequency_cpu_init(struct cpufreq_policy *policy)
{
	policy->freq_table = table;
	policy->cpuinfo.transition_latency = 10 * NSEC_PER_USEC;
	policy->cur = table[0].frequency;
	return 0;
}

static int frequency_target_index(struct cpufreq_policy *policy, unsigned int index)
{
	return 0;
}

static struct cpufreq_driver driver = {
	.name = "apic_timer_freq",
	.flags = CPUFREQ_CONST_LOOPS,
	.init = frequency_cpu_init,
	.verify = cpufreq_generic_frequency_table_verify,
	.target_index = frequency_target_index,
};

static int __init frequency_init(void)
{
	return cpufreq_register_driver(&driver);
}

static void __exit frequency_exit(void)
{
	cpufreq_unregister_driver(&driver);
}

module_init(frequency_init);
module_exit(frequency_exit);

MODULE_DESCRIPTION("A CPU frequency driver for guests that have none");
MODULE_LICENSE("GPL");
