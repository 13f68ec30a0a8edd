// SPDX-License-Identifier: GPL-2.0
/*
 * apic_timer_fail: makes a kernel function fail when apic_timer calls it, to see what is left
 * behind; or a function of apic_timer when another module calls it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

static char *symbol = "register_module_notifier";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "function whose calls fail");

static char *caller = "apic_timer";
module_param(caller, charp, 0444);
MODULE_PARM_DESC(caller, "module whose calls are counted");

static unsigned int nth = 1;
module_param(nth, uint, 0444);
MODULE_PARM_DESC(nth, "number of the first call that fails, counted from 1");

static unsigned int times = 1;
module_param(times, uint, 0444);
MODULE_PARM_DESC(times, "number of successive calls that fail");

static long value = -ENOMEM;
module_param(value, long, 0444);
MODULE_PARM_DESC(value, "return value of the calls that fail");

static unsigned int calls;
module_param(calls, uint, 0444);
MODULE_PARM_DESC(calls, "number of the module's calls so far");

/* Replaces the function: the value is already in its register. */
static noinline notrace void just_return(void)
{
}

static bool from_caller(unsigned long address)
{
	size_t length = strlen(caller);
	char name[KSYM_SYMBOL_LEN];
	const char *module;

	sprint_symbol(name, address);
	module = strchr(name, '[');
	return module && !strncmp(module + 1, caller, length) && module[length + 1] == ']';
}

static int entered(struct kprobe *probe, struct pt_regs *regs)
{
	if (!from_caller(*(unsigned long *)regs->sp) || ++calls - nth >= times)
		return 0;
	pr_info("call %u of %s returns %ld\n", calls, symbol, value);
	regs->ax = value;
	regs->ip = (unsigned long)just_return;
	return 1;
}

/* A probe with a post handler may change the destination. */
static void stepped(struct kprobe *probe, struct pt_regs *regs,
		    unsigned long flags)
{
}

static struct kprobe probe = {
	.pre_handler = entered,
	.post_handler = stepped,
};

static int __init fail_init(void)
{
	probe.symbol_name = symbol;
	return register_kprobe(&probe);
}

static void __exit fail_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(fail_init);
module_exit(fail_exit);

MODULE_DESCRIPTION("Injected failures of kernel functions that apic_timer calls");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
