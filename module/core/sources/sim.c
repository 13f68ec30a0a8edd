// SPDX-License-Identifier: GPL-2.0
/*
 * Source "sim": a simulated TSC and LAPIC timer, for tests.
 *
 * Time passes only in apic_timer_sim_run(), and by the machine's cost of each read
 * of the TSC and each programming of the timer. The timer interrupts only in
 * apic_timer_sim_run(), which is called with interrupts on: the core's code is
 * never interrupted.
 */
#include <linux/hardirq.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>

#include "mux/mux.h"
#include "mux/source.h"
#include "timers/interrupt.h"
#include "sources/sim.h"

/* One CPU. Tests read it, and may change it between two runs. */
struct apic_timer_sim apic_timer_sim = {
	.machine.tsc_khz = 1000000,
};

/**
 * apic_timer_sim_now() - read the simulated TSC, at the cost of the machine
 *
 * Return: TSC, cycles.
 */
u64 apic_timer_sim_now(void)
{
	struct apic_timer_sim *sim = &apic_timer_sim;

	sim->now += sim->machine.cost;
	if (irqs_disabled())
		sim->irqs_off = max(sim->irqs_off, sim->now - sim->irqs_on);
	else
		sim->irqs_on = sim->now;
	return sim->now;
}

/**
 * apic_timer_sim_wait() - let time pass, at the cost of the machine
 * @until:	TSC
 *
 * Return: TSC, @until unless that had passed, or an SMI has prolonged the wait.
 */
u64 apic_timer_sim_wait(u64 until)
{
	struct apic_timer_sim *sim = &apic_timer_sim;

	if ((s64)(until - apic_timer_sim_now()) > 0) {
		sim->now = until + sim->smi;
		sim->smi = 0;
	}
	return sim->now;
}

/**
 * apic_timer_sim_tsc_khz() - get the frequency of the simulated TSC
 *
 * Return: kHz.
 */
u32 apic_timer_sim_tsc_khz(void)
{
	return apic_timer_sim.machine.tsc_khz;
}

/**
 * apic_timer_sim_ticks_to_cycles() - convert ticks of a clock to TSC cycles
 * @ticks:	number of ticks
 * @tsc_hz:	TSC frequency, Hz
 * @counter_hz:	frequency of the other clock, Hz
 *
 * Return: TSC cycles, rounded up; exact if the result fits.
 */
u64 apic_timer_sim_ticks_to_cycles(u64 ticks, u64 tsc_hz, u64 counter_hz)
{
	unsigned __int128 product = (unsigned __int128)ticks * tsc_hz;
	unsigned __int128 rest = 0;
	u64 quotient = 0;
	int bit;

	/* The kernel has no 128-bit division: divide by hand. */
	for (bit = 127; bit >= 0; bit--) {
		rest = rest << 1 | (product >> bit & 1);
		quotient <<= 1;
		if (rest >= counter_hz) {
			rest -= counter_hz;
			quotient |= 1;
		}
	}
	return quotient + !!rest;
}

/**
 * apic_timer_sim_start() - begin to simulate a machine
 * @machine:	the machine
 *
 * Its timer is not programmed. The caller resets the core's estimates for the
 * previous machine.
 *
 * Return: 0, or the error of apic_timer_counter_init().
 */
int apic_timer_sim_start(const struct apic_timer_sim_machine *machine)
{
	struct apic_timer_sim sim = {
		.machine = *machine,
		.now = machine->tsc,
	};
	u64 max_delta = U64_MAX;
	int ret;

	if (!sim.machine.believed_hz)
		sim.machine.believed_hz = machine->counter_hz;
	if (machine->counter_hz) {
		ret = apic_timer_counter_init(&sim.counter,
					      sim.machine.believed_hz,
					      machine->tsc_khz * 1000ULL);
		if (ret)
			return ret;
		max_delta = sim.counter.max_delta;
	}
	apic_timer_sim = sim;
	apic_timer_source_sim.drifts = machine->counter_hz;
	apic_timer_source_sim.max_delta = min(max_delta, machine->max_delta ?: U64_MAX);
	return 0;
}

static void kernel_event(void *unused)
{
	if (apic_timer_sim.machine.kernel_event)
		apic_timer_sim.machine.kernel_event(apic_timer_sim.now);
}

/* Handler for the timer's vector. */
static void interrupt(void)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	u64 now = apic_timer_tsc_entry();

	if (apic_timer_mux_begin_kernel_only(mux, now)) {
		kernel_event(NULL);
		return;
	}
	apic_timer_mux_enter(mux, now);
	apic_timer_mux_leave(mux, kernel_event, NULL);
}

/**
 * apic_timer_sim_kernel() - set the next event of the simulated kernel
 * @tsc:	absolute TSC, %APIC_TIMER_NEVER for none
 *
 * Context: Interrupts off.
 */
void apic_timer_sim_kernel(u64 tsc)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	u64 now = apic_timer_sim.now;

	if (tsc >= now && tsc != APIC_TIMER_NEVER &&
	    apic_timer_mux_kernel_only(mux, tsc - now, now))
		apic_timer_source_sim.program(tsc);
	else
		apic_timer_mux_set_kernel(tsc, now);
}

/**
 * apic_timer_sim_run() - let time pass and the timer interrupt
 * @until:	TSC at which to return; later if an interrupt takes longer
 * @limit:	maximum number of interrupts
 *
 * Context: Task, interrupts on.
 * Return: number of interrupts.
 */
unsigned long apic_timer_sim_run(u64 until, unsigned long limit)
{
	struct apic_timer_sim *sim = &apic_timer_sim;
	unsigned long flags, n = 0;
	u64 at, taken;

	local_irq_save(flags);
	while ((sim->active || sim->requested) && n < limit) {
		taken = sim->requested ? sim->now : sim->fires;
		at = apic_timer_add_tsc(taken, sim->machine.latency);
		if (at > until)
			break;
		/* At most one request is pending, no matter how often the timer has fired. */
		if (sim->fires <= taken)
			sim->active = false;
		sim->requested = false;
		sim->now = max(sim->now, at);
		sim->interrupts++;
		n++;
		__irq_enter();
		interrupt();
		__irq_exit();
	}
	if (n < limit)
		sim->now = max(sim->now, until);
	local_irq_restore(flags);
	return n;
}

static int sim_probe(void)
{
	return 0;
}

static int sim_attach(void)
{
	return apic_timer_sim_start(&apic_timer_sim.machine);
}

static int sim_detach(void)
{
	apic_timer_sim.active = false;
	return 0;
}

static u64 sim_program(u64 fire)
{
	struct apic_timer_sim *sim = &apic_timer_sim;

	sim->now += sim->machine.cost;
	/* This does not cancel an interrupt that is already requested. */
	if (sim->active && sim->fires <= sim->now)
		sim->requested = true;
	sim->programmed++;
	sim->delta = fire > sim->now ? fire - sim->now : 0;

	if (!sim->machine.counter_hz) {
		/* 0 disarms; one in the past fires at once. */
		sim->fires = fire;
		sim->active = sim->fires;
		return sim->fires;
	}

	/* A count of 0 stops the counter. */
	sim->count = apic_timer_counter_convert(&sim->counter, sim->delta);
	sim->active = sim->count.count;
	sim->fires = sim->now +
		apic_timer_sim_ticks_to_cycles((u64)sim->count.count <<
					       sim->count.divider,
					       sim->machine.tsc_khz * 1000ULL,
					       sim->machine.counter_hz);
	return (u64)sim->count.divider << 32 | sim->count.count;
}

static void sim_stop(void)
{
	struct apic_timer_sim *sim = &apic_timer_sim;

	sim->now += sim->machine.cost;
	/* As in sim_program() */
	if (sim->active && sim->fires <= sim->now)
		sim->requested = true;
	sim->programmed++;
	sim->active = false;
}

static void sim_describe(unsigned int cpu, struct apic_timer_info *info)
{
	info->hardware = APIC_TIMER_HW_SIMULATED;
}

struct apic_timer_source apic_timer_source_sim = {
	.name = "sim",
	.shared = true,
	.probe = sim_probe,
	.attach = sim_attach,
	.detach = sim_detach,
	.program = sim_program,
	.stop = sim_stop,
	.describe = sim_describe,
};
