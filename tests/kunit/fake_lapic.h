/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_KUNIT_FAKE_LAPIC_H
#define _APIC_TIMER_KUNIT_FAKE_LAPIC_H

#include <kunit/test.h>
#include <linux/clockchips.h>
#include <linux/suspend.h>
#include <linux/types.h>

struct irq_work;

/**
 * struct fake_apic - driver of the fake LAPIC, like the kernel's struct apic
 * @read:	read a register
 * @write:	write a register
 */
struct fake_apic {
	u32 (*read)(u32 reg);
	void (*write)(u32 reg, u32 value);
};

/* on_fake_lapic.c gives it to lapic.c in place of the kernel's. */
extern const struct fake_apic *apic;

/**
 * struct fake_machine - the LAPIC timer and the tick of the only CPU
 * @hz:		rate of the undivided counter in Hz; 0: TSC-deadline mode
 * @tsc_hz:	true rate of the TSC, in Hz; what the kernel believes is
 *		apic_timer_sim.machine.tsc_khz
 * @latency:	TSC cycles from the timer's firing to its interrupt
 * @lvtt:	register
 * @tdcr:	register
 * @active:	the timer is running
 * @fires:	TSC at which it fires, if @active
 * @interrupts:	number of its interrupts
 * @lapic:	the kernel's clock event device for it
 * @hpet:	the kernel's device for broadcasting the tick
 * @tick:	the kernel's tick device
 * @broadcast:	the device for broadcasting the tick
 * @keep:	the kernel accepts no other tick device
 * @period_ns:	period of the kernel's events; 0: it wants none
 * @events:	number of calls of the kernel's handler
 * @early:	number of those before the event had expired
 * @late_ns:	longest time from an event's expiry to its handler
 * @queued:	irq_work waiting for the next tick
 * @sleeps:	number of calls of msleep()
 * @free:	a device that is detached after some calls of msleep(), or NULL
 * @registered:	called when a device was registered, or NULL
 * @offline:	the CPU is offline
 * @suspending:	state that the machine is being suspended to
 * @stuck:	a caller waited for irq_work that the offline CPU does not run
 */
struct fake_machine {
	u64 hz;
	u64 tsc_hz;
	u64 latency;
	u32 lvtt;
	u32 tdcr;
	bool active;
	u64 fires;
	unsigned long interrupts;
	struct clock_event_device lapic;
	struct clock_event_device hpet;
	struct clock_event_device *tick;
	struct clock_event_device *broadcast;
	bool keep;
	u64 period_ns;
	unsigned long events;
	unsigned long early;
	u64 late_ns;
	struct irq_work *queued;
	unsigned int sleeps;
	struct clock_event_device *free;
	void (*registered)(struct clock_event_device *device);
	bool offline;
	suspend_state_t suspending;
	bool stuck;
};

extern struct fake_machine fake;

/*
 * Combinations that a source must handle: kHz; and Hz, 0 for TSC-deadline mode. From 4294968 kHz
 * on, a rate in Hz takes more than 32 bits.
 */
extern const u32 fake_tsc_rates[11];
extern const u64 fake_lapic_rates[6];

void fake_start(struct kunit *test, u32 tsc_khz, u64 lapic_hz);
void fake_stop(struct kunit *test);
void fake_run(u64 ns);
void fake_idle(void);
void fake_busy(void);
u64 fake_ktime(void);
void fake_refined(void);
void fake_register(struct clock_event_device *device);
unsigned int fake_devices(void);
bool fake_is_unused(const struct clock_event_device *device);
int fake_unbind(struct clock_event_device *device);
void fake_irq_work_run(void);
void fake_offline(void);
void fake_freeze(void);
void fake_thaw(void);

/* Replacement of the kernel's, for on_fake_lapic.c. */
void fake_config_and_register(struct clock_event_device *device, u32 freq,
			      unsigned long min_delta, unsigned long max_delta);
int fake_unbind_device(struct clock_event_device *device, int cpu);
void fake_wrmsr(u32 msr, u64 value);
u64 fake_rdmsr(u32 msr);
bool fake_irq_work_queue(struct irq_work *work);
void fake_irq_work_sync(struct irq_work *work);
void fake_msleep(unsigned int ms);

#endif /* _APIC_TIMER_KUNIT_FAKE_LAPIC_H */
