// SPDX-License-Identifier: GPL-2.0
/*
 * Takes over the kernel's events by the hook of the kernel patches, and programs the timer for
 * them and for its own shots, one every millisecond; on unloading it prints what it has seen. With
 * nolapic_timer there are only its own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/clockchips.h>
#include <linux/cpu.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/smp.h>

#include <asm/apic.h>
#include <asm/irq_regs.h>
#include <asm/irq_vectors.h>
#include <asm/lapic_hook.h>
#include <asm/tsc.h>

#define PERIOD_US 1000

struct probe {
	u64 kernel, own;	/* TSC; 0 is none */
	bool attached;
	unsigned long shots, events, programmed, stopped, passed_on, wrong;
	u64 worst;	/* TSC cycles from a shot's due time to interrupt() */
};

static DEFINE_PER_CPU(struct probe, probes);
static u32 ticks_khz;	/* of the timer, after its divider of 16 */

static void arm(struct probe *p)
{
	u64 next = min(p->own, p->kernel ?: U64_MAX), now = rdtsc();
	u64 ns = next > now ? div_u64((next - now) * USEC_PER_SEC, tsc_khz) : 0;

	apic->write(APIC_TMICT, max_t(u64, div_u64(ns * ticks_khz, USEC_PER_SEC), 1));
}

static bool probe_interrupt(struct pt_regs *regs)
{
	struct probe *p = this_cpu_ptr(&probes);
	u64 now = rdtsc();

	if (!p->attached)
		return false;
	p->wrong += !in_hardirq() || !irqs_disabled() || get_irq_regs() != regs;
	if (now >= p->own) {
		p->worst = max(p->worst, now - p->own);
		p->shots++;
		while (p->own <= now)
			p->own += (u64)PERIOD_US * tsc_khz / 1000;
	}
	if (p->kernel && now >= p->kernel)
		return false;
	arm(p);
	return true;
}

static void probe_event(struct clock_event_device *device)
{
	struct probe *p = this_cpu_ptr(&probes);

	if (p->attached && !(p->kernel && rdtsc() >= p->kernel)) {
		p->passed_on++;
		arm(p);
		return;
	}
	p->events++;
	p->kernel = 0;
	if (device->event_handler && !lapic_timer_hook_exclusive())
		device->event_handler(device);
	if (p->attached)
		arm(p);
}

static bool probe_program(struct clock_event_device *device, u64 tsc)
{
	struct probe *p = this_cpu_ptr(&probes);

	if (!p->attached)
		return false;
	p->programmed++;
	p->kernel = tsc;
	arm(p);
	return true;
}

static bool probe_start(struct clock_event_device *device)
{
	return this_cpu_read(probes.attached);
}

static bool probe_stop(struct clock_event_device *device)
{
	struct probe *p = this_cpu_ptr(&probes);

	if (!p->attached)
		return false;
	p->stopped++;
	p->kernel = 0;
	return true;
}

static const struct lapic_timer_hook hook = {
	.interrupt = probe_interrupt,
	.event = probe_event,
	.program = probe_program,
	.start = probe_start,
	.stop = probe_stop,
};

static const struct lapic_timer_hook incomplete = { .event = probe_event };

static void attach(void *unused)
{
	struct probe *p = this_cpu_ptr(&probes);

	p->own = rdtsc() + (u64)PERIOD_US * tsc_khz / 1000;
	/* The moment that the kernel has programmed is unknown: due at once does no harm. */
	p->kernel = lapic_timer_hook_exclusive() ? 0 : rdtsc();
	apic->write(APIC_TDCR, APIC_TDR_DIV_16);
	apic->write(APIC_LVTT, LOCAL_TIMER_VECTOR);
	p->attached = true;
	this_cpu_write(lapic_timer_hook_first, true);
	arm(p);
}

/* Leave the kernel's event programmed, due at once if it is unknown. */
static void detach(void *unused)
{
	struct probe *p = this_cpu_ptr(&probes);

	p->attached = false;
	this_cpu_write(lapic_timer_hook_first, false);
	if (lapic_timer_hook_exclusive()) {
		apic->write(APIC_LVTT, APIC_LVT_MASKED | LOCAL_TIMER_VECTOR);
		apic->write(APIC_TMICT, 0);
		return;
	}
	p->own = U64_MAX;
	if (p->kernel)
		arm(p);
	else
		apic->write(APIC_TMICT, 0);
}

/* Count the timer's ticks for 10 ms. */
static void calibrate(void *unused)
{
	u64 start, cycles = 10ULL * tsc_khz;
	unsigned long flags;
	u32 left;

	local_irq_save(flags);
	apic->write(APIC_TDCR, APIC_TDR_DIV_16);
	apic->write(APIC_LVTT, APIC_LVT_MASKED | LOCAL_TIMER_VECTOR);
	apic->write(APIC_TMICT, U32_MAX);
	start = rdtsc();
	while (rdtsc() - start < cycles)
		cpu_relax();
	left = apic->read(APIC_TMCCT);
	cycles = rdtsc() - start;
	ticks_khz = mul_u64_u64_div_u64(U32_MAX - left, tsc_khz, cycles);
	/* The kernel's event was lost: make its handler run soon. */
	apic->write(APIC_LVTT, lapic_timer_hook_exclusive() ? APIC_LVT_MASKED | LOCAL_TIMER_VECTOR :
							     LOCAL_TIMER_VECTOR);
	apic->write(APIC_TMICT, 1);
	local_irq_restore(flags);
}

static int __init probe_init(void)
{
	int ret;

	/* The kernel does not use the deadline MSR. */
	if (boot_cpu_has(X86_FEATURE_TSC_DEADLINE_TIMER))
		return -ENODEV;
	if (lapic_timer_hook_register(&incomplete) != -EINVAL)
		return -EBADE;
	smp_call_function_single(0, calibrate, NULL, 1);
	ret = lapic_timer_hook_register(&hook);
	if (ret)
		return ret;
	if (lapic_timer_hook_register(&hook) != -EBUSY)
		pr_err("registered twice\n");
	on_each_cpu(attach, NULL, 1);
	pr_info("%s, %u timer ticks per ms\n",
		lapic_timer_hook_exclusive() ? "exclusive" : "shared", ticks_khz);
	return 0;
}

static void __exit probe_exit(void)
{
	int cpu;

	on_each_cpu(detach, NULL, 1);
	lapic_timer_hook_unregister(&hook);
	for_each_online_cpu(cpu) {
		struct probe *p = per_cpu_ptr(&probes, cpu);

		pr_info("cpu=%d shots=%lu events=%lu programmed=%lu stopped=%lu passed_on=%lu wrong=%lu worst=%llu\n",
			cpu, p->shots, p->events, p->programmed, p->stopped, p->passed_on,
			p->wrong, p->worst);
	}
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("Probe of the local APIC timer's hook");
MODULE_LICENSE("GPL");
