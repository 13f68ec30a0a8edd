// SPDX-License-Identifier: GPL-2.0
/*
 * Arm a timer for another clock while its owner is notified, on another CPU, that no CPU accepts
 * it. The owner waits for that, as it would for a lock that the code that arms the timer holds.
 */
#include <linux/apic_clock.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/processor.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>

#include "clock_test.h"

#define AHEAD_NS	(100 * NSEC_PER_MSEC)
#define PATIENCE_NS	(200 * NSEC_PER_MSEC)

static struct apic_clock_timer timer;
static bool told, over;

/**
 * struct lost_result - result of a run
 * @ret:	answer to the code that armed the timer for another clock
 * @waited:	the owner has waited for that in vain
 * @again:	the same answer after the owner was notified
 */
static struct lost_result {
	int ret, again;
	bool waited;
} result;

static void handler(unsigned long long now, unsigned long data)
{
}

static void lost(struct apic_clock_timer *unused, int ret)
{
	u64 until = apic_timer_now() + apic_timer_ns_to_tsc(PATIENCE_NS);

	WRITE_ONCE(told, true);
	while (!READ_ONCE(over) && apic_timer_now() < until)
		cpu_relax();
	result.waited = !READ_ONCE(over);
}

static int arm(clockid_t clock, ktime_t now)
{
	return add_apic_timer_at(&timer, clock, now + AHEAD_NS);
}

/* The hrtimer, and with it @lost, is on the CPU that arms the timer. */
static void arm_here(void *ret)
{
	*(int *)ret = arm(CLOCK_REALTIME, ktime_get_real());
}

/* Arm the timer on a CPU, which will not accept it when its moment is near. */
int clock_test_lost(int cpu)
{
	int ret, armed = 0, n;

	told = false;
	over = false;
	result = (struct lost_result) {};
	timer.timer.function = handler;
	init_apic_clock_timer(&timer);
	timer.lost = lost;
	ret = smp_call_function_single(cpu, arm_here, &armed, true) ?: armed;
	for (n = 0; !ret && n < 1000 && !READ_ONCE(told); n++)
		usleep_range(1000, 5000);
	if (ret || !READ_ONCE(told))
		return ret ?: -ETIME;
	result.ret = arm(CLOCK_TAI, ktime_get_clocktai());
	WRITE_ONCE(over, true);
	/* The other CPU may be held up before it returns. */
	for (n = 0; n < 1000; n++) {
		result.again = arm(CLOCK_TAI, ktime_get_clocktai());
		if (result.again != -EBUSY)
			break;
		usleep_range(1000, 5000);
	}
	del_apic_timer_at_sync(&timer);
	return 0;
}

void clock_test_lost_show(struct seq_file *file)
{
	seq_printf(file, "lost ret %d waited %d again %d\n", result.ret, result.waited,
		   result.again);
}
