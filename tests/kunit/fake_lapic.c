// SPDX-License-Identifier: GPL-2.0
/*
 * A LAPIC timer, the kernel's clock event core and its tick, as far as the
 * sources of timer interrupts use them. Time is the simulated TSC.
 *
 * The core does what kernel/time/clockevents.c and tick-common.c of Linux 6.1
 * do for one CPU in one-shot mode. Comments there are not repeated here. The
 * kernel's tick is one event that is due each @period_ns.
 */
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/time64.h>
#include <asm/apicdef.h>
#include <asm/lapic_hook.h>
#include <asm/msr-index.h>

#include "fake_lapic.h"
#include "machine.h"
#include "mux/mux.h"
#include "mux/source.h"
#include "mux/watchdog.h"
#include "policy/lead.h"
#include "policy/mode.h"
#include "timers/base.h"
#include "timers/dispatch.h"

#define TIMER_VECTOR	0xec
#define IRR		(APIC_IRR + TIMER_VECTOR / 32 * 0x10)
/* Enough for any test, except one that is caught in a loop of interrupts. */
#define INTERRUPTS_MAX	20000

/* Number of sleeps after which @free becomes free. */
#define SLEEPS_WAIT	70

const u32 fake_tsc_rates[] = {
	500000, 700000, 1000000, 2899999, 4294967, 4294968, 4300000, 4500000,
	5000000, 6000000, 8000000,
};

const u64 fake_lapic_rates[] = {
	0, 24000000, 25000000, 100000000, 200000000, 1000000000,
};

struct fake_machine fake;

static LIST_HEAD(devices);
static LIST_HEAD(released);

/* The hardware */

static unsigned int divider(void)
{
	return ((fake.tdcr & 3) + (fake.tdcr >> 1 & 4) + 1) & 7;
}

static u32 apic_read(u32 reg)
{
	switch (reg) {
	case APIC_LVTT:
		return fake.lvtt;
	case APIC_TDCR:
		return fake.tdcr;
	case APIC_TMCCT:
		return fake.active && fake.hz;
	case IRR:
		return fake.active && fake.fires <= apic_timer_sim.now ?
			BIT(TIMER_VECTOR % 32) : 0;
	default:
		return 0;
	}
}

static void apic_write(u32 reg, u32 value)
{
	switch (reg) {
	case APIC_LVTT:
		fake.lvtt = value;
		fake.active &= !(value & APIC_LVT_MASKED);
		break;
	case APIC_TDCR:
		fake.tdcr = value;
		break;
	case APIC_TMICT:
		fake.active = value && !(fake.lvtt & APIC_LVT_MASKED);
		fake.fires = apic_timer_sim.now +
			apic_timer_sim_ticks_to_cycles((u64)value << divider(),
						       fake.tsc_hz, fake.hz);
		break;
	}
}

static const struct fake_apic fake_apic = {
	.read = apic_read,
	.write = apic_write,
};

const struct fake_apic *apic = &fake_apic;

/**
 * fake_wrmsr() - write an MSR
 * @msr:	MSR_IA32_TSC_DEADLINE; others are left alone
 * @value:	value
 */
void fake_wrmsr(u32 msr, u64 value)
{
	if (msr != MSR_IA32_TSC_DEADLINE || fake.hz)
		return;
	fake.active = value && !(fake.lvtt & APIC_LVT_MASKED);
	fake.fires = value;
}

/**
 * fake_rdmsr() - read an MSR
 * @msr:	MSR_IA32_TSC_DEADLINE
 *
 * Return: its value, 0 once the timer has fired.
 */
u64 fake_rdmsr(u32 msr)
{
	return fake.active ? fake.fires : 0;
}

/* The patched kernel's hook: arch/x86/kernel/apic/lapic_hook.c */

DEFINE_PER_CPU(bool, lapic_timer_hook_first);

static const struct lapic_timer_hook *hook;

/**
 * lapic_timer_hook_register() - as in the patched kernel
 * @wanted:	hook
 *
 * Return: 0; -EBUSY if there already is one.
 */
int lapic_timer_hook_register(const struct lapic_timer_hook *wanted)
{
	if (hook)
		return -EBUSY;
	hook = wanted;
	return 0;
}

/**
 * lapic_timer_hook_unregister() - undo lapic_timer_hook_register()
 * @was:	hook
 */
void lapic_timer_hook_unregister(const struct lapic_timer_hook *was)
{
	hook = NULL;
}

/* The kernel's clock event device for the LAPIC timer: arch/x86/kernel/apic/apic.c */

static u64 ticks_to_tsc(unsigned long ticks)
{
	if (fake.hz)
		return apic_timer_sim.now +
			apic_timer_sim_ticks_to_cycles(ticks * 16, fake.tsc_hz, fake.hz);
	return apic_timer_sim.now + ticks * 8;
}

static int lapic_next(unsigned long ticks, struct clock_event_device *device)
{
	if (hook && hook->program(device, ticks_to_tsc(ticks)))
		return 0;
	if (fake.hz)
		apic_write(APIC_TMICT, ticks);
	else
		fake_wrmsr(MSR_IA32_TSC_DEADLINE, ticks_to_tsc(ticks));
	return 0;
}

static int lapic_oneshot(struct clock_event_device *device)
{
	if (hook && hook->start(device))
		return 0;
	fake.lvtt = TIMER_VECTOR | (fake.hz ? 0 : 2 << 17);
	fake.tdcr = 0x3;	/* divide by 16 */
	return 0;
}

static int lapic_shutdown(struct clock_event_device *device)
{
	if (hook && hook->stop(device))
		return 0;
	fake.lvtt |= APIC_LVT_MASKED;
	fake.active = false;
	return 0;
}

/* kernel/time/clockevents.c */

static int hpet_next(unsigned long ticks, struct clock_event_device *device)
{
	return 0;
}

static void noop(struct clock_event_device *device)
{
}

static void kernel_event(struct clock_event_device *device);

/**
 * fake_ktime() - read the kernel's clock, which runs by the TSC
 *
 * Return: ns.
 */
u64 fake_ktime(void)
{
	return mul_u64_u64_div_u64(apic_timer_sim.now, NSEC_PER_SEC, fake.tsc_hz);
}

static void switch_state(struct clock_event_device *device,
			 enum clock_event_state state)
{
	int (*set)(struct clock_event_device *device) = NULL;

	if (device->state_use_accessors == state)
		return;
	if (state == CLOCK_EVT_STATE_ONESHOT)
		set = device->set_state_oneshot;
	else if (state == CLOCK_EVT_STATE_ONESHOT_STOPPED)
		set = device->set_state_oneshot_stopped;
	else
		set = device->set_state_shutdown;
	if (set)
		set(device);
	device->state_use_accessors = state;
}

static void program_event(struct clock_event_device *device, ktime_t expires)
{
	s64 delta = expires - fake_ktime();

	device->next_event = expires;
	if (clockevent_state_shutdown(device))
		return;
	if (expires == KTIME_MAX) {
		switch_state(device, CLOCK_EVT_STATE_ONESHOT_STOPPED);
		return;
	}
	switch_state(device, CLOCK_EVT_STATE_ONESHOT);
	delta = clamp_t(s64, delta, device->min_delta_ns, device->max_delta_ns);
	device->set_next_event(((u64)delta * device->mult) >> device->shift, device);
}

/* As hrtimer_interrupt() */
static void kernel_event(struct clock_event_device *device)
{
	u64 now = fake_ktime(), expires = device->next_event;

	fake.events++;
	if (now < expires) {
		fake.early++;
	} else {
		fake.late_ns = max(fake.late_ns, now - expires);
		while (fake.period_ns && expires <= now)
			expires += fake.period_ns;
	}
	program_event(device, fake.period_ns ? expires : KTIME_MAX);
}

static u64 delta2ns(unsigned long latch, struct clock_event_device *device,
		    bool is_max)
{
	u64 clc = (u64)latch << device->shift, rnd = device->mult - 1;

	if (clc >> device->shift != latch)
		clc = U64_MAX;
	if (U64_MAX - clc > rnd && (!is_max || device->mult <= 1ULL << device->shift))
		clc += rnd;
	clc = div_u64(clc, device->mult);
	return max(clc, 1000ULL);
}

static void config(struct clock_event_device *device, u32 freq)
{
	u64 sec = div_u64(device->max_delta_ticks, freq);

	if (!sec)
		sec = 1;
	else if (sec > 600 && device->max_delta_ticks > UINT_MAX)
		sec = 600;
	clockevents_calc_mult_shift(device, freq, sec);
	device->min_delta_ns = delta2ns(device->min_delta_ticks, device, false);
	device->max_delta_ns = delta2ns(device->max_delta_ticks, device, true);
}

static void exchange(struct clock_event_device *old,
		     struct clock_event_device *new)
{
	if (old) {
		switch_state(old, CLOCK_EVT_STATE_DETACHED);
		list_move(&old->list, &released);
	}
	if (!new)
		return;
	switch_state(new, CLOCK_EVT_STATE_SHUTDOWN);
	new->next_event = KTIME_MAX;
}

/* tick_install_replacement() and tick_setup_device() */
static void install(struct clock_event_device *device)
{
	ktime_t next = fake.tick ? fake.tick->next_event : 0;

	exchange(fake.tick, device);
	if (fake.tick)
		fake.tick->event_handler = noop;
	fake.tick = device;
	device->event_handler = kernel_event;
	switch_state(device, CLOCK_EVT_STATE_ONESHOT);
	program_event(device, next);
}

static bool is_better(const struct clock_event_device *device,
		      const struct clock_event_device *current_device)
{
	return device->features & CLOCK_EVT_FEAT_ONESHOT &&
	       (!current_device || device->rating > current_device->rating);
}

static void check_new(struct clock_event_device *device)
{
	if (is_better(device, fake.tick) && !fake.keep) {
		install(device);
		return;
	}
	if (device->features & (CLOCK_EVT_FEAT_DUMMY | CLOCK_EVT_FEAT_C3STOP) ||
	    !is_better(device, fake.broadcast))
		return;
	exchange(fake.broadcast, device);
	fake.broadcast = device;
	device->event_handler = noop;
	switch_state(device, CLOCK_EVT_STATE_ONESHOT);
}

/**
 * fake_refined() - lapic_update_tsc_freq(): change the rate of the LAPIC's device
 */
void fake_refined(void)
{
	if (!fake.hz)
		config(&fake.lapic, apic_timer_sim.machine.tsc_khz * (1000 / 8));
}

/**
 * fake_register() - clockevents_register_device()
 * @device:	configured
 */
void fake_register(struct clock_event_device *device)
{
	struct clock_event_device *other;
	unsigned long flags;

	local_irq_save(flags);
	device->state_use_accessors = CLOCK_EVT_STATE_DETACHED;
	list_add(&device->list, &devices);
	check_new(device);
	while (!list_empty(&released)) {
		other = list_first_entry(&released, struct clock_event_device, list);
		list_move(&other->list, &devices);
		check_new(other);
	}
	if (fake.registered)
		fake.registered(device);
	local_irq_restore(flags);
}

/**
 * fake_config_and_register() - clockevents_config_and_register()
 * @device:	device
 * @freq:	its rate in Hz: 32 bits, as in the kernel
 * @min_delta:	ticks
 * @max_delta:	ticks
 */
void fake_config_and_register(struct clock_event_device *device, u32 freq,
			      unsigned long min_delta, unsigned long max_delta)
{
	device->min_delta_ticks = min_delta;
	device->max_delta_ticks = max_delta;
	config(device, freq);
	fake_register(device);
}

static int replace(struct clock_event_device *device)
{
	struct clock_event_device *other, *best = NULL;

	list_for_each_entry(other, &devices, list)
		if (other != device && clockevent_state_detached(other) &&
		    is_better(other, best))
			best = other;
	if (!best)
		return -EBUSY;
	install(best);
	list_del_init(&device->list);
	return 0;
}

/**
 * fake_unbind() - common part of both ways to unbind a device
 * @device:	registered
 *
 * Return: 0; -EBUSY.
 */
int fake_unbind(struct clock_event_device *device)
{
	unsigned long flags;
	int ret = -EBUSY;

	local_irq_save(flags);
	if (clockevent_state_detached(device)) {
		list_del_init(&device->list);
		ret = 0;
	} else if (device == fake.tick) {
		ret = replace(device);
	}
	local_irq_restore(flags);
	return ret;
}

/**
 * fake_unbind_device() - clockevents_unbind_device()
 * @device:	registered
 * @cpu:	the only CPU
 *
 * Return: 0; -EBUSY.
 */
int fake_unbind_device(struct clock_event_device *device, int cpu)
{
	return fake_unbind(device);
}

/**
 * fake_offline() - take the CPU offline: tick_offline_cpu() of Linux 7.2
 */
void fake_offline(void)
{
	unsigned long flags;

	local_irq_save(flags);
	fake.offline = true;
	exchange(fake.tick, NULL);
	fake.tick->event_handler = noop;
	list_del(&fake.tick->list);
	fake.tick = NULL;
	local_irq_restore(flags);
}

/**
 * fake_freeze() - suspend to idle: tick_suspend_local()
 */
void fake_freeze(void)
{
	unsigned long flags;

	local_irq_save(flags);
	fake.suspending = PM_SUSPEND_TO_IDLE;
	switch_state(fake.tick, CLOCK_EVT_STATE_SHUTDOWN);
	local_irq_restore(flags);
}

/**
 * fake_thaw() - wake from there: tick_resume_local()
 */
void fake_thaw(void)
{
	unsigned long flags;

	local_irq_save(flags);
	if (fake.tick->resume)
		fake.tick->resume(fake.tick);
	switch_state(fake.tick, CLOCK_EVT_STATE_ONESHOT);
	program_event(fake.tick, fake_ktime() + fake.period_ns);
	fake.suspending = PM_SUSPEND_ON;
	local_irq_restore(flags);
}

/**
 * fake_devices() - count the devices that the kernel knows
 *
 * Return: number.
 */
unsigned int fake_devices(void)
{
	struct list_head *device;
	unsigned int n = 0;

	list_for_each(device, &devices)
		n++;
	return n;
}

/**
 * fake_is_unused() - check that a device is in the state in which the kernel leaves it
 * @device:	device
 *
 * Return: true if so: no function is called for it.
 */
bool fake_is_unused(const struct clock_event_device *device)
{
	return device->event_handler == noop;
}

/* Lazy irq_work, which waits for the next tick, and sleeping */

/**
 * fake_irq_work_queue() - irq_work_queue()
 * @work:	lazy
 *
 * Return: true if it wasn't queued.
 */
bool fake_irq_work_queue(struct irq_work *work)
{
	bool queued = fake.queued == work;

	fake.queued = work;
	return !queued;
}

/**
 * fake_irq_work_sync() - irq_work_sync()
 * @work:	work
 */
void fake_irq_work_sync(struct irq_work *work)
{
	if (fake.queued != work)
		return;
	fake.stuck = fake.offline;
	if (!fake.stuck)
		fake_irq_work_run();
}

/**
 * fake_irq_work_run() - run the queued irq_work
 */
void fake_irq_work_run(void)
{
	struct irq_work *work = fake.queued;
	unsigned long flags;

	fake.queued = NULL;
	local_irq_save(flags);
	if (work)
		work->func(work);
	local_irq_restore(flags);
}

/**
 * fake_msleep() - msleep(), during which nothing else happens
 * @ms:		milliseconds
 */
void fake_msleep(unsigned int ms)
{
	fake.sleeps++;
	if (fake.free && fake.sleeps > SLEEPS_WAIT) {
		fake.free->state_use_accessors = CLOCK_EVT_STATE_DETACHED;
		fake.free = NULL;
	}
}

/**
 * fake_run() - let time pass
 * @ns:		time by the true rate of the TSC
 *
 * Ends early if the interrupts never end.
 *
 * Context: Task, interrupts on.
 */
void fake_run(u64 ns)
{
	u64 until = apic_timer_sim.now +
		mul_u64_u64_div_u64(ns, fake.tsc_hz, NSEC_PER_SEC);
	unsigned long n = 0, flags;

	local_irq_save(flags);
	while (fake.active && n++ < INTERRUPTS_MAX) {
		u64 at = max(fake.fires, apic_timer_sim.now) + fake.latency;

		if (at > until)
			break;
		apic_timer_sim.now = at;
		fake.active = false;
		fake.interrupts++;
		__irq_enter();
		if (!hook)
			fake.lapic.event_handler(&fake.lapic);
		else if (!this_cpu_read(lapic_timer_hook_first) ||
			 !hook->interrupt(NULL))
			hook->event(&fake.lapic);
		__irq_exit();
	}
	if (n <= INTERRUPTS_MAX)
		apic_timer_sim.now = max(apic_timer_sim.now, until);
	local_irq_restore(flags);
}

/**
 * fake_idle() - stop the kernel's tick
 */
void fake_idle(void)
{
	unsigned long flags;

	local_irq_save(flags);
	fake.period_ns = 0;
	program_event(fake.tick, KTIME_MAX);
	local_irq_restore(flags);
}

/**
 * fake_busy() - restart the kernel's tick, every 4 ms
 */
void fake_busy(void)
{
	unsigned long flags;

	local_irq_save(flags);
	fake.period_ns = 4 * NSEC_PER_MSEC;
	program_event(fake.tick, fake_ktime() + fake.period_ns);
	local_irq_restore(flags);
}

/**
 * fake_start() - start a machine whose kernel ticks from its LAPIC timer
 * @test:	the running case
 * @tsc_khz:	rate of the TSC, true and believed
 * @lapic_hz:	rate of the undivided counter in Hz; 0: TSC-deadline mode
 *
 * No source is in use: the case attaches the one it tests.
 */
void fake_start(struct kunit *test, u32 tsc_khz, u64 lapic_hz)
{
	struct apic_timer_sim_machine machine = {
		.tsc_khz = tsc_khz, .cost = 10, .tsc = 1ULL << 40,
	};

	machine_start(test, &machine);
	INIT_LIST_HEAD(&devices);
	INIT_LIST_HEAD(&released);
	fake = (struct fake_machine) {
		.hz = lapic_hz,
		.tsc_hz = tsc_khz * 1000ULL,
		.latency = 300,
		.lvtt = APIC_LVT_MASKED,
		.period_ns = 4 * NSEC_PER_MSEC,
		.hpet = {
			.name = "hpet",
			.features = CLOCK_EVT_FEAT_ONESHOT,
			.rating = 50,
			.cpumask = cpumask_of(0),
			.set_next_event = hpet_next,
		},
		.lapic = {
			.name = lapic_hz ? "lapic" : "lapic-deadline",
			.features = CLOCK_EVT_FEAT_ONESHOT,
			.rating = 150,
			.cpumask = cpumask_of(0),
			.set_next_event = lapic_next,
			.set_state_oneshot = lapic_oneshot,
			.set_state_oneshot_stopped = lapic_shutdown,
			.set_state_shutdown = lapic_shutdown,
		},
	};

	if (lapic_hz) {
		fake.lapic.shift = 32;
		fake.lapic.mult = div_sc(lapic_hz / 16, NSEC_PER_SEC, 32);
		/* The true rate is exactly the one that the kernel believes. */
		fake.hz = mul_u64_u32_shr(16ULL * NSEC_PER_SEC, fake.lapic.mult, 32);
		fake.lapic.max_delta_ns = delta2ns(0x7FFFFF, &fake.lapic, false);
		fake.lapic.min_delta_ns = delta2ns(0xF, &fake.lapic, false);
		fake_register(&fake.lapic);
	} else {
		fake_config_and_register(&fake.lapic, tsc_khz * (1000 / 8), 0xF, ~0UL);
	}
	fake_config_and_register(&fake.hpet, 14318180, 128, 0x7FFFFFFF);
	KUNIT_ASSERT_PTR_EQ(test, fake.tick, &fake.lapic);
	KUNIT_ASSERT_PTR_EQ(test, fake.broadcast, &fake.hpet);
	fake_busy();
}

/**
 * fake_stop() - check that the kernel ticks from its LAPIC timer as before
 * @test:	the running case
 */
void fake_stop(struct kunit *test)
{
	unsigned long events;

	KUNIT_EXPECT_PTR_EQ(test, fake.tick, &fake.lapic);
	KUNIT_EXPECT_PTR_EQ(test, fake.broadcast, &fake.hpet);
	KUNIT_EXPECT_FALSE(test, fake.lapic.features & CLOCK_EVT_FEAT_C3STOP);
	KUNIT_EXPECT_TRUE(test, fake.lapic.event_handler == kernel_event);
	events = fake.events;
	fake_busy();
	fake_run(100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, fake.events - events, 24UL);
	fake = (struct fake_machine) {};
}
