// SPDX-License-Identifier: GPL-2.0
/*
 * Programming the LAPIC timer: TSC-deadline or one-shot, xAPIC or x2APIC.
 *
 * apic_write() can't be linked by a module where it is a static call, so the
 * driver's method is called: it is the same function, MMIO for xAPIC and MSR
 * for x2APIC.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/time64.h>

#include "lapic.h"
#include "tsc.h"

/* Linux runs the one-shot counter at a divider of 16. */
#define LINUX_DIVIDER	16

/**
 * apic_timer_lapic_init() - learn how a CPU's LAPIC timer is programmed
 * @lapic:	filled in
 * @device:	the kernel's clock event device for it
 *
 * Return: 0; -ERANGE, with a message, when its rate can't be right.
 */
int apic_timer_lapic_init(struct apic_timer_lapic *lapic,
			  const struct clock_event_device *device)
{
	u64 ticks_per_sec;
	int ret;

	lapic->divider = -1;
	lapic->near = 0;
	lapic->tsc_deadline = !strcmp(device->name, "lapic-deadline");
	if (lapic->tsc_deadline)
		return 0;

	/* mult / 2^shift: divided ticks per nanosecond */
	ticks_per_sec = mul_u64_u32_shr((u64)NSEC_PER_SEC * LINUX_DIVIDER,
					device->mult, device->shift);
	ret = apic_timer_lapic_clock_init(&lapic->clock, ticks_per_sec,
					  (u64)apic_timer_tsc_khz() * 1000);
	if (ret)
		pr_err("LAPIC timer of %llu Hz beside a TSC of %u kHz: not believed\n",
		       ticks_per_sec, apic_timer_tsc_khz());
	return ret;
}

/* SDM vol. 3, 11.5.4: bits 0, 1 and 3; all ones is a divider of 1. */
static u32 divider_bits(unsigned int log2)
{
	u32 code = (log2 - 1) & 7;

	return (code & 3) | (code & 4) << 1;
}

#define ROUNDS	8

/**
 * apic_timer_lapic_ready() - the hardware has been set up, perhaps anew
 * @lapic:	of this CPU
 *
 * Measures what programming takes. The timer is armed for a time that is far
 * away.
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
 * apic_timer_lapic_program() - let the LAPIC timer fire
 * @lapic:	of this CPU
 * @fire:	absolute TSC, not 0; one that is past fires at once
 *
 * Context: Interrupts off; the timer's vector is unmasked and in the mode that
 * the kernel uses.
 * Return: what was programmed: the TSC deadline, or the count in bits 0 to 31
 * and log2 of the divider above.
 */
u64 apic_timer_lapic_program(struct apic_timer_lapic *lapic, u64 fire)
{
	struct apic_timer_lapic_count count;
	u64 now;

	if (lapic->tsc_deadline) {
		apic_timer_native_wrmsrq(MSR_IA32_TSC_DEADLINE, fire);
		return fire;
	}

	now = apic_timer_tsc_now() + lapic->cost;
	count = apic_timer_lapic_clock_count(&lapic->clock,
					     fire > now ? fire - now : 0);
	if (count.divider != lapic->divider) {
		apic->write(APIC_TDCR, divider_bits(count.divider));
		lapic->divider = count.divider;
		lapic->near = count.divider ? 0 : lapic->clock.near;
	}
	apic->write(APIC_TMICT, count.count);
	return (u64)count.divider << 32 | count.count;
}

/**
 * apic_timer_lapic_x2apic() - whether the LAPICs are in x2APIC mode
 *
 * Return: true for x2APIC, false for xAPIC.
 */
bool apic_timer_lapic_x2apic(void)
{
	return x2apic_enabled();
}
