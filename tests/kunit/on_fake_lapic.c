// SPDX-License-Identifier: GPL-2.0
/*
 * The files of module/ that need a LAPIC timer and the kernel's clock event
 * devices, compiled unchanged, on fakes of both: UML has neither.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/suspend.h>
#include <asm/apicdef.h>
#include <asm/cpufeature.h>
#include <asm/msr-index.h>

#include "fake_lapic.h"

/* From arch/x86/include/asm/irq_vectors.h and apic.h, which UML replaces. */
#define LOCAL_TIMER_VECTOR	0xec
#define x2apic_enabled()	false

#undef boot_cpu_has
#define boot_cpu_has(feature)	true
#undef boot_cpu_has_bug
#define boot_cpu_has_bug(bug)	false

/* Instead of compat/msr.h, whose instructions only a kernel may use. */
#define _APIC_TIMER_COMPAT_MSR_H
#define apic_timer_native_wrmsrq	fake_wrmsr
#define native_read_msr			fake_rdmsr

#define clockevents_config_and_register	fake_config_and_register
#define clockevents_register_device	fake_register
#define clockevents_unbind_device	fake_unbind_device
#undef cpu_online
#define cpu_online(cpu)			(!fake.offline)
#define pm_suspend_target_state		fake.suspending
#define irq_work_queue			fake_irq_work_queue
#define irq_work_sync			fake_irq_work_sync
#define msleep				fake_msleep

#include "../../module/core/hw/lapic.c"
#include "../../module/core/hw/lapic_device.c"
#include "../../module/core/sources/proxy.c"
