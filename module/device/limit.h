/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_LIMIT_H
#define _APIC_TIMER_DEVICE_LIMIT_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct device_user;

/* In place of the CPU that has paid for an interrupt: the interrupt has happened. */
#define DEVICE_SPENT	(-1)

struct device_user *device_user_get(kuid_t uid);
void device_user_put(struct device_user *user);
void device_user_exit(void);
int device_user_pend(struct device_user *user);
void device_user_unpend(struct device_user *user);
int device_user_take(struct device_user *user);
void device_user_return(struct device_user *user, int cpu);
u64 device_user_reserve(struct device_user *user);

/* Limits in force now; root may change them. */
unsigned int device_limit_rate(void);
unsigned int device_limit_burst(void);
unsigned int device_limit_pending(void);

#endif /* _APIC_TIMER_DEVICE_LIMIT_H */
