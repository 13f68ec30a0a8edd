/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_SLEEP_H
#define _APIC_TIMER_DEVICE_SLEEP_H

#include <linux/compiler.h>
#include <linux/types.h>

struct device_file;

void device_sleep_init(struct device_file *file);
long device_sleep(struct device_file *file, void __user *argument);
u64 device_sleep_budget_max(void);

#endif /* _APIC_TIMER_DEVICE_SLEEP_H */
