// SPDX-License-Identifier: GPL-2.0
/*
 * source_hook.c and lapic_free.c, unchanged, on the fakes: as in
 * on_fake_lapic.c, which has lapic.c and lapic_device.c for both.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/delay.h>
#include <asm/apicdef.h>
#include <asm/cpufeature.h>
#include <asm/msr-index.h>

#include "fake_lapic.h"

#define LOCAL_TIMER_VECTOR	0xec

#undef boot_cpu_has
#define boot_cpu_has(feature)	(!fake.hz)

/* Instead of compat/msr.h, whose instructions only a kernel may use. */
#define _APIC_TIMER_COMPAT_MSR_H
#define apic_timer_native_wrmsrq	fake_wrmsr

#define msleep				fake_msleep

#include "../../module/core/sources/hook.c"

#define set_up				free_set_up
#include "../../module/core/hw/lapic_exclusive.c"
