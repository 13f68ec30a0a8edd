// SPDX-License-Identifier: GPL-2.0
/*
 * The dispatcher of a CPU: handlers of three timers.
 *
 * For a thread, the timer for the next window uses mode "raw", and expires before the window's
 * start by as much as the wake-up may take. For a function it uses mode "exact", and expires
 * early by the time that the handler takes to get ready. The handler then waits for the last
 * cycles itself, with nothing left to do between the wait and the call. Both times are learnt.
 *
 * All handlers run with interrupts off, on their own CPU, under the CPU's lock. The lock is
 * not held while a function of another module runs.
 */
#include <linux/apic_calendar.h>
#include <linux/apic_timer.h>
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/time64.h>

#include <trace/events/apic_calendar.h>

#include "calendar.h"
#include "spin.h"

/* Time that the fence lasts beyond the start, for the first instructions. */
#define FENCE_NS	500
/* Delay, in major cycles, from which on whole cycles are skipped. */
#define PASS		2
/* No lead is as long as this. */
#define AHEAD_MAX_US	200
#define ROUNDS		256

/* TSC cycles that every call took from the last read of the TSC to the first instruction */
static u64 call_cost;

/*
 * Call a function at its start. The wait ends before it by @cost TSC cycles.
 * There must be a single copy of this: the cost of one copy says nothing about another.
 */
static noinline __noclone
u64 call(void (*function)(unsigned long long now, unsigned long data), unsigned long data,
	 u64 start, u64 cost)
{
	u64 now = calendar_spin(start - cost) + cost;

	function(now, data);
	return now;
}

/* The shortest function. */
static notrace void probe(unsigned long long now, unsigned long data)
{
	*(u64 *)data = rdtsc();
}

/**
 * calendar_dispatch_init() - measure the cost of a call
 *
 * A function must never start early, so only a cost that is certain is subtracted.
 *
 * Context: Task.
 */
void calendar_dispatch_init(void)
{
	void (*function)(unsigned long long now, unsigned long data) = probe;
	u64 least = U64_MAX, most = 0, took, left, seen;
	unsigned long flags;
	unsigned int i;

	/* Hide which function is called, or the compiler would inline it. */
	OPTIMIZER_HIDE_VAR(function);
	for (i = 0; i < ROUNDS; i++) {
		local_irq_save(flags);
		/* Vary the phase within a step of the TSC, and within a turn of the loop. */
		left = call(function, (unsigned long)&seen, rdtsc() + 100 + i % 64, 0);
		took = seen - left;
		local_irq_restore(flags);
		/* Ignore the first rounds, which run with cold caches. */
		if (i < ROUNDS / 8)
			continue;
		least = min(least, took);
		most = max(most, took);
	}
	call_cost = apic_timer_certain_cost(least, most);
}

/* Count and report a window that its unit did not use. */
static void lose(struct calendar_unit *unit, const struct apic_calendar_receipt *receipt,
		 u32 result)
{
	struct apic_calendar_receipt copy = *receipt;

	copy.result = result;
	if (result == APIC_CALENDAR_SKIPPED)
		unit->count.skipped++;
	else
		unit->count.missed++;
	unit->missed++;
	calendar_add_receipt(unit->calendar, &copy);
}

/* Report an overrun in a window of a table. No CPU's lock is held. */
static void report_overrun(struct calendar *calendar, u32 table)
{
	WRITE_ONCE(calendar->urgent, true);
	calendar_wake_pollers(calendar);
	calendar_count_overrun(calendar, table);
}

static struct calendar_unit *first_over(struct calendar_cpu *cpu)
	__must_hold(&cpu->lock)
{
	return list_first_entry_or_null(&cpu->over, struct calendar_unit, over);
}

static u64 backstop_of(const struct calendar_unit *unit)
	__must_hold(&unit->cpu->lock)
{
	return unit->receipt.ended + calendar_backstop();
}

/* Arm the timer, which is not pending, for the unit that has been over for longest. */
static void arm_backstop(struct calendar_cpu *cpu, const struct calendar_unit *unit)
	__must_hold(&cpu->lock)
{
	cpu->backstop.expires = backstop_of(unit);
	add_apic_timer(&cpu->backstop);
}

static void timed_out(unsigned long long now, unsigned long data)
{
	struct calendar_cpu *cpu = (struct calendar_cpu *)data;
	struct calendar_unit *unit;
	bool overran = false;
	u32 table = 0;
	int was;

	raw_spin_lock(&cpu->lock);
	unit = cpu->running;
	if (!cpu->on || !unit)
		goto out;
	was = unit->state;
	/* A thread that has ended uses no budget. One that is about to end still may. */
	if (was == CALENDAR_RUNS && READ_ONCE(unit->task->exit_state)) {
		calendar_window_ends(unit, APIC_CALENDAR_RAN, unit->timeout);
		calendar_event(unit, CALENDAR_LEAVE);
		goto out;
	}
	if (calendar_event(unit, CALENDAR_TIMEOUT) < 0) {
		cpu->running = NULL;
		goto out;
	}
	overran = was == CALENDAR_RUNS;
	table = unit->receipt.table;
	calendar_window_ends(unit, overran ? APIC_CALENDAR_TIMED_OUT : APIC_CALENDAR_NEVER_RAN,
			     now);
	unit->resuming = false;
	if (!overran)
		goto out;
	unit->status |= APIC_CALENDAR_OVERRAN;
	if (unit->def.on_overrun == APIC_CALENDAR_SKIP || unit->function) {
		unit->skip = !unit->function;
		goto out;
	}
	calendar_unit_break(unit);
	list_add_tail(&unit->over, &cpu->over);
	if (list_is_first(&unit->over, &cpu->over))
		arm_backstop(cpu, unit);
out:
	raw_spin_unlock(&cpu->lock);
	if (overran)
		report_overrun(cpu->calendar, table);
}

static void still_over(unsigned long long now, unsigned long data)
{
	struct calendar_cpu *cpu = (struct calendar_cpu *)data;
	struct calendar_unit *unit;

	raw_spin_lock(&cpu->lock);
	while ((unit = first_over(cpu))) {
		if (backstop_of(unit) > now) {
			arm_backstop(cpu, unit);
			break;
		}
		list_del_init(&unit->over);
		if (!cpu->on || unit->state != CALENDAR_OVER)
			continue;
		unit->count.late_breaks++;
		unit->status |= APIC_CALENDAR_LATE_BREAK;
		trace_apic_calendar_late_break(unit->number, unit->receipt.cycle,
					       now - unit->receipt.ended);
		/* A signal is just as late, and its handler runs at the unit's priority. */
		if (unit->def.on_overrun != APIC_CALENDAR_SIGNAL) {
			WRITE_ONCE(unit->demote, true);
			wake_up_process(unit->calendar->keeper);
		}
	}
	raw_spin_unlock(&cpu->lock);
}

static void wake_thread(struct calendar_cpu *cpu, struct calendar_unit *unit,
			const struct apic_calendar_receipt *receipt, u64 timeout, u64 now)
	__must_hold(&cpu->lock)
{
	if (unit->skip) {
		unit->skip = false;
		lose(unit, receipt, APIC_CALENDAR_SKIPPED);
		return;
	}
	/* A thread that has not seen the last stop yet reports that first, in unit_sleep(). */
	if (now >= timeout || cpu->running || unit->stops != READ_ONCE(unit->calendar->stops) ||
	    calendar_event(unit, CALENDAR_DISPATCH) < 0) {
		lose(unit, receipt, APIC_CALENDAR_MISSED);
		return;
	}
	unit->receipt = *receipt;
	unit->timeout = timeout;
	unit->resuming = true;
	cpu->running = unit;
	/* A new epoch may have moved the timer, but not the start. */
	unit->armed = cpu->dispatch.expires;
	/* No lead after the last window of the previous table: no gap is checked there. */
	unit->lead = receipt->start > unit->armed ? receipt->start - unit->armed : 0;
	apic_timer_fence(receipt->start + apic_timer_ns_to_tsc(FENCE_NS));
	calendar_unit_wake(unit);
	cpu->timeout.expires = timeout;
	add_apic_timer(&cpu->timeout);
}

/* Call a unit's function. Return true if it has exceeded its budget. */
static bool call_function(struct calendar_cpu *cpu, struct calendar_unit *unit,
			  struct apic_calendar_receipt *receipt, u64 timeout)
	__must_hold(&cpu->lock)
{
	struct apic_calendar_function *function = unit->function;
	u64 cost, ready, now;

	if (rdtsc() >= timeout) {
		lose(unit, receipt, APIC_CALENDAR_MISSED);
		return false;
	}
	raw_spin_unlock(&cpu->lock);
	/* Calls may have become faster since they were measured. */
	cost = apic_timer_certain_cost(call_cost, call_cost);
	ready = rdtsc();
	receipt->resumed = call(function->function, function->data, receipt->start, cost);
	now = rdtsc();
	raw_spin_lock(&cpu->lock);
	apic_timer_estimate_add(&unit->wake, ready - receipt->woken);
	unit->receipt = *receipt;
	unit->timeout = timeout;
	calendar_window_ends(unit, now > timeout ? APIC_CALENDAR_TIMED_OUT : APIC_CALENDAR_RAN,
			     now);
	return now > timeout;
}

/* Go to the next window. Return true if this completes the calendar's change. */
static bool advance(struct calendar_cpu *cpu)
	__must_hold(&cpu->lock)
{
	struct calendar *calendar = cpu->calendar;
	struct calendar_change change;

	change.at = calendar_change_at(cpu);
	change.table = change.at == CALENDAR_NEVER ? NULL : calendar->change.table;
	if (!calendar_position_advance(&cpu->position, &change))
		return false;
	return calendar_cpu_changed(cpu, change.at);
}

/* After a long delay, skip the major cycles that have passed entirely, with one receipt. */
static void pass(struct calendar_cpu *cpu, struct apic_calendar_receipt *receipt, u64 now)
	__must_hold(&cpu->lock)
{
	struct calendar_position *position = &cpu->position;
	u64 end, passed;

	/* Only between two cycles, and not if the next window can still be on time. */
	if (position->index != position->table->slot[position->slot] ||
	    now < position->start + calendar_window(position)->offset)
		return;
	end = calendar_cycle_start(position->table, position->origin, position->n + PASS);
	if (now < end)
		return;
	receipt->start = position->start;
	receipt->cycle = cpu->base + position->n;
	passed = calendar_position_pass(position, now, calendar_change_at(cpu));
	if (!passed)
		return;
	receipt->result = APIC_CALENDAR_PASSED;
	receipt->entry = APIC_CALENDAR_NONE;
	receipt->unit = APIC_CALENDAR_NONE;
	receipt->count = min_t(u64, passed, U32_MAX);
	calendar_add_receipt(cpu->calendar, receipt);
	receipt->result = APIC_CALENDAR_RAN;
	receipt->count = 1;
}

static void dispatched(unsigned long long now, unsigned long data)
{
	struct calendar_cpu *cpu = (struct calendar_cpu *)data;
	struct calendar *calendar = cpu->calendar;
	struct apic_calendar_receipt receipt;
	const struct calendar_window *window;
	bool changed = false, overran = false;
	struct calendar_unit *unit;
	u64 timeout, at;
	int error = 0;

	raw_spin_lock(&cpu->lock);
	/*
	 * apic_timer has migrated this timer. cpu_goes() is about to stop the calendar, unless the
	 * CPU stays online after all.
	 */
	if (smp_processor_id() != cpu->cpu) {
		error = cpu->on ? -ENODEV : 0;
		cpu->on = false;
	}
	if (!cpu->on || !cpu->position.table) {
		changed = cpu->on && cpu->ending;
		cpu->ending = false;
		goto out;
	}
	receipt = (struct apic_calendar_receipt) {
		.woken = now, .cpu = cpu->cpu, .table = cpu->position.table->number, .count = 1,
	};
	pass(cpu, &receipt, now);
	window = calendar_window(&cpu->position);
	unit = &calendar->units[window->unit];
	receipt.start = cpu->position.start + window->offset;
	receipt.cycle = cpu->base + cpu->position.n;
	receipt.entry = window->entry;
	receipt.unit = window->unit;
	timeout = receipt.start + window->budget;
	/*
	 * The first window of a cycle may be far ahead when earlier cycles were passed over. A new
	 * epoch of the TSC moves the timer, but not the start. Don't wait here for either.
	 */
	if ((s64)(receipt.start - now) > (s64)apic_timer_us_to_tsc(AHEAD_MAX_US))
		goto arm;
	if (unit->def.kind == APIC_CALENDAR_FUNCTION) {
		overran = call_function(cpu, unit, &receipt, timeout);
		/* The calendar may have been stopped meanwhile. */
		if (!cpu->on)
			goto out;
	} else {
		wake_thread(cpu, unit, &receipt, timeout, now);
	}
	changed = advance(cpu);
arm:
	/* If the CPU does not accept timers any more, stop as above. */
	if (calendar_cpu_arm(cpu, true)) {
		error = -ENODEV;
		cpu->on = false;
	}
out:
	at = cpu->changed_at;
	raw_spin_unlock(&cpu->lock);
	/* The calendar cannot be started again while this handler runs. */
	if (error)
		calendar_stop_by_handler(calendar, error);
	if (changed)
		calendar_changed(calendar, at);
	if (overran)
		report_overrun(calendar, receipt.table);
}

static void init_timer(struct apic_timer_list *timer, struct calendar_cpu *cpu,
		       void (*function)(unsigned long long now, unsigned long data))
{
	timer->function = function;
	timer->data = (unsigned long)cpu;
	init_apic_timer(timer);
	timer->flags = APIC_TIMER_RAW;
}

/**
 * calendar_cpu_init() - prepare a CPU of a calendar
 * @cpu:	the CPU
 *
 * Context: Any.
 */
void calendar_cpu_init(struct calendar_cpu *cpu)
{
	raw_spin_lock_init(&cpu->lock);
	INIT_LIST_HEAD(&cpu->over);
	init_timer(&cpu->dispatch, cpu, dispatched);
	init_timer(&cpu->timeout, cpu, timed_out);
	init_timer(&cpu->backstop, cpu, still_over);
}
