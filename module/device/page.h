/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_DEVICE_PAGE_H
#define _APIC_TIMER_DEVICE_PAGE_H

#include <linux/types.h>
#include <uapi/linux/apic_timer.h>

struct page;

int device_page_init(void);
void device_page_exit(void);
int device_page_open(void);
void device_page_release(void);
void device_page_read(struct apic_timer_page *copy);
u32 device_page_epoch(void);
struct page *device_page_struct(void);

#endif /* _APIC_TIMER_DEVICE_PAGE_H */
