// SPDX-License-Identifier: GPL-2.0
/*
 * Choose a source, and attach CPUs to it as they come online and go offline.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/string.h>

#include <trace/events/apic_timer.h>

#include "attach.h"
#include "lib/refuse.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "qos_requests.h"
#include "timers/base.h"
#include "timers/calibrate.h"
#include "timers/drain.h"
#include "tsc/tsc.h"

/* Set by Kbuild if the kernel lets a module have the vector. */
#ifndef APIC_TIMER_HOOK
#define APIC_TIMER_HOOK	0
#endif

static char *source = "auto";
module_param(source, charp, 0444);
MODULE_PARM_DESC(source, "source of timer interrupts: auto, hook, proxy or hrtimer");

/* In order of preference */
static const struct apic_timer_source * const sources[] = {
#ifdef CONFIG_APIC_TIMER_SIM
	&apic_timer_source_sim,
#else
#if APIC_TIMER_HOOK
	&apic_timer_source_hook,
#endif
	&apic_timer_source_proxy,
	&apic_timer_source_hrtimer,
#endif
};

static enum cpuhp_state hotplug_state;

/* The rate of the TSC that sources use for conversion, or an older one */
static u32 tsc_khz_known;

/* The source is being attached to all CPUs, or detached from them. */
static bool changing;

/* The source serves this CPU. Set and cleared by its hotplug callbacks. */
static DEFINE_PER_CPU(bool, attached);

static void go_online(void)
{
	apic_timer_watchdog_online();
	apic_timer_qos_online();
	apic_timer_base_online();
}

static int attach_cpu(unsigned int cpu)
{
	int ret;

	apic_timer_mux_reset();
	apic_timer_calibrate();

	ret = apic_timer_source->attach();
	if (ret) {
		/* While a source is being chosen, an error lets another one be tried. */
		if (changing)
			return ret;
		/* Later, an error would keep the CPU from coming online. */
		pr_err("CPU %u does not accept timers: error %d\n", cpu, ret);
		return 0;
	}
	this_cpu_write(attached, true);
	go_online();
	trace_apic_timer_source_attach(apic_timer_source->name, cpu);
	return 0;
}

static int detach_cpu(unsigned int cpu)
{
	int ret;

	if (!this_cpu_read(attached))
		return 0;
	apic_timer_drain_cpu();
	apic_timer_qos_offline();
	apic_timer_watchdog_offline();
	ret = apic_timer_source->detach();
	if (ret) {
		/* The source is removed: @remove waits. The kernel expects 0 here. */
		if (changing)
			return 0;
		/* The CPU stays online. */
		go_online();
		return ret;
	}
	this_cpu_write(attached, false);
	apic_timer_mux_reset();
	trace_apic_timer_source_detach(apic_timer_source->name, cpu);
	return 0;
}

/* Supported modes, for &apic_timer_info.modes */
#define MODES	(BIT(APIC_TIMER_RAW) | BIT(APIC_TIMER_MEAN) | \
		 BIT(APIC_TIMER_EXACT))

/**
 * apic_timer_query() - describe the source and hardware of a CPU's timers
 * @cpu:	the CPU
 * @info:	filled in
 *
 * Context: Any.
 * Return:
 * * %0 - @info is filled in
 * * %-EINVAL - there is no such CPU, or @info is NULL
 * * %-ENODEV - @cpu is offline or does not accept timers; @info is filled in as far
 *   as known
 */
int apic_timer_query(int cpu, struct apic_timer_info *info)
{
	if (unlikely(!info))
		return apic_timer_refuse(-EINVAL, APIC_TIMER_CALLER,
					 "no buffer for the answer to a query");
	if (cpu < 0 || cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;

	*info = (struct apic_timer_info) {
		.source = apic_timer_source->name,
		.tsc_kind = apic_timer_tsc_kind(),
		.tsc_stable = apic_timer_tsc_stable(),
		.tsc_epoch = apic_timer_epoch(),
		.tsc_khz = apic_timer_tsc_khz(),
		.modes = MODES,
	};
	if (!READ_ONCE(apic_timer_base_of(cpu)->online))
		return -ENODEV;
	apic_timer_source->describe(cpu, info);
	return 0;
}
EXPORT_SYMBOL_GPL(apic_timer_query);

/**
 * apic_timer_attach_hardware_name() - get the name of a hardware mode
 * @info:	of a CPU
 *
 * Return: a short phrase.
 */
const char *apic_timer_attach_hardware_name(const struct apic_timer_info *info)
{
	switch (info->hardware) {
	case APIC_TIMER_HW_TSC_DEADLINE:
		return info->x2apic ? "TSC-deadline LAPIC timer, x2APIC" :
				      "TSC-deadline LAPIC timer, xAPIC";
	case APIC_TIMER_HW_ONESHOT:
		return info->x2apic ? "one-shot LAPIC timer, x2APIC" :
				      "one-shot LAPIC timer, xAPIC";
	case APIC_TIMER_HW_HRTIMER:
		return "kernel hrtimers";
	case APIC_TIMER_HW_SIMULATED:
		return "simulated LAPIC timer";
	default:
		return "none";
	}
}

static void remove_source(void)
{
	if (apic_timer_source->remove)
		apic_timer_source->remove();
}

/* Try one source on all CPUs. */
static int use(const struct apic_timer_source *candidate)
{
	int ret = candidate->probe();

	if (ret)
		return ret;

	apic_timer_source = candidate;
	changing = true;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "apic_timer:online",
				attach_cpu, detach_cpu);
	if (ret < 0) {
		remove_source();
		return ret;
	}
	changing = false;
	hotplug_state = ret;
	return 0;
}

static void announce(const char *reason)
{
	struct apic_timer_info info;
	unsigned int cpu = cpumask_first(cpu_online_mask);

	apic_timer_query(cpu, &info);
	pr_info("source %s (%s%s) serves CPUs %*pbl: %s; TSC %u.%03u MHz, %s\n",
		apic_timer_source->name, reason,
		info.exclusive ? ", exclusive" : "",
		cpumask_pr_args(cpu_online_mask),
		apic_timer_attach_hardware_name(&info),
		info.tsc_khz / 1000, info.tsc_khz % 1000,
		apic_timer_tsc_kind_name(info.tsc_kind));
}

static void refine(void *unused)
{
	if (this_cpu_read(apic_timer_base.online))
		apic_timer_source->refine();
}

/**
 * apic_timer_attach_refine() - use the rate of the TSC that the kernel has refined
 *
 * The kernel refines it once, a second or two after boot, by less than 1%. If the module
 * was loaded before that, for example from an initial RAM disk, it would keep the first
 * estimate. The sources and the length of a tick are converted again. Limits that were
 * converted when the module was loaded (spin_budget_ns, defer_ns, late_ns, busy_us,
 * watchdog_ms) are not, because no limit has to be exact to 1%.
 *
 * Context: Task context; called periodically.
 */
void apic_timer_attach_refine(void)
{
	u32 khz = apic_timer_tsc_khz();

	if (khz == tsc_khz_known)
		return;
	/* A CPU that is attached from now on reads the new rate. */
	cpus_read_lock();
	tsc_khz_known = khz;
	apic_timer_mux_set_tick();
	if (apic_timer_source->refine)
		on_each_cpu(refine, NULL, true);
	cpus_read_unlock();
	if (apic_timer_source->refine)
		pr_info("the kernel has refined the rate of the TSC: %u.%03u MHz\n",
			khz / 1000, khz % 1000);
}

/**
 * apic_timer_attach_init() - choose a source and attach it to all CPUs
 *
 * Return: 0; -EINVAL for a source of unknown name; otherwise the error of the requested
 * source, or of the last one tried. All CPUs are left as they were then.
 */
int apic_timer_attach_init(void)
{
	bool automatic = !strcmp(source, "auto");
	int ret = -EINVAL;
	unsigned int i;

	tsc_khz_known = apic_timer_tsc_khz();
	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!automatic && strcmp(source, sources[i]->name))
			continue;
		ret = use(sources[i]);
		if (!ret) {
			announce(!automatic ? "requested" :
				 i ? "preferred sources unavailable" :
				     "first choice");
			return 0;
		}
		if (!automatic)
			break;
	}

	if (!APIC_TIMER_HOOK && !strcmp(source, "hook"))
		pr_err("source hook is not available: this kernel does not let modules use the LAPIC timer's vector\n");
	else if (ret == -EINVAL && i == ARRAY_SIZE(sources))
		pr_err("unknown source \"%s\"\n", source);
	else
		pr_err("source %s can't be used: error %d\n", source, ret);
	return ret;
}

/**
 * apic_timer_attach_exit() - detach all CPUs
 */
void apic_timer_attach_exit(void)
{
	changing = true;
	cpuhp_remove_state(hotplug_state);
	remove_source();
}
