// SPDX-License-Identifier: GPL-2.0
/*
 * Program the LAPIC timer: TSC-deadline or one-shot, xAPIC or x2APIC.
 *
 * Where apic_write() is a static call, modules cannot link it. The APIC driver's
 * method is called instead, which is the same function: MMIO for xAPIC and MSR for
 * x2APIC.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/clockchips.h>
#include <linux/errno.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/cpufeature.h>
#include <asm/irq_vectors.h>

#include "hw/lapic.h"
#include "tsc/tsc.h"

/* Linux sets the one-shot counter's divider to 16. */
#define LINUX_DIVIDER	16

/**
 * apic_timer_lapic_probe() - check whether this machine's LAPIC timers are usable
 * @source:	name of the calling source, for the log
 *
 * Return: 0; -ENODEV with the reason in the log.
 */
int apic_timer_lapic_probe(const char *source)
{
	const char *reason;

	if (!boot_cpu_has(X86_FEATURE_APIC))
		reason = "no local APIC";
	else if (boot_cpu_has_bug(X86_BUG_AMD_APIC_C1E))
		reason = "this CPU's LAPIC timer stops in C1E";
	else if (!boot_cpu_has(X86_FEATURE_ARAT))
		reason = "this CPU's LAPIC timer stops in deep idle states (no ARAT)";
	else
		return 0;
	pr_info("%s: %s\n", source, reason);
	return -ENODEV;
}

/**
 * apic_timer_lapic_init() - describe a CPU's LAPIC timer
 * @lapic:	filled in
 * @tsc_deadline: it is programmed through the TSC-deadline MSR
 * @ticks_per_sec: rate of its undivided counter otherwise, Hz
 *
 * Return: 0; -ERANGE, with a message, if that rate is implausible.
 */
int apic_timer_lapic_init(struct apic_timer_lapic *lapic, bool tsc_deadline,
			  u64 ticks_per_sec)
{
	int ret;

	lapic->divider = -1;
	lapic->near = 0;
	lapic->tsc_deadline = tsc_deadline;
	lapic->ticks_per_sec = ticks_per_sec;
	if (tsc_deadline)
		return 0;

	ret = apic_timer_counter_init(&lapic->counter, ticks_per_sec,
				      (u64)apic_timer_tsc_khz() * 1000);
	if (ret)
		pr_err("implausible LAPIC timer rate of %llu Hz (TSC %u kHz)\n",
		       ticks_per_sec, apic_timer_tsc_khz());
	return ret;
}

/**
 * apic_timer_lapic_refine() - use the TSC rate that the kernel has refined
 * @lapic:	of this CPU, whose counter keeps its rate in Hz
 *
 * The hardware stays programmed as it is.
 *
 * Context: Interrupts off.
 */
void apic_timer_lapic_refine(struct apic_timer_lapic *lapic)
{
	lockdep_assert_irqs_disabled();
	if (lapic->tsc_deadline ||
	    apic_timer_counter_init(&lapic->counter, lapic->ticks_per_sec,
				    (u64)apic_timer_tsc_khz() * 1000))
		return;
	if (lapic->near)
		lapic->near = lapic->counter.near;
}

/**
 * apic_timer_lapic_init_device() - describe a LAPIC timer as the kernel programs it
 * @lapic:	filled in
 * @device:	the kernel's clock event device for it
 *
 * Return: as apic_timer_lapic_init().
 */
int apic_timer_lapic_init_device(struct apic_timer_lapic *lapic,
				 const struct clock_event_device *device)
{
	/* mult / 2^shift: divided ticks per nanosecond */
	return apic_timer_lapic_init(lapic,
				     !strcmp(device->name, "lapic-deadline"),
				     mul_u64_u32_shr((u64)NSEC_PER_SEC * LINUX_DIVIDER,
						     device->mult, device->shift));
}

/**
 * apic_timer_lapic_max_delta() - get the maximum number of TSC cycles that can
 * be programmed at once
 * @lapic:	of any CPU: all are the same, because the kernel has one
 *		calibration for all
 *
 * Return: TSC cycles.
 */
u64 apic_timer_lapic_max_delta(const struct apic_timer_lapic *lapic)
{
	return lapic->tsc_deadline ? U64_MAX : lapic->counter.max_delta;
}

/**
 * apic_timer_lapic_describe() - fill in hardware and x2apic of a CPU's info
 * @info:	filled in
 * @lapic:	of the CPU
 */
void apic_timer_lapic_describe(struct apic_timer_info *info,
			       const struct apic_timer_lapic *lapic)
{
	info->hardware = lapic->tsc_deadline ? APIC_TIMER_HW_TSC_DEADLINE :
					       APIC_TIMER_HW_ONESHOT;
	info->x2apic = x2apic_enabled();
}

/* SDM vol. 3, 11.5.4: bits 0, 1 and 3; all ones is a divider of 1. */
static u32 divider_bits(unsigned int log2)
{
	u32 code = (log2 - 1) & 7;

	return (code & 3) | (code & 4) << 1;
}

#define ROUNDS	8

/**
 * apic_timer_lapic_ready() - prepare for use after the hardware has been set up
 * @lapic:	of this CPU
 *
 * Measure how long programming takes. The timer is left programmed for a distant
 * moment.
 *
 * Context: Interrupts off; the timer's vector is unmasked and in the mode that
 * the kernel uses.
 */
void apic_timer_lapic_ready(struct apic_timer_lapic *lapic)
{
	u64 least = U64_MAX, began;
	unsigned int i;

	lapic->divider = -1;
	lapic->cost = 0;
	lapic->near = 0;
	if (lapic->tsc_deadline) {
		lapic->near = U64_MAX;
		return;
	}

	for (i = 0; i < ROUNDS; i++) {
		began = apic_timer_tsc_now();
		apic_timer_lapic_program(lapic, began + U32_MAX / 2);
		least = min(least, apic_timer_tsc_now() - began);
	}
	lapic->cost = least;
}

/**
 * apic_timer_lapic_program() - program the LAPIC timer
 * @lapic:	of this CPU
 * @fire:	when it has to fire, absolute TSC, not 0; at once for a moment
 *		that has passed
 *
 * Context: Interrupts off; the timer's vector is unmasked and in the mode that
 * the kernel uses.
 * Return: the value programmed: the TSC deadline, or the count in bits 0 to 31 and
 * log2 of the divider in bits 32 and up.
 */
u64 apic_timer_lapic_program(struct apic_timer_lapic *lapic, u64 fire)
{
	struct apic_timer_counter_value count;
	u64 now;

	if (lapic->tsc_deadline) {
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE, fire);
		return fire;
	}

	now = apic_timer_tsc_now() + lapic->cost;
	count = apic_timer_counter_convert(&lapic->counter,
					   fire > now ? fire - now : 0);
	if (count.divider != lapic->divider) {
		apic->write(APIC_TDCR, divider_bits(count.divider));
		lapic->divider = count.divider;
		lapic->near = count.divider ? 0 : lapic->counter.near;
	}
	apic->write(APIC_TMICT, count.count);
	return (u64)count.divider << 32 | count.count;
}

/**
 * apic_timer_lapic_stop() - disarm the LAPIC timer
 * @lapic:	of this CPU
 *
 * As the kernel does in lapic_timer_shutdown(), except that the vector stays unmasked: some
 * Intel CPUs do not power down while a deadline is armed, even one that is never reached.
 *
 * Context: As apic_timer_lapic_program().
 */
void apic_timer_lapic_stop(const struct apic_timer_lapic *lapic)
{
	if (lapic->tsc_deadline)
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE, 0);
	else
		apic->write(APIC_TMICT, 0);
}

/* Check whether an interrupt of the timer is pending in the LAPIC. */
static bool requested(void)
{
	return apic->read(APIC_IRR + LOCAL_TIMER_VECTOR / 32 * 0x10) &
	       BIT(LOCAL_TIMER_VECTOR % 32);
}

/**
 * apic_timer_lapic_alive() - check whether the timer will still fire
 * @lapic:	of this CPU, programmed before
 * @fired:	it may have fired already
 *
 * Context: Interrupts off; the timer's interrupt has not been taken since it was
 * programmed.
 * Return: false if other code has masked or stopped it.
 */
bool apic_timer_lapic_alive(const struct apic_timer_lapic *lapic, bool fired)
{
	u32 lvtt = apic->read(APIC_LVTT);
	u32 mode = lapic->tsc_deadline ? APIC_TIMER_LVTT_TSC_DEADLINE : 0;

	if (lvtt & APIC_LVT_MASKED ||
	    (lvtt & APIC_VECTOR_MASK) != LOCAL_TIMER_VECTOR ||
	    (lvtt & APIC_TIMER_LVTT_MODE) != mode)
		return false;
	/* Deadline and count are 0 once it has fired. */
	if (fired || requested())
		return true;
	return lapic->tsc_deadline ? native_read_msr(MSR_IA32_TSC_DEADLINE) :
				     apic->read(APIC_TMCCT);
}
