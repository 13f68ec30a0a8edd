// SPDX-License-Identifier: GPL-2.0
/*
 * Accuracy modes: the default, for timers that do not choose one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "policy/mode.h"

static char *mode = "exact";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "accuracy mode of timers that do not choose one: raw, mean or exact");

static const char * const names[] = {
	[APIC_TIMER_RAW] = "raw",
	[APIC_TIMER_MEAN] = "mean",
	[APIC_TIMER_EXACT] = "exact",
};

unsigned int apic_timer_mode_default = APIC_TIMER_EXACT;

/**
 * apic_timer_mode_name() - get the name of a mode
 * @mode:	APIC_TIMER_RAW, _MEAN or _EXACT
 *
 * Return: one word.
 */
const char *apic_timer_mode_name(unsigned int mode)
{
	return names[mode];
}

/**
 * apic_timer_mode_init() - read the module parameter
 *
 * Return: 0; -EINVAL, with a message, for an unknown mode.
 */
int apic_timer_mode_init(void)
{
	unsigned int i;

	for (i = APIC_TIMER_RAW; i <= APIC_TIMER_EXACT; i++) {
		if (!strcmp(mode, names[i])) {
			apic_timer_mode_default = i;
			return 0;
		}
	}
	pr_err("unknown mode \"%s\"\n", mode);
	return -EINVAL;
}
