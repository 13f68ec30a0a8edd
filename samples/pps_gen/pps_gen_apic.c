// SPDX-License-Identifier: GPL-2.0
/*
 * Generate a pulse at each second of CLOCK_REALTIME or CLOCK_TAI, or with any other
 * period, on a parallel port's strobe or a serial line's DTR, for example to watch it
 * with an oscilloscope.
 *
 *	modprobe apic_clock
 *	modprobe pps_gen_core				where the kernel has it
 *	insmod pps_gen_apic.ko io=0x378			a parallel port's strobe
 *	insmod pps_gen_apic.ko io=0x2f8 line=dtr	a serial line's DTR
 *
 * The port must not belong to another driver: unload parport_pc, or unbind the serial
 * line. The pulse rises at the moment and falls width_ns later; interrupts are on in
 * between. /sys/module/pps_gen_apic/parameters/ has counts and errors of the edges.
 * Pulses begin when the module is loaded; kernels with /sys/class/pps-gen have a
 * switch there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_clock.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/serial_reg.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/msr.h>

static unsigned short io;
module_param(io, ushort, 0444);
MODULE_PARM_DESC(io, "first I/O port of the parallel port or the serial line, such as 0x378");

static char *line = "strobe";
module_param(line, charp, 0444);
MODULE_PARM_DESC(line, "output line: strobe (parallel port, the default) or dtr (serial line)");

static char *clock = "realtime";
module_param(clock, charp, 0444);
MODULE_PARM_DESC(clock, "clock that pulses follow: realtime (the default) or tai");

static ulong period_ns = NSEC_PER_SEC;
module_param(period_ns, ulong, 0444);
MODULE_PARM_DESC(period_ns, "interval between pulses, in ns (100000 to 3600000000000)");

static long offset_ns;
module_param(offset_ns, long, 0444);
MODULE_PARM_DESC(offset_ns, "delay of pulses after the clock's multiples of period_ns, in ns; negative to compensate for the line's delay");

static ulong width_ns = 10 * NSEC_PER_USEC;
module_param(width_ns, ulong, 0444);
MODULE_PARM_DESC(width_ns, "length of a pulse, in ns (1000 to half of the period)");

static ulong edges;
module_param(edges, ulong, 0444);
MODULE_PARM_DESC(edges, "number of rising edges so far");

static ulong missed;
module_param(missed, ulong, 0444);
MODULE_PARM_DESC(missed, "number of pulses skipped because their moment had passed by more than width_ns");

static long earliest = LONG_MAX;
module_param(earliest, long, 0444);
MODULE_PARM_DESC(earliest, "minimum over all edges of the TSC right before the write to the port minus the moment's, in cycles");

static long latest = LONG_MIN;
module_param(latest, long, 0444);
MODULE_PARM_DESC(latest, "maximum over all edges of the same difference, in cycles");

/* Number of ports; behind a parallel port's three at 0x3bc there are those of VGA. */
#define PORTS_STROBE	3
#define PORTS_DTR	8

static struct apic_clock_timer rise;
static struct apic_timer_list fall;
static clockid_t clock_id;
static unsigned int ports;	/* number of ports */
static u16 port;		/* register of the line */
static u8 high, low;		/* what to write to it */
static s64 width;		/* of a pulse, TSC cycles */

static DEFINE_MUTEX(switch_mutex);
static bool on;			/* switch_mutex: there are pulses */
static bool leaving;		/* switch_mutex: there will be no more pulses */

static int switch_pulses(bool wanted);

#include "pps_gen_class.h"

static void lower(unsigned long long now, unsigned long data)
{
	outb(low, port);
}

static void arm_next(ktime_t next)
{
	unsigned int cpu;

	if (!add_apic_timer_at(&rise, clock_id, next))
		return;
	/* This CPU is on its way off, and accepts no timers any more. */
	for_each_online_cpu(cpu)
		if (!add_apic_timer_at_on(&rise, clock_id, next, cpu))
			return;
	pr_warn("no CPU accepts the timer of the next pulse: pulses have stopped\n");
}

static void begin_pulse(u64 now)
{
	u64 moment, tsc = rdtsc();
	bool rises;

	outb(high, port);
	/*
	 * The previous pulse has not ended if its edge was late, or if the clock was set forward
	 * since. Then the line was high, and this pulse prolongs that one. The timer's expiry
	 * must not change while it is pending.
	 */
	rises = del_apic_timer(&fall) != 1;
	fall.expires = now + width;
	if (add_apic_timer(&fall))
		outb(low, port);

	if (rises) {
		moment = apic_timer_clock_to_tsc(clock_id, rise.when, NULL);
		earliest = min_t(long, earliest, tsc - moment);
		latest = max_t(long, latest, tsc - moment);
		edges++;
	}
}

static void raise(unsigned long long now, unsigned long data)
{
	ktime_t next = rise.when + period_ns, clock_now;
	unsigned long skipped = 0;

	/* The clock was set forward, or the machine slept: an edge now would be a wrong second. */
	if (unlikely((s64)(now - rise.timer.expires) > width))
		skipped++;
	else
		begin_pulse(now);

	clock_now = apic_timer_tsc_to_clock(clock_id, now);
	if (next <= clock_now) {
		u64 periods = div64_u64(clock_now - next, period_ns) + 1;

		skipped += periods;
		next += periods * period_ns;
	}
	if (skipped) {
		missed += skipped;
		class_missed();
	}
	arm_next(next);
}

/* Compute the next multiple of the period plus the offset, with some time to spare. */
static ktime_t first_moment(void)
{
	ktime_t from = apic_timer_tsc_to_clock(clock_id, apic_timer_now()) + NSEC_PER_MSEC;

	return (div64_s64(from - offset_ns, period_ns) + 1) * (s64)period_ns + offset_ns;
}

/*
 * Start or stop pulses. Stopping waits for an edge in progress, and leaves the line low.
 * The class's file and its device may call this at the same time.
 */
static int switch_pulses(bool wanted)
{
	int ret = 0;

	mutex_lock(&switch_mutex);
	if (wanted && leaving) {
		ret = -ENODEV;
	} else if (wanted && !on) {
		ret = add_apic_timer_at(&rise, clock_id, first_moment());
		on = !ret;
	} else if (!wanted && on) {
		/* Delete in this order: a rising edge arms the falling one. */
		del_apic_timer_at_sync(&rise);
		del_apic_timer_sync(&fall);
		outb(low, port);
		on = false;
	}
	mutex_unlock(&switch_mutex);
	return ret;
}

static void switch_off_finally(void)
{
	mutex_lock(&switch_mutex);
	leaving = true;
	mutex_unlock(&switch_mutex);
	switch_pulses(false);
}

static int check_parameters(void)
{
	if (!io) {
		pr_err("no port given: load with io=0x378, for example\n");
		return -EINVAL;
	}
	if (strcmp(line, "strobe") && strcmp(line, "dtr")) {
		pr_err("line=%s must be strobe or dtr\n", line);
		return -EINVAL;
	}
	if (strcmp(clock, "realtime") && strcmp(clock, "tai")) {
		pr_err("clock=%s must be realtime or tai\n", clock);
		return -EINVAL;
	}
	if (period_ns < 100 * NSEC_PER_USEC || period_ns > 3600 * NSEC_PER_SEC ||
	    width_ns < NSEC_PER_USEC || width_ns > period_ns / 2 ||
	    offset_ns <= -(long)period_ns || offset_ns >= (long)period_ns) {
		pr_err("period_ns=%lu, width_ns=%lu, offset_ns=%ld: out of range\n", period_ns,
		       width_ns, offset_ns);
		return -EINVAL;
	}
	return 0;
}

static void find_register(void)
{
	u8 is;

	if (!strcmp(line, "dtr")) {
		port = io + UART_MCR;
		is = inb(port);
		high = is | UART_MCR_DTR;
		low = is & ~UART_MCR_DTR;
		return;
	}
	/* The control register; the strobe's bit is inverted. */
	port = io + 2;
	is = inb(port);
	high = is & ~1;
	low = is | 1;
}

static int __init pps_gen_init(void)
{
	int ret = check_parameters();

	if (ret)
		return ret;
	clock_id = strcmp(clock, "tai") ? CLOCK_REALTIME : CLOCK_TAI;
	ports = strcmp(line, "dtr") ? PORTS_STROBE : PORTS_DTR;
	if (!request_region(io, ports, KBUILD_MODNAME)) {
		pr_err("ports at %#x are in use by another driver\n", io);
		return -EBUSY;
	}
	find_register();
	width = apic_timer_ns_to_tsc(width_ns);
	outb(low, port);

	fall.function = lower;
	init_apic_timer(&fall);
	rise.timer.function = raise;
	init_apic_clock_timer(&rise);
	rise.timer.flags = APIC_TIMER_EXACT;
	ret = switch_pulses(true);
	if (ret)
		goto release;
	ret = class_enter();
	if (ret)
		goto stop;
	return 0;

stop:
	switch_off_finally();
release:
	release_region(io, ports);
	return ret;
}

static void __exit pps_gen_exit(void)
{
	switch_off_finally();
	class_leave();
	release_region(io, ports);
	pr_info("%lu edges, %lu missed, error %ld to %ld cycles\n", edges, missed, earliest,
		latest);
}

module_init(pps_gen_init);
module_exit(pps_gen_exit);

MODULE_DESCRIPTION("Pulse per second on a parallel port or serial line, by apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
