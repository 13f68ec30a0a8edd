// SPDX-License-Identifier: GPL-2.0
/*
 * first BITS - check what a program may do, also with 32 bits: "ok", or the fault.
 */
#include "start.h"

_Static_assert(sizeof(struct apic_timer_device) == 72, "query");
_Static_assert(sizeof(struct apic_timer_sleep) == 72, "sleep");
_Static_assert(offsetof(struct apic_timer_sleep, tsc) == 40, "sleep.tsc");
_Static_assert(offsetof(struct apic_timer_sleep, result) == 68, "sleep.result");
_Static_assert(sizeof(struct apic_timer_arm) == 32, "arm");
_Static_assert(sizeof(struct apic_timer_page) == 64, "page");
_Static_assert(sizeof(struct apic_timer_ring) == 16, "ring");
_Static_assert(sizeof(struct apic_timer_receipt) == 64, "receipt");

int run(int argc, char **argv)
{
	struct apic_timer_device query = { .cpu = APIC_TIMER_CPU_THIS };
	uint64_t when, now, expired, mono;
	struct at at;
	uint32_t seq;
	long ret;
	int i;

	if (argc != 2 || number(argv[1]) != 8 * sizeof(long))
		return wrong("bits", 8 * sizeof(long));
	ret = at_open(&at);
	if (ret)
		return wrong("open", ret);
	ret = at_query(&at, &query);
	if (ret || query.tsc_khz != at.page->tsc_khz || query.epoch != at.epoch)
		return wrong("query", ret);
	for (i = 0; i < 200; i++) {
		when = at_readtsc() + 300000;
		ret = at_mdelay(&at, when);
		now = at_readtsc();
		if (ret)
			return wrong("sleep", ret);
		if (now < when)
			return wrong("early", (long)(when - now));
		if (at.sleep.tsc != when)
			return wrong("moment", i);
	}
	when = at_readtsc() + 300000;
	ret = at_arm(&at, APIC_TIMER_CLOCK_TSC, when, 100000);
	if (ret)
		return wrong("arm", ret);
	at_until(&at, when + 550000);
	ret = sys(NR_READ, at.fd, &expired, sizeof(expired), 0);
	if (ret != sizeof(expired) || expired < 5 || expired > 7)
		return wrong("expirations", (long)expired);
	/* A moment does not change when the page is rewritten: NTP steers by some ns. */
	for (i = 0; i < 20 && at.page->flags & APIC_TIMER_TSC_IS_CLOCK; i++) {
		when = at_readtsc();
		mono = at_tsc_to_mono(&at, when);
		for (seq = at.page->seq; at.page->seq == seq; )
			;
		now = at_tsc_to_mono(&at, when);
		if (now - mono + 1000 > 2000)
			return wrong("moved", (long)(now - mono));
	}
	at_close(&at);
	say("ok\n");
	return 0;
}
