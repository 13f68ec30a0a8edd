// SPDX-License-Identifier: GPL-2.0
/*
 * Source "hook": the LAPIC timer's vector of a patched kernel, which lets a module
 * take it over (see patches/).
 *
 * The vector calls the hook before the kernel does anything that only its own events
 * need, so that the way to a handler is shorter than the proxy's. The kernel keeps its
 * clock event device; the events that it programs there are passed to the hook.
 *
 * A kernel booted with nolapic_timer does not use the LAPIC timer, and the hook has it
 * exclusively: see lapic_exclusive.c. Other CPUs then send the kernel's tick by the
 * same vector; it is never passed to the hook.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <asm/lapic_hook.h>

#include "hw/lapic.h"
#include "hw/lapic_device.h"
#include "hw/lapic_exclusive.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "timers/interrupt.h"
#include "tsc/tsc.h"

/**
 * struct hook - the LAPIC timer of a CPU
 * @device:	the kernel's clock event device for it
 * @lapic:	the hardware
 * @attached:	the hook serves it; otherwise the kernel does, as without a hook
 * @ready:	the hardware is unmasked and in its mode
 * @setting_up:	the kernel's own code is setting it up
 * @has_periodic: @device had CLOCK_EVT_FEAT_PERIODIC
 * @periodic:	absolute TSC of the kernel's next tick if it still relies on a
 *		periodic mode; otherwise 0
 *
 * Accessed by its own CPU, interrupts off; @ready also by resume.
 */
struct hook {
	struct clock_event_device *device;
	struct apic_timer_lapic lapic;
	bool attached;
	bool ready;
	bool setting_up;
	bool has_periodic;
	u64 periodic;
};

static DEFINE_PER_CPU(struct hook, hooks);

/*
 * Called first in the LAPIC's vector, but only if hook_program_mux() or hook_stop_mux() was
 * the last to access the hardware.
 */
static bool hook_interrupt(struct pt_regs *regs)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);

	apic_timer_mux_enter(mux, apic_timer_tsc_entry());
	/*
	 * In the idle task, the ordinary path follows anyway. If the hardware has
	 * fired slightly early for a kernel event, the event is due by then.
	 */
	if (is_idle_task(current) || apic_timer_mux_kernel_due(mux))
		return false;
	apic_timer_mux_end(mux);
	return true;
}

static void kernel_event(void *context)
{
	struct hook *hook = context;

	hook->device->event_handler(hook->device);
	if (unlikely(hook->periodic)) {
		hook->periodic += apic_timer_mux_tick;
		apic_timer_mux_set_kernel(hook->periodic, apic_timer_tsc_now());
	}
}

/*
 * Called when the kernel is ready for its event: later in the same interrupt, or
 * first in an interrupt that was programmed for the kernel only.
 */
static void hook_event(struct clock_event_device *device)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	struct hook *hook = this_cpu_ptr(&hooks);
	u64 now;

	if (unlikely(!hook->attached)) {
		/* If exclusive, only broadcasts are left, which the kernel serves itself. */
		if (!lapic_timer_hook_exclusive())
			device->event_handler(device);
		return;
	}
	if (!mux->in_irq) {
		now = apic_timer_tsc_entry();
		if (likely(apic_timer_mux_begin_kernel_only(mux, now))) {
			kernel_event(hook);
			return;
		}
		apic_timer_mux_enter(mux, now);
	}
	apic_timer_mux_leave(mux, kernel_event, hook);
}

/* Set the kernel's next event. */
static bool hook_program(struct clock_event_device *device, u64 tsc)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	struct hook *hook = this_cpu_ptr(&hooks);
	u64 now, cycles;

	if (unlikely(!hook->attached))
		return false;

	now = apic_timer_tsc_now();
	cycles = tsc - min(tsc, now);
	if (likely(apic_timer_lapic_is_near(&hook->lapic, cycles) &&
		   apic_timer_mux_watchdog_sleeps(now) &&
		   apic_timer_mux_kernel_only(mux, cycles, now))) {
		this_cpu_write(lapic_timer_hook_first, false);
		apic_timer_lapic_program_near(&hook->lapic, cycles, now);
	} else {
		apic_timer_mux_set_kernel(tsc, now);
	}
	return true;
}

/* Let the kernel's own code set up the hardware, then add our setup. */
static void setup_hw(struct hook *hook)
{
	hook->setting_up = true;
	hook->device->set_state_oneshot(hook->device);
	hook->setting_up = false;
	apic_timer_lapic_ready(&hook->lapic);
	WRITE_ONCE(hook->ready, true);
}

static bool hook_start(struct clock_event_device *device)
{
	struct hook *hook = this_cpu_ptr(&hooks);

	if (!hook->attached || hook->setting_up)
		return false;
	hook->periodic = 0;
	apic_timer_mux_set_kernel(APIC_TIMER_NEVER, 0);
	if (!READ_ONCE(hook->ready)) {
		setup_hw(hook);
		apic_timer_mux_reprogram();
	}
	return true;
}

/* The kernel wants no event. The timers continue. */
static bool hook_stop(struct clock_event_device *device)
{
	if (!this_cpu_read(hooks.attached))
		return false;
	apic_timer_mux_give_up_kernel();
	return true;
}

static const struct lapic_timer_hook lapic_hook = {
	.interrupt = hook_interrupt,
	.event = hook_event,
	.program = hook_program,
	.start = hook_start,
	.stop = hook_stop,
};

/* The LAPICs have lost their state in a sleep. Called on one CPU for all. */
static void hook_resume(struct clock_event_device *device)
{
	unsigned int cpu = cpumask_first(device->cpumask);

	WRITE_ONCE(per_cpu(hooks, cpu).ready, false);
}

static int hook_probe(void)
{
	int ret = apic_timer_lapic_probe("hook");

	if (ret)
		return ret;
	ret = lapic_timer_hook_register(&lapic_hook);
	if (ret)
		pr_info("hook: the LAPIC timer's vector is taken: error %d\n",
			ret);
	/* Before a CPU is attached: apic_timer_mux_set_tick() depends on it. */
	apic_timer_source_hook.shared = !lapic_timer_hook_exclusive();
	return ret;
}

static void hook_remove(void)
{
	lapic_timer_hook_unregister(&lapic_hook);
}

/* Get the kernel's next event from its device: absolute TSC. */
static u64 pending_event(const struct hook *hook, u64 now)
{
	struct clock_event_device *device = hook->device;
	s64 ns = 0;

	if (hook->periodic)
		return hook->periodic;
	if (!clockevent_state_oneshot(device) ||
	    device->next_event == KTIME_MAX)
		return APIC_TIMER_NEVER;
	if (ktime_after(device->next_event, ktime_get()))
		ns = ktime_to_ns(ktime_sub(device->next_event, ktime_get()));
	return apic_timer_add_tsc(now, apic_timer_ns_to_tsc(max(ns, 0LL)));
}

/* Set the limits of the source, which are the same on all CPUs. */
static void set_limits(const struct apic_timer_lapic *lapic)
{
	apic_timer_source_hook.drifts = !lapic->tsc_deadline;
	apic_timer_source_hook.max_delta = apic_timer_lapic_max_delta(lapic);
}

static int attach_shared(struct hook *hook)
{
	struct clock_event_device *device;
	unsigned long flags;
	int ret;
	u64 now;

	device = apic_timer_lapic_device("hook", smp_processor_id());
	if (IS_ERR(device))
		return PTR_ERR(device);
	ret = apic_timer_lapic_init_device(&hook->lapic, device);
	if (ret)
		return ret;
	set_limits(&hook->lapic);

	local_irq_save(flags);
	hook->device = device;
	hook->has_periodic = device->features & CLOCK_EVT_FEAT_PERIODIC;
	device->features &= ~CLOCK_EVT_FEAT_PERIODIC;
	device->resume = hook_resume;
	now = apic_timer_tsc_now();
	hook->periodic = clockevent_state_periodic(device) ?
		now + apic_timer_mux_tick : 0;
	hook->attached = true;
	setup_hw(hook);
	apic_timer_mux_set_kernel(pending_event(hook, now), now);
	local_irq_restore(flags);
	return 0;
}

/* Let the kernel's own code program its next event. */
static void restore(struct hook *hook, u64 kernel)
{
	struct clock_event_device *device = hook->device;
	u64 now, ns = 0;

	if (hook->has_periodic)
		device->features |= CLOCK_EVT_FEAT_PERIODIC;
	device->resume = NULL;

	if (clockevent_state_periodic(device)) {
		device->set_state_periodic(device);
	} else if (!clockevent_state_oneshot(device)) {
		device->set_state_shutdown(device);
	} else {
		device->set_state_oneshot(device);
		if (kernel == APIC_TIMER_NEVER)
			return;
		now = apic_timer_tsc_now();
		if (kernel > now)
			ns = apic_timer_tsc_to_ns(kernel - now);
		ns = clamp_t(u64, ns, device->min_delta_ns,
			     device->max_delta_ns);
		device->set_next_event(mul_u64_u32_shr(ns, device->mult,
						       device->shift), device);
	}
}

static int hook_attach(void)
{
	struct hook *hook = this_cpu_ptr(&hooks);
	int ret;

	*hook = (struct hook){};
	if (!lapic_timer_hook_exclusive())
		return attach_shared(hook);

	ret = apic_timer_lapic_exclusive_take(&hook->lapic);
	if (ret)
		return ret;
	set_limits(&hook->lapic);
	/* Nothing is programmed: there was no interrupt before. */
	hook->attached = true;
	return 0;
}

static int hook_detach(void)
{
	struct hook *hook = this_cpu_ptr(&hooks);
	unsigned long flags;

	local_irq_save(flags);
	hook->attached = false;
	this_cpu_write(lapic_timer_hook_first, false);
	if (hook->device)
		restore(hook, apic_timer_mux_kernel_deadline(this_cpu_ptr(&apic_timer_mux)));
	else
		apic_timer_lapic_exclusive_release();
	local_irq_restore(flags);
	return 0;
}

static void hook_refine(void)
{
	struct hook *hook = this_cpu_ptr(&hooks);

	/* Without a kernel device, the rate was measured against the TSC itself. */
	if (hook->device)
		apic_timer_lapic_refine(&hook->lapic);
}

static u64 hook_program_mux(u64 fire)
{
	this_cpu_write(lapic_timer_hook_first, true);
	return apic_timer_lapic_program(this_cpu_ptr(&hooks.lapic), fire);
}

static void hook_stop_mux(void)
{
	this_cpu_write(lapic_timer_hook_first, true);
	apic_timer_lapic_stop(this_cpu_ptr(&hooks.lapic));
}

static bool hook_alive(bool fired)
{
	return apic_timer_lapic_alive(this_cpu_ptr(&hooks.lapic), fired);
}

static void hook_recover(void)
{
	struct hook *hook = this_cpu_ptr(&hooks);

	if (hook->device)
		setup_hw(hook);
	else
		apic_timer_lapic_exclusive_setup(&hook->lapic);
}

static void hook_describe(unsigned int cpu, struct apic_timer_info *info)
{
	apic_timer_lapic_describe(info, &per_cpu(hooks, cpu).lapic);
	info->exclusive = lapic_timer_hook_exclusive();
}

struct apic_timer_source apic_timer_source_hook = {
	.name = "hook",
	.probe = hook_probe,
	.remove = hook_remove,
	.attach = hook_attach,
	.detach = hook_detach,
	.refine = hook_refine,
	.program = hook_program_mux,
	.stop = hook_stop_mux,
	.alive = hook_alive,
	.recover = hook_recover,
	.describe = hook_describe,
};
