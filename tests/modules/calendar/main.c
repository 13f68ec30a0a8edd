// SPDX-License-Identifier: GPL-2.0
/*
 * Functions for calendars, which record the TSC at their first instruction: "pulse" and "step" in
 * hard interrupt, "toil" in a thread. debugfs has the records of the first. A task that sets the
 * parameter pin_ms can't be moved to another CPU for that long.
 */
#include <linux/apic_calendar.h>
#include <linux/apic_timer.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/slab.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#define STARTS	65536

static bool leave;
module_param(leave, bool, 0444);
MODULE_PARM_DESC(leave, "leave the functions registered");

static bool fail;
module_param(fail, bool, 0644);
MODULE_PARM_DESC(fail, "fail to load, as soon as this is N again");

static unsigned int grind_ns;
module_param(grind_ns, uint, 0644);
MODULE_PARM_DESC(grind_ns, "time that step takes, in ns");

static int pin(const char *text, const struct kernel_param *param)
{
	unsigned int ms;
	int ret = kstrtouint(text, 0, &ms);

	if (ret)
		return ret;
	migrate_disable();
	mdelay(ms);
	migrate_enable();
	return 0;
}

static const struct kernel_param_ops pin_ops = { .set = pin };
module_param_cb(pin_ms, &pin_ops, NULL, 0200);
MODULE_PARM_DESC(pin_ms, "run on this CPU for that long, in ms");

/* TSC at first instructions, and their number. */
static u64 *starts;
static u32 n_starts;
static struct debugfs_blob_wrapper blob;
static struct dentry *dir;

static void pulse(unsigned long long now, unsigned long data)
{
	u64 start = rdtsc();

	if (n_starts < STARTS)
		starts[n_starts++] = start;
	blob.size = n_starts * sizeof(*starts);
}

static void step(unsigned long long now, unsigned long data)
{
	u64 until = now + apic_timer_ns_to_tsc(READ_ONCE(grind_ns));

	while (rdtsc() < until)
		cpu_relax();
}

static struct apic_calendar_function functions[] = {
	{ .name = "pulse", .function = pulse },
	{ .name = "step", .function = step },
	{ .name = "toil", .function = step, .flags = APIC_CALENDAR_IN_THREAD },
};

static void pulse_exit(void)
{
	int i;

	debugfs_remove(dir);
	for (i = 0; i < ARRAY_SIZE(functions) && !leave; i++)
		apic_calendar_unregister(&functions[i]);
	kvfree(starts);
}

static int __init pulse_init(void)
{
	int ret = 0, i;

	starts = kvcalloc(STARTS, sizeof(*starts), GFP_KERNEL);
	if (!starts)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(functions) && !ret; i++)
		ret = apic_calendar_register(&functions[i]);
	if (ret) {
		while (--i > 0)
			apic_calendar_unregister(&functions[i - 1]);
		kvfree(starts);
		return ret;
	}
	blob.data = starts;
	dir = debugfs_create_dir("apic_calendar_pulse", NULL);
	debugfs_create_blob("starts", 0400, dir, &blob);
	if (!fail)
		return 0;
	while (READ_ONCE(fail))
		msleep(20);
	pulse_exit();
	return -ECANCELED;
}

module_init(pulse_init);
module_exit(pulse_exit);

MODULE_DESCRIPTION("Functions for tests of apic_calendar");
MODULE_LICENSE("GPL");
