// SPDX-License-Identifier: GPL-2.0
/*
 * Numeric module parameters; values out of range are refused.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <asm/page.h>

#include "lib/param.h"

static int set(const char *text, const struct kernel_param *kp)
{
	const struct apic_timer_param *param = kp->arg;
	unsigned int value;
	int ret = kstrtouint(text, 0, &value);

	if (!ret && (value < param->min || value > param->max))
		ret = -ERANGE;
	if (ret) {
		pr_err("%s=%s: not a number from %u to %u (%s)\n", kp->name, text,
		       param->min, param->max, param->unit);
		return ret;
	}
	*param->value = value;
	return 0;
}

static int get(char *buffer, const struct kernel_param *kp)
{
	const struct apic_timer_param *param = kp->arg;

	return scnprintf(buffer, PAGE_SIZE, "%u\n", *param->value);
}

const struct kernel_param_ops apic_timer_param_ops = {
	.set = set,
	.get = get,
};
