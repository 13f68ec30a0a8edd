// SPDX-License-Identifier: GPL-2.0
/*
 * Source "proxy": the LAPIC timer of an unpatched kernel.
 *
 * On each CPU the proxy registers a clock event device of its own, rated above the
 * LAPIC's. The kernel uses it for its tick, programs its next event through it, and
 * releases the LAPIC's device, whose hardware the proxy then programs, for the mux. The
 * LAPIC's vector still calls the handler of the LAPIC's device: that pointer is the
 * only one that the proxy replaces.
 *
 * The kernel programs the proxy's device in nanoseconds by set_next_event(), with
 * every clocksource: the device lacks the features that would bypass that.
 * Nanoseconds are converted to TSC cycles here, because the kernel only accepts rates
 * of 32 bits in Hz, and does not notify modules when it refines the rate of the TSC.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/poison.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/suspend.h>
#include <linux/time64.h>

#include "hw/lapic.h"
#include "hw/lapic_device.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "timers/interrupt.h"
#include "tsc/tsc.h"

/* The proxy's device is rated this much higher than the LAPIC's. */
#define RATING_ABOVE	50
/* Minimum delta of the kernel's events, ns */
#define MIN_DELTA	30
/* Number of attempts to restore the LAPIC's device, and time in between, ms */
#define RESTORE_TRIES	50
#define RESTORE_MS	20
/* Time in between when unloading has to wait, ms */
#define REMOVE_MS	1000

/**
 * struct proxy - link between the kernel and the LAPIC timer of a CPU
 * @device:	the proxy's clock event device, the kernel's tick device while attached
 * @mult:	apic_timer_tsc_mult() of the TSC
 * @lapic:	the hardware
 * @lapic_device: the kernel's device for the LAPIC timer; NULL if not attached
 * @noop:	handler of @lapic_device while the kernel does not use it
 * @unbound:	work that checks whether @device was unbound by sysfs
 * @leaving:	@device is being unbound by the proxy itself
 * @c3stop:	@lapic_device had CLOCK_EVT_FEAT_C3STOP itself
 * @ready:	the LAPIC is unmasked and in its mode
 *
 * Accessed by its own CPU, interrupts off; @ready also by resume.
 */
struct proxy {
	struct clock_event_device device;
	/* In one cache line with the fields of @lapic that set_next_event() uses. */
	u64 mult;
	struct apic_timer_lapic lapic;
	struct clock_event_device *lapic_device;
	void (*noop)(struct clock_event_device *device);
	struct irq_work unbound;
	bool leaving;
	bool c3stop;
	bool ready;
};

static DEFINE_PER_CPU(struct proxy, proxies);

static struct proxy *to_proxy(struct clock_event_device *device)
{
	return container_of(device, struct proxy, device);
}

static void kernel_event(void *unused)
{
	struct clock_event_device *device = this_cpu_ptr(&proxies.device);

	device->event_handler(device);
}

/* Serve an interrupt that may be for the timers. */
static noinline void interrupt(struct apic_timer_mux *mux, u64 now)
{
	apic_timer_mux_enter(mux, now);
	apic_timer_mux_leave(mux, kernel_event, NULL);
}

/* Handler for the LAPIC's vector. */
static void proxy_interrupt(struct clock_event_device *lapic_device)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	u64 now = apic_timer_tsc_entry();

	if (likely(apic_timer_mux_begin_kernel_only(mux, now)))
		kernel_event(NULL);
	else
		interrupt(mux, now);
}

/* Set the kernel's next event, in nanoseconds from now. */
static int proxy_set_next_event(unsigned long ns,
				struct clock_event_device *device)
{
	struct apic_timer_mux *mux = this_cpu_ptr(&apic_timer_mux);
	struct apic_timer_lapic *lapic = &to_proxy(device)->lapic;
	u64 cycles = apic_timer_tsc_from_ns_fast(ns, to_proxy(device)->mult);
	u64 now = apic_timer_tsc_now();

	/* Both are less than 2^63. The sum is rounded up, so that the event has expired. */
	if (likely(apic_timer_lapic_is_near(lapic, cycles) &&
		   apic_timer_mux_watchdog_sleeps(now) &&
		   apic_timer_mux_kernel_only(mux, cycles, now)))
		apic_timer_lapic_program_near(lapic, cycles, now);
	else
		apic_timer_mux_set_kernel(now + cycles + 1, now);
	return 0;
}

/* Let the kernel's own code set the hardware up, then set up what we need. */
static void setup_hw(struct proxy *proxy)
{
	proxy->lapic_device->set_state_oneshot(proxy->lapic_device);
	apic_timer_lapic_ready(&proxy->lapic);
	WRITE_ONCE(proxy->ready, true);
}

static int proxy_set_oneshot(struct clock_event_device *device)
{
	struct proxy *proxy = to_proxy(device);

	device->features &= ~CLOCK_EVT_FEAT_C3STOP;
	apic_timer_mux_set_kernel(APIC_TIMER_NEVER, 0);
	/*
	 * Set the LAPIC up if the proxy was just interposed, or after a sleep.
	 * Otherwise the kernel resumes events that it had stopped: leave the hardware
	 * alone, because it may be programmed for a timer.
	 */
	if (!READ_ONCE(proxy->ready)) {
		setup_hw(proxy);
		apic_timer_mux_reprogram();
	}
	return 0;
}

/*
 * The kernel wants no event: it is idle, asleep, or releases the device. The timers
 * continue, so the LAPIC is stopped only if none is pending.
 */
static int proxy_set_stopped(struct clock_event_device *device)
{
	apic_timer_mux_give_up_kernel();
	return 0;
}

/*
 * Stop as above, but perhaps permanently: the device is being unbound by sysfs, or a
 * better one was registered. Which it is, is known once the kernel has finished. If
 * the device is no longer the tick's and does not stop in C3, the kernel might choose
 * it to broadcast the tick, and would not choose it for the tick again.
 */
static int proxy_set_shutdown(struct clock_event_device *device)
{
	struct proxy *proxy = to_proxy(device);

	device->features |= CLOCK_EVT_FEAT_C3STOP;
	/*
	 * Some kernels call this when the CPU has gone offline. With PREEMPT_RT, it runs
	 * no irq work then. In suspend to idle nobody unbinds the device, and on a CPU of
	 * nohz_full, whose tick has stopped, the work would interrupt the sleep at once.
	 */
	if (!proxy->leaving && cpu_online(smp_processor_id()) &&
	    pm_suspend_target_state == PM_SUSPEND_ON)
		irq_work_queue(&proxy->unbound);
	return proxy_set_stopped(device);
}

/* The LAPIC has lost its state in a sleep. Called on one CPU for all. */
static void proxy_resume(struct clock_event_device *device)
{
	WRITE_ONCE(to_proxy(device)->ready, false);
}

static int proxy_probe(void)
{
	return apic_timer_lapic_probe("proxy");
}

/* Put the proxy's device in front of the LAPIC's. */
static bool interpose(struct proxy *proxy)
{
	struct clock_event_device *lapic_device = proxy->lapic_device;
	unsigned long flags;
	bool taken;

	local_irq_save(flags);
	/*
	 * Without this flag, the kernel would choose the LAPIC's released device to
	 * broadcast the tick to idle CPUs.
	 */
	lapic_device->features |= CLOCK_EVT_FEAT_C3STOP;

	apic_timer_lapic_device_register(&proxy->device, MIN_DELTA,
					 apic_timer_tsc_fast_max(proxy->mult));
	taken = !clockevent_state_detached(&proxy->device);
	if (taken) {
		proxy->noop = lapic_device->event_handler;
		lapic_device->event_handler = proxy_interrupt;
	} else if (!proxy->c3stop) {
		lapic_device->features &= ~CLOCK_EVT_FEAT_C3STOP;
	}
	local_irq_restore(flags);
	return taken;
}

/*
 * Register the proxy's device again, because pending timers still need the LAPIC. If
 * another module has put its device in front of the proxy's, that does no harm: the
 * kernel does not use the LAPIC's device then.
 */
static void reinterpose(struct irq_work *work)
{
	struct proxy *proxy = container_of(work, struct proxy, unbound);

	if (proxy->leaving || !clockevent_state_detached(&proxy->device) ||
	    clockevent_state_detached(proxy->lapic_device))
		return;
	WRITE_ONCE(proxy->ready, false);
	pr_warn("CPU %u: clock event device was unbound by sysfs; %s. Unload apic_timer to release it\n",
		smp_processor_id(), interpose(proxy) ? "registered again" : "lost");
}

/* Set what the source can do, which is the same on all CPUs. */
static void set_limits(const struct apic_timer_lapic *lapic)
{
	apic_timer_source_proxy.drifts = !lapic->tsc_deadline;
	apic_timer_source_proxy.max_delta = apic_timer_lapic_max_delta(lapic);
}

static int proxy_attach(void)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);
	unsigned int cpu = smp_processor_id();
	struct clock_event_device *lapic_device;
	int ret;

	lapic_device = apic_timer_lapic_device("proxy", cpu);
	if (IS_ERR(lapic_device))
		return PTR_ERR(lapic_device);
	ret = apic_timer_lapic_init_device(&proxy->lapic, lapic_device);
	if (ret)
		return ret;
	set_limits(&proxy->lapic);

	proxy->lapic_device = lapic_device;
	proxy->mult = apic_timer_tsc_mult(apic_timer_tsc_khz());
	proxy->c3stop = lapic_device->features & CLOCK_EVT_FEAT_C3STOP;
	/*
	 * Let the next tick run it, not an interrupt of its own: the kernel also shuts
	 * the device down as the last step before the machine sleeps. The interrupt
	 * would be lost with the LAPIC's state, and with it all later irq work of this
	 * CPU.
	 */
	proxy->unbound = IRQ_WORK_INIT_LAZY(reinterpose);
	proxy->leaving = false;
	proxy->ready = false;
	proxy->device = (struct clock_event_device) {
		.name = "apic_timer",
		.features = CLOCK_EVT_FEAT_ONESHOT | CLOCK_EVT_FEAT_C3STOP,
		.rating = lapic_device->rating + RATING_ABOVE,
		.cpumask = cpumask_of(cpu),
		.irq = -1,
		/* Never called, but needed by a device that stops in C3. */
		.broadcast = lapic_device->broadcast,
		.set_next_event = proxy_set_next_event,
		.set_state_oneshot = proxy_set_oneshot,
		.set_state_oneshot_stopped = proxy_set_stopped,
		.set_state_shutdown = proxy_set_shutdown,
		.resume = proxy_resume,
	};
	if (!interpose(proxy)) {
		clockevents_unbind_device(&proxy->device, cpu);
		proxy->lapic_device = NULL;
		pr_err("proxy: the kernel kept the tick device of CPU %u\n",
		       cpu);
		return -EBUSY;
	}
	return 0;
}

/*
 * Let the kernel use the LAPIC's device again instead of the proxy's; the kernel sets up
 * its handler and hardware. The kernel chooses among the devices on its list, so the
 * LAPIC's device is put on the list if it was unbound by sysfs.
 */
static int restore(struct proxy *proxy, unsigned int cpu)
{
	struct clock_event_device *lapic_device = proxy->lapic_device;
	/* It may also have been released with its CPU. */
	bool unbound = list_empty(&proxy->device.list) ||
		       proxy->device.list.next == LIST_POISON1;
	int ret;

	if (!unbound && list_empty(&lapic_device->list)) {
		pr_warn_once("proxy: CPU %u has lost its LAPIC clock event device; registering it again\n",
			     cpu);
		clockevents_register_device(lapic_device);
	}
	if (unbound)
		return 0;
	/* Only now: see interpose(). */
	if (!proxy->c3stop)
		lapic_device->features &= ~CLOCK_EVT_FEAT_C3STOP;
	ret = clockevents_unbind_device(&proxy->device, cpu);
	if (ret)
		lapic_device->features |= CLOCK_EVT_FEAT_C3STOP;
	return ret;
}

/* The kernel has released the proxy's device: the LAPIC's must not call the proxy any more. */
static void release(void *unused)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);
	struct clock_event_device *lapic_device = proxy->lapic_device;
	unsigned long flags;

	local_irq_save(flags);
	if (lapic_device->event_handler == proxy_interrupt) {
		/* The kernel's tick uses another device, so stop the hardware here. */
		lapic_device->set_state_shutdown(lapic_device);
		lapic_device->event_handler = proxy->noop;
	}
	proxy->lapic_device = NULL;
	local_irq_restore(flags);
}

static int proxy_detach(void)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);
	unsigned int cpu = smp_processor_id(), tries;
	int ret;

	WRITE_ONCE(proxy->leaving, true);
	irq_work_sync(&proxy->unbound);
	for (tries = 1; (ret = restore(proxy, cpu)); tries++) {
		if (tries == RESTORE_TRIES) {
			/* The device continues to serve the kernel meanwhile. */
			WRITE_ONCE(proxy->leaving, false);
			pr_err("proxy: the kernel has no replacement for our clock event device on CPU %u: the LAPIC's is %s\n",
			       cpu, clockevent_state_detached(proxy->lapic_device) ?
				    "not accepted" : "in use elsewhere");
			return ret;
		}
		msleep(RESTORE_MS);
	}
	/*
	 * Also if the device was unbound: the kernel may then broadcast with it from
	 * another CPU.
	 */
	if (!proxy->c3stop)
		proxy->lapic_device->features &= ~CLOCK_EVT_FEAT_C3STOP;
	release(NULL);
	return 0;
}

/* Release the device of a CPU that stays online, if the kernel returns it. */
static void remove_online(struct proxy *proxy, unsigned int cpu)
{
	/* If the work has already read @leaving, it registers the device again. */
	irq_work_sync(&proxy->unbound);
	if (restore(proxy, cpu))
		return;
	smp_call_function_single(cpu, release, NULL, true);
	/* Work that was queued just before, by code that had already read @leaving. */
	irq_work_sync(&proxy->unbound);
}

/*
 * Wait until all devices are released, because this code is freed on return. CPUs
 * may go offline meanwhile, which releases their devices.
 */
static void proxy_remove(void)
{
	struct proxy *proxy;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		proxy = per_cpu_ptr(&proxies, cpu);
		while (proxy->lapic_device) {
			WRITE_ONCE(proxy->leaving, true);
			cpus_read_lock();
			if (cpu_online(cpu))
				remove_online(proxy, cpu);
			else
				proxy->lapic_device = NULL;
			cpus_read_unlock();
			if (proxy->lapic_device)
				msleep(REMOVE_MS);
		}
	}
}

static void proxy_refine(void)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);

	/* The programmed event stays as it is; the next one uses the new rate. */
	proxy->mult = apic_timer_tsc_mult(apic_timer_tsc_khz());
	apic_timer_lapic_refine(&proxy->lapic);
}

/*
 * Check whether the kernel programs the LAPIC itself. It does from the moment that
 * sysfs unbinds the proxy's device until reinterpose(), which waits for the kernel's
 * tick; this tick must not be overwritten. reinterpose() then programs for the timers.
 */
static bool kernel_has_lapic(const struct proxy *proxy)
{
	return unlikely(!clockevent_state_detached(proxy->lapic_device));
}

static u64 proxy_program(u64 fire)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);

	if (kernel_has_lapic(proxy))
		return 0;
	return apic_timer_lapic_program(&proxy->lapic, fire);
}

static void proxy_stop(void)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);

	if (!kernel_has_lapic(proxy))
		apic_timer_lapic_stop(&proxy->lapic);
}

static bool proxy_alive(bool fired)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);

	return kernel_has_lapic(proxy) || apic_timer_lapic_alive(&proxy->lapic, fired);
}

static void proxy_recover(void)
{
	struct proxy *proxy = this_cpu_ptr(&proxies);

	if (!kernel_has_lapic(proxy))
		setup_hw(proxy);
}

static void proxy_describe(unsigned int cpu, struct apic_timer_info *info)
{
	apic_timer_lapic_describe(info, &per_cpu(proxies, cpu).lapic);
}

struct apic_timer_source apic_timer_source_proxy = {
	.name = "proxy",
	.shared = true,
	.probe = proxy_probe,
	.remove = proxy_remove,
	.attach = proxy_attach,
	.detach = proxy_detach,
	.refine = proxy_refine,
	.program = proxy_program,
	.stop = proxy_stop,
	.alive = proxy_alive,
	.recover = proxy_recover,
	.describe = proxy_describe,
};
