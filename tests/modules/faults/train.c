// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_train: for how long a module has interrupts off, by shots of mode
 * raw at random moments: one that is due meanwhile is late by the rest of it.
 *
 * The kernel has interrupts off as well, and for longer. What counts is a shot
 * that has interrupted the module, or the function that has turned interrupts on
 * for it, which returns to it; and that was due after the latest LAPIC timer
 * interrupt was over, which may have been the tick.
 */
#include <linux/apic_timer.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/processor.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include <asm/irq_regs.h>
#include <asm/ptrace.h>
#include <asm/unwind.h>

/* From one shot to the next: minimum, and maximum of the random part, TSC cycles. */
#define BETWEEN		4000
#define MORE		4096

static struct apic_timer_list timer;
static struct rnd_state rnd;
static u64 left;		/* the latest interrupt, on the CPU of the shots */
static int cpu;

static unsigned long text, text_size;
module_param(text, ulong, 0444);
MODULE_PARM_DESC(text, "where the module's code begins, besides our own");
module_param(text_size, ulong, 0444);
MODULE_PARM_DESC(text_size, "bytes of the module's code");

static unsigned long worst;
module_param(worst, ulong, 0644);
MODULE_PARM_DESC(worst, "TSC cycles that the latest shot was late; write 0 to begin anew");

static unsigned long shots;
module_param(shots, ulong, 0644);
MODULE_PARM_DESC(shots, "shots that counted");

static char where[64];
module_param_string(where, where, sizeof(where), 0444);
MODULE_PARM_DESC(where, "what the latest shot had interrupted");

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
	/* A word of the stack that the unwinder has not found may be of an earlier call. */
	unwind_start(&state, current, regs, NULL);
	caller = unwind_get_return_address(&state);
	/* Where the function has nothing on the stack, the unwinder is at its caller already. */
	if (caller == regs->ip)
		caller = unwind_next_frame(&state) ? unwind_get_return_address(&state) : 0;
	return is_meant(caller);
}

/* A message that the module prints: how long that takes is the kernel's. */
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

static struct tracepoint *exit_point;

static void find_exit(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "local_timer_exit"))
		exit_point = point;
}

static int __init train_init(void)
{
	int ret;

	for_each_kernel_tracepoint(find_exit, NULL);
	if (!exit_point)
		return -ENOENT;
	prandom_seed_state(&rnd, 1);
	init_apic_timer(&timer);
	timer.function = train_handler;
	timer.flags = APIC_TIMER_RAW;
	cpu = get_cpu();
	put_cpu();
	ret = tracepoint_probe_register(exit_point, interrupt_exit, NULL);
	if (ret)
		return ret;
	timer.expires = apic_timer_now() + BETWEEN;
	ret = add_apic_timer_on(&timer, cpu);
	if (ret) {
		tracepoint_probe_unregister(exit_point, interrupt_exit, NULL);
		tracepoint_synchronize_unregister();
	}
	return ret;
}

static void __exit train_exit(void)
{
	del_apic_timer_sync(&timer);
	tracepoint_probe_unregister(exit_point, interrupt_exit, NULL);
	tracepoint_synchronize_unregister();
}

module_init(train_init);
module_exit(train_exit);

MODULE_DESCRIPTION("Test of apic_timer: for how long interrupts are off");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
