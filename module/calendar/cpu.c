// SPDX-License-Identifier: GPL-2.0
/*
 * Arm and delete the timers of a CPU. dispatch.c has their handlers.
 */
#include <linux/apic_timer.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/smp.h>

#include "calendar.h"

/**
 * calendar_over_no_more() - stop waiting for a unit whose window is over to stop
 * @unit:	the unit; nothing happens if it is not such a unit
 *
 * Context: Any but NMI, under the CPU's lock.
 */
void calendar_over_no_more(struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	struct calendar_cpu *cpu = unit->cpu;

	lockdep_assert_held(&cpu->lock);
	if (list_empty(&unit->over))
		return;
	list_del_init(&unit->over);
	/* If others remain, the timer may expire too early for them; its handler rearms it. */
	if (list_empty(&cpu->over))
		del_apic_timer(&cpu->backstop);
}

/**
 * calendar_cpu_changed() - note that the change has been made on a CPU
 * @cpu:	the CPU, which is armed next
 * @at:		boundary of the change
 *
 * The CPU's last window before the boundary may still be open.
 *
 * Context: Any but NMI, under the CPU's lock.
 * Return: true if it was the last CPU, and another table has taken over.
 */
bool calendar_cpu_changed(struct calendar_cpu *cpu, u64 at)
	__must_hold(&cpu->lock)
{
	struct calendar *calendar = cpu->calendar;

	lockdep_assert_held(&cpu->lock);
	cpu->changed_at = at;
	cpu->base = calendar->change_base;
	if (!atomic_dec_and_test(&calendar->unchanged))
		return false;
	cpu->ending = !calendar->change.table;
	return !cpu->ending;
}

/**
 * calendar_cpu_arm() - arm the timer for the next window, if there is one
 * @cpu:	the CPU, whose timer is not pending
 * @here:	the CPU is this one
 *
 * Context: Any but NMI, under the CPU's lock.
 * Return: 0, or an error of add_apic_timer().
 */
int calendar_cpu_arm(struct calendar_cpu *cpu, bool here)
	__must_hold(&cpu->lock)
{
	const struct calendar_window *window;
	struct calendar_unit *unit;
	u64 start;

	lockdep_assert_held(&cpu->lock);
	/* We learn the length of wake-ups ourselves: no kernel event must come right before one. */
	cpu->dispatch.flags = APIC_TIMER_RAW | APIC_TIMER_UNDISTURBED;
	if (!cpu->position.table) {
		if (!cpu->ending)
			return 0;
		cpu->dispatch.expires = cpu->calendar->change.at;
		cpu->wanted = cpu->dispatch.expires;
	} else {
		window = calendar_window(&cpu->position);
		unit = &cpu->calendar->units[window->unit];
		start = cpu->position.start + window->offset;
		cpu->wanted = start - calendar_lead(unit);
		cpu->dispatch.expires = cpu->wanted;
		/* Not within the open window: only one thread runs at a time. */
		if (cpu->running)
			cpu->dispatch.expires = max(cpu->dispatch.expires,
						    cpu->running->timeout + 1);
		/* A wake-up is measured from when it could begin, as in calendar_cpu_free(). */
		if (unit->def.kind == APIC_CALENDAR_FUNCTION)
			cpu->dispatch.flags = APIC_TIMER_EXACT;
		else
			cpu->dispatch.expires = max(cpu->dispatch.expires, apic_timer_now());
	}
	return here ? add_apic_timer(&cpu->dispatch) :
		      add_apic_timer_on(&cpu->dispatch, cpu->cpu);
}

/**
 * calendar_cpu_free() - release the rest of the open window, which its thread does not need
 * @cpu:	the window's CPU
 *
 * The next wake-up may begin within the window, at the time wanted for it. If that has passed,
 * it begins now, and its length is measured from now on, without the delay. A thread that has
 * moved to another CPU leaves the timer alone: the handler on @cpu may be about to take the
 * lock, and will arm the timer itself.
 *
 * Context: Any but NMI, under the CPU's lock.
 */
void calendar_cpu_free(struct calendar_cpu *cpu)
	__must_hold(&cpu->lock)
{
	lockdep_assert_held(&cpu->lock);
	if (smp_processor_id() == cpu->cpu && cpu->dispatch.expires > cpu->wanted &&
	    apic_timer_pending(&cpu->dispatch))
		mod_apic_timer(&cpu->dispatch, max(cpu->wanted, apic_timer_now()));
}
