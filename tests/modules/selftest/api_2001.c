// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer of the interface of 2001, unchanged: the structure's five members in their order,
 * four calls whose results are not checked.
 */
#include <linux/apic_timer.h>
#include <asm/msr.h>

#include "api_2001.h"

static struct apic_timer_list timer;
static int fired;

static void my_timer_function(unsigned long long now, unsigned long data)
{
	if (now >= timer.expires)
		fired += data;

	/* periodic */
	if (fired < 10) {
		timer.expires = now + 100000;
		add_apic_timer(&timer);
	}
}

void consumer_2001_start(void)
{
	struct apic_timer_list t = { NULL, NULL, 0, 1, my_timer_function };
	unsigned long long now;

	fired = 0;
	timer = t;
	init_apic_timer(&timer);
	now = rdtsc();
	timer.expires = now + 1000000;
	add_apic_timer(&timer);
	mod_apic_timer(&timer, now + 500000);
}

int consumer_2001_fired(void)
{
	return fired;
}

void consumer_2001_stop(void)
{
	del_apic_timer(&timer);
}
