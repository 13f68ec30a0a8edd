// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_train: measures how long a module has interrupts off, by shots in mode raw at random
 * moments: one that becomes due meanwhile is late by the remaining time.
 *
 * The kernel also has interrupts off, and for longer. A shot counts only if it has interrupted the
 * module, or the function that has turned interrupts on for it and returns to it, and if it was
 * due after the latest LAPIC timer interrupt, possibly the tick, had ended.
 *
 * While timers migrate from a CPU that goes offline, that CPU has none of ours: there kernel
 * timers are used, with @kernel. The moment of the interrupt counts, because the kernel's work
 * before it calls the timer's function is not the module's. In virtual time two CPUs take turns,
 * and time advances for both: so a shot counts only if the other CPU was halted all the time.
 */
#include <linux/apic_timer.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/processor.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/types.h>

#include <asm/irq_regs.h>
#include <asm/ptrace.h>
#include <asm/unwind.h>

#include <trace/events/power.h>

#include "compat/hrtimer.h"

/* From one shot to the next: minimum, and maximum of the random part, TSC cycles. */
#define BETWEEN		4000
#define MORE		4096
/* From the trace event of an idle CPU to its HLT: maximum, TSC cycles */
#define HALTS		4000

static struct apic_timer_list timer;
static struct rnd_state rnd;
static struct hrtimer hrtimer;
static u64 entered, left;	/* the latest interrupts, on the CPU of the shots */
static int cpu;
static u64 other;		/* the latest moment at which the other CPU was seen working */
static bool other_works = true;

static bool kernel;
module_param(kernel, bool, 0444);
MODULE_PARM_DESC(kernel, "use the kernel's timer, until the CPU is offline");

static unsigned long text, text_size;
module_param(text, ulong, 0444);
MODULE_PARM_DESC(text, "start of the code of a further module");
module_param(text_size, ulong, 0444);
MODULE_PARM_DESC(text_size, "size of that module's code, in bytes");

static unsigned long worst;
module_param(worst, ulong, 0644);
MODULE_PARM_DESC(worst, "maximum lateness of a shot, in TSC cycles; write 0 to start over");

static unsigned long shots;
module_param(shots, ulong, 0644);
MODULE_PARM_DESC(shots, "number of shots that counted");

static char where[64];
module_param_string(where, where, sizeof(where), 0444);
MODULE_PARM_DESC(where, "code that the latest of the shots interrupted");

static bool is_meant(unsigned long address)
{
	return address - text < text_size || within_module(address, THIS_MODULE);
}

static bool meant_interrupted(void)
{
	struct pt_regs *regs = get_irq_regs();
	struct unwind_state state;
	unsigned long caller;

	if (user_mode(regs))
		return false;
	if (is_meant(regs->ip))
		return true;
	/* A stack word not found by the unwinder may be from an earlier call. */
	unwind_start(&state, current, regs, NULL);
	caller = unwind_get_return_address(&state);
	/* If the function has nothing on the stack, the unwinder is already at its caller. */
	if (caller == regs->ip)
		caller = unwind_next_frame(&state) ? unwind_get_return_address(&state) : 0;
	return is_meant(caller);
}

/* A message that the module prints: its duration is the kernel's. */
static bool is_printing(const char *function)
{
	return str_has_prefix(function, "vprintk_store");
}

static void count(u64 late)
{
	char function[sizeof(where)];

	snprintf(function, sizeof(function), "%pS", (void *)get_irq_regs()->ip);
	if (is_printing(function))
		return;
	shots++;
	if (late > worst) {
		worst = late;
		strscpy(where, function, sizeof(where));
	}
}

static void train_handler(unsigned long long now, unsigned long data)
{
	if (READ_ONCE(left) < timer.expires && meant_interrupted())
		count(now - timer.expires);
	timer.expires = apic_timer_now() + BETWEEN +
			prandom_u32_state(&rnd) % MORE;
	add_apic_timer(&timer);
}

static enum hrtimer_restart kernel_shot(struct hrtimer *unused)
{
	u64 due = apic_timer_ktime_to_tsc(hrtimer_get_expires(&hrtimer));

	/* The CPU is offline, and the timer has migrated. */
	if (smp_processor_id() != cpu)
		return HRTIMER_NORESTART;
	/* A shot that became due within this interrupt was delayed by the kernel. */
	if (READ_ONCE(left) < due && due <= READ_ONCE(entered) && !READ_ONCE(other_works) &&
	    READ_ONCE(other) + HALTS < due && meant_interrupted())
		count(entered - due);
	hrtimer_set_expires(&hrtimer, ktime_add_ns(ktime_get(), BETWEEN +
						   prandom_u32_state(&rnd) % MORE));
	return HRTIMER_RESTART;
}

static int off_set(const char *text, const struct kernel_param *parameter)
{
	unsigned int cycles, i;
	int ret = kstrtouint(text, 0, &cycles);
	u64 end;

	for (i = 0; !ret && i < 1000; i++) {
		local_irq_disable();
		end = apic_timer_now() + cycles;
		while (apic_timer_now() < end)
			cpu_relax();
		local_irq_enable();
	}
	return ret;
}

static const struct kernel_param_ops off_ops = { .set = off_set };
module_param_cb(off, &off_ops, NULL, 0200);
MODULE_PARM_DESC(off, "turn interrupts off for this many TSC cycles, a thousand times");

static void interrupt_exit(void *unused, int vector)
{
	if (raw_smp_processor_id() == cpu)
		WRITE_ONCE(left, apic_timer_now());
}

static void timer_entry(void *unused, int vector)
{
	if (raw_smp_processor_id() == cpu)
		WRITE_ONCE(entered, apic_timer_now());
}

/* It interrupts work, or HLT: the CPU then works until it is idle once more. */
static void interrupt_entry(void *unused, int vector)
{
	if (raw_smp_processor_id() == cpu)
		return;
	WRITE_ONCE(other_works, true);
	WRITE_ONCE(other, apic_timer_now());
}

static void device_entry(void *unused, int irq, struct irqaction *action)
{
	interrupt_entry(unused, irq);
}

static void idle(void *unused, unsigned int state, unsigned int its)
{
	if (its == cpu)
		return;
	WRITE_ONCE(other_works, state == (unsigned int)PWR_EVENT_EXIT);
	WRITE_ONCE(other, apic_timer_now());
}

/* Trace events, and their functions */
static struct {
	const char *name;
	void *function;
	/* With @kernel only: more work takes time itself, which must not count as the module's. */
	bool kernel;
	struct tracepoint *point;
	bool registered;
} events[] = {
	{ "local_timer_exit", interrupt_exit },
	{ "local_timer_entry", timer_entry, true },
	{ "cpu_idle", idle, true },
	/* Interrupts of the other CPU */
	{ "local_timer_entry", interrupt_entry, true },
	{ "reschedule_entry", interrupt_entry, true },
	{ "call_function_entry", interrupt_entry, true },
	{ "call_function_single_entry", interrupt_entry, true },
	{ "irq_work_entry", interrupt_entry, true },
	{ "irq_handler_entry", device_entry, true },
};

static void find_points(struct tracepoint *point, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(point->name, events[i].name))
			events[i].point = point;
}

static void watch_no_more(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i].registered)
			tracepoint_probe_unregister(events[i].point, events[i].function, NULL);
	tracepoint_synchronize_unregister();
}

static int watch(void)
{
	unsigned int i;
	int ret;

	for_each_kernel_tracepoint(find_points, NULL);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		if (events[i].kernel && !kernel)
			continue;
		ret = events[i].point ? tracepoint_probe_register(events[i].point,
								  events[i].function, NULL) :
					-ENOENT;
		if (ret) {
			watch_no_more();
			return ret;
		}
		events[i].registered = true;
	}
	return 0;
}

static int __init train_init(void)
{
	int ret;

	prandom_seed_state(&rnd, 1);
	init_apic_timer(&timer);
	timer.function = train_handler;
	timer.flags = APIC_TIMER_RAW;
	apic_timer_hrtimer_setup(&hrtimer, kernel_shot, CLOCK_MONOTONIC,
				 HRTIMER_MODE_ABS_PINNED_HARD);
	cpu = get_cpu();
	put_cpu();
	ret = watch();
	if (ret)
		return ret;
	if (kernel) {
		hrtimer_start(&hrtimer, ktime_add_ns(ktime_get(), BETWEEN),
			      HRTIMER_MODE_ABS_PINNED_HARD);
		return 0;
	}
	timer.expires = apic_timer_now() + BETWEEN;
	ret = add_apic_timer_on(&timer, cpu);
	if (ret)
		watch_no_more();
	return ret;
}

static void __exit train_exit(void)
{
	del_apic_timer_sync(&timer);
	hrtimer_cancel(&hrtimer);
	watch_no_more();
}

module_init(train_init);
module_exit(train_exit);

MODULE_DESCRIPTION("Test of apic_timer: how long interrupts are off");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
