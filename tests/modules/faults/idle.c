// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_idle: idle states for a guest that has none, so that the kernel's
 * governor has a choice: polling, one like C1, and a deep one like C6.
 *
 * Waking from the deep one takes time, as on hardware: it waits with interrupts off until there is
 * one, and admits it @exit_us later. That is for one CPU: with several in virtual time, one that
 * waits like this delays the others. The choices of each CPU are in
 * /sys/devices/system/cpu/cpuN/cpuidle/stateM/time and usage.
 *
 * It is for guests with a LAPIC whose IRR shows all interrupts.
 */
#include <linux/cpuidle.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <asm/apic.h>
#include <asm/tsc.h>

/* The last of these have the LAPIC's own interrupts, and those between CPUs. */
#define IRR_WORDS	8
/* Each read of an emulated LAPIC is slow. */
#define LOOK_US		10
#define LOOK_AT_ALL	100

static unsigned int exit_us = 133;
module_param(exit_us, uint, 0444);
MODULE_PARM_DESC(exit_us, "time to wake from the deep state, in us; 0: no longer than from the other, regardless of the latency that the governor reads");

static u64 loops_per_us;

/* An emulator is slow at everything except plain arithmetic. */
static void wait_loops(u64 loops)
{
	while (loops--)
		barrier();
}

static void wait_us(unsigned int us)
{
	wait_loops(us * loops_per_us);
}

static void measure_loops(void)
{
	u64 loops = 100000, start, cycles;
	unsigned long flags;

	local_irq_save(flags);
	start = rdtsc();
	wait_loops(loops);
	cycles = rdtsc() - start;
	local_irq_restore(flags);
	loops_per_us = div64_u64(loops * (tsc_khz / 1000), cycles);
}

static bool interrupt_waits(unsigned int looks)
{
	unsigned int i = looks % LOOK_AT_ALL ? IRR_WORDS - 1 : 0;
	u32 all = 0;

	for (; i < IRR_WORDS; i++)
		all |= apic->read(APIC_IRR + i * 0x10);
	return all;
}

static int enter_shallow(struct cpuidle_device *device,
			 struct cpuidle_driver *driver, int index)
{
	asm volatile("sti; hlt; cli" : : : "memory");
	return index;
}

static int enter_deep(struct cpuidle_device *device,
		      struct cpuidle_driver *driver, int index)
{
	unsigned int looks = 0;

	if (!exit_us)
		return enter_shallow(device, driver, index);
	while (!interrupt_waits(looks++) && !need_resched())
		wait_us(LOOK_US);
	wait_us(exit_us);
	return index;
}

/* Each device would hold its owner: the module could never be unloaded. */
static struct cpuidle_driver driver = {
	.name = "apic_timer_idle",
	.states = {
		[1] = {
			.name = "SHALLOW",
			.desc = "as C1",
			.exit_latency = 2,
			.target_residency = 2,
			.enter = enter_shallow,
		},
		[2] = {
			.name = "DEEP",
			.desc = "as C6",
			.enter = enter_deep,
		},
	},
	.state_count = 3,
};

static int __init idle_init(void)
{
	measure_loops();
	driver.states[2].exit_latency = exit_us ?: 133;
	driver.states[2].target_residency = 5 * driver.states[2].exit_latency;
	cpuidle_poll_state_init(&driver);
	return cpuidle_register(&driver, NULL);
}

static void __exit idle_exit(void)
{
	cpuidle_unregister(&driver);
}

module_init(idle_init);
module_exit(idle_exit);

MODULE_DESCRIPTION("An idle driver for guests that have none");
MODULE_LICENSE("GPL");
