// SPDX-License-Identifier: GPL-2.0
/*
 * Accuracy: the mode of a timer, its spin budget, and what happens to late expiries.
 * When the module is loaded, the kernel log shows the error of each timer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/apic_timer.h>
#include <linux/delay.h>
#include <linux/module.h>

struct expiry {
	struct apic_timer_list timer;
	const char *name;
	bool ran;
	s64 error;		/* its start - expires, TSC cycles */
};

static void fire(unsigned long long now, unsigned long data)
{
	struct expiry *expiry = (struct expiry *)data;

	expiry->error = now - expiry->timer.expires;
	expiry->ran = true;
}

static struct expiry expiries[4];

/* Flags and budget are set after init_apic_timer(), which clears them. */
static int arm(struct expiry *expiry, const char *name, unsigned int flags,
	       unsigned int spin_budget, u64 expires)
{
	expiry->name = name;
	expiry->timer.function = fire;
	expiry->timer.data = (unsigned long)expiry;
	init_apic_timer(&expiry->timer);
	expiry->timer.flags = flags;
	expiry->timer.spin_budget = spin_budget;
	expiry->timer.expires = expires;
	return add_apic_timer(&expiry->timer);
}

static void shut_down(void)
{
	unsigned int i;

	/* Deleting a timer that was never initialised would be refused and logged. */
	for (i = 0; i < ARRAY_SIZE(expiries); i++)
		if (expiries[i].name)
			apic_timer_shutdown_sync(&expiries[i].timer);
}

static int __init sample_init(void)
{
	u64 now = apic_timer_now(), ms = apic_timer_us_to_tsc(1000);
	unsigned int i;
	int ret;

	ret = arm(&expiries[0], "raw", APIC_TIMER_RAW, 0, now + 2 * ms);
	if (!ret)
		ret = arm(&expiries[1], "mean", APIC_TIMER_MEAN, 0, now + 4 * ms);
	/* Spin for up to 20 us, which is more than the default. */
	if (!ret)
		ret = arm(&expiries[2], "exact", APIC_TIMER_EXACT,
			  apic_timer_us_to_tsc(20), now + 6 * ms);
	/* This work is useless when late, as it is here: the handler is not called. */
	if (!ret)
		ret = arm(&expiries[3], "skipped", APIC_TIMER_EXACT | APIC_TIMER_SKIP_LATE,
			  0, now - ms);
	if (ret) {
		shut_down();
		return ret;
	}

	msleep(20);
	shut_down();
	for (i = 0; i < ARRAY_SIZE(expiries); i++)
		if (expiries[i].ran)
			pr_info("%s: error %lld cycles\n", expiries[i].name, expiries[i].error);
		else
			pr_info("%s: not run\n", expiries[i].name);
	pr_info("done\n");
	return 0;
}

static void __exit sample_exit(void)
{
}

module_init(sample_init);
module_exit(sample_exit);

MODULE_DESCRIPTION("Accuracy modes, spin budget and late expiries of apic_timer");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
