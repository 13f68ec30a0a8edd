// SPDX-License-Identifier: GPL-2.0
/*
 * LAPIC timers that the kernel does not use: booted with nolapic_timer, it has
 * neither calibrated nor set them up.
 */
#include <linux/bits.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <asm/barrier.h>
#include <asm/cpufeature.h>
#include <asm/irq_vectors.h>

#include "hw/lapic.h"
#include "hw/lapic_exclusive.h"
#include "tsc/tsc.h"

#define DIVIDE_BY_1		0xb
/* The counter wraps after 0.4 s at 10 GHz. */
#define CALIBRATION_MS		100
#define READS			8

static bool has_tsc_deadline(void)
{
	return boot_cpu_has(X86_FEATURE_TSC_DEADLINE_TIMER);
}

static void setup(u32 masked)
{
	apic->write(APIC_LVTT, LOCAL_TIMER_VECTOR | masked |
			       (has_tsc_deadline() ? APIC_TIMER_LVTT_TSC_DEADLINE : 0));
	/* Order the write to memory before that to the MSR; SDM vol. 3, 11.5.4.1. */
	mb();
}

/* Read counter and TSC together: take the fastest of a few attempts. */
static void read_both(u64 *tsc, u32 *counter)
{
	u64 began, took, least = U64_MAX;
	unsigned int i;
	u32 count;

	for (i = 0; i < READS; i++) {
		began = apic_timer_tsc_now();
		count = apic->read(APIC_TMCCT);
		took = apic_timer_tsc_now() - began;
		if (took < least) {
			least = took;
			*tsc = began + took / 2;
			*counter = count;
		}
	}
}

/* Measure the rate of the undivided counter in Hz, by a TSC of @khz; 0 if it does not count. */
static u64 calibrate(u32 khz)
{
	u64 from_tsc, to_tsc;
	u32 from, to;

	local_irq_disable();
	setup(APIC_LVT_MASKED);
	apic->write(APIC_TDCR, DIVIDE_BY_1);
	apic->write(APIC_TMICT, U32_MAX);
	read_both(&from_tsc, &from);
	local_irq_enable();

	msleep(CALIBRATION_MS);

	local_irq_disable();
	read_both(&to_tsc, &to);
	apic->write(APIC_TMICT, 0);
	local_irq_enable();

	return mul_u64_u64_div_u64(from - to, (u64)khz * 1000,
				   to_tsc - from_tsc);
}

/**
 * apic_timer_lapic_exclusive_setup() - set up the hardware of this CPU
 * @lapic:	of this CPU
 *
 * Context: Interrupts off.
 */
void apic_timer_lapic_exclusive_setup(struct apic_timer_lapic *lapic)
{
	setup(0);
	apic_timer_lapic_ready(lapic);
}

/**
 * apic_timer_lapic_exclusive_take() - calibrate and set up the LAPIC timer of this CPU
 * @lapic:	filled in
 *
 * Context: Task context, bound to the CPU.
 * Return: 0; -ERANGE, with a message, if its rate is implausible.
 */
int apic_timer_lapic_exclusive_take(struct apic_timer_lapic *lapic)
{
	/* One clock drives all of them; measured with a TSC of @khz. */
	static u64 ticks_per_sec;
	static u32 khz;
	int ret;

	if (!has_tsc_deadline() && !ticks_per_sec) {
		khz = apic_timer_tsc_khz();
		ticks_per_sec = calibrate(khz);
	}
	ret = apic_timer_lapic_init(lapic, has_tsc_deadline(),
				    mul_u64_u32_div(ticks_per_sec,
						    apic_timer_tsc_khz(),
						    khz ?: 1));
	if (ret)
		return ret;

	local_irq_disable();
	apic_timer_lapic_exclusive_setup(lapic);
	local_irq_enable();
	return 0;
}

/**
 * apic_timer_lapic_exclusive_release() - stop and mask the LAPIC timer again
 *
 * Context: Interrupts off.
 */
void apic_timer_lapic_exclusive_release(void)
{
	lockdep_assert_irqs_disabled();
	if (has_tsc_deadline())
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE, 0);
	else
		apic->write(APIC_TMICT, 0);
	setup(APIC_LVT_MASKED);
}
