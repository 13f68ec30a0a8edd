// SPDX-License-Identifier: GPL-2.0
/*
 * first_calendar BITS - check a unit of a calendar, also in a 32-bit program: "ok", or the fault.
 */
#include "apic_calendar_user.h"
#include "errors.h"
#include "start.h"

#define CYCLES	20

_Static_assert(sizeof(struct apic_calendar_unit) == 96, "unit");
_Static_assert(sizeof(struct apic_calendar_entry) == 24, "entry");
_Static_assert(sizeof(struct apic_calendar_load) == 64, "load");
_Static_assert(offsetof(struct apic_calendar_load, entries) == 24, "load.entries");
_Static_assert(offsetof(struct apic_calendar_load, table) == 48, "load.table");
_Static_assert(sizeof(struct apic_calendar_start) == 24, "start");
_Static_assert(sizeof(struct apic_calendar_stop) == 16, "stop");
_Static_assert(sizeof(struct apic_calendar_bind) == 8, "bind");
_Static_assert(sizeof(struct apic_calendar_wait) == 72, "wait");
_Static_assert(offsetof(struct apic_calendar_wait, missed) == 56, "wait.missed");
_Static_assert(sizeof(struct apic_calendar_query) == 40, "query");
_Static_assert(sizeof(struct apic_calendar_status) == 96, "status");
_Static_assert(offsetof(struct apic_calendar_status, run) == 32, "status.run");
_Static_assert(sizeof(struct apic_calendar_receipt) == 80, "receipt");
_Static_assert(offsetof(struct apic_calendar_receipt, entry) == 56, "receipt.entry");

static struct apic_calendar_receipt receipts[2 * CYCLES];

int run(int argc, char **argv)
{
	struct apic_calendar_unit unit = { .name = "first", .kind = APIC_CALENDAR_USER };
	struct apic_calendar_entry entry = { .offset = 100000, .budget = 200000 };
	struct apic_calendar_load load = {
		.size = sizeof(load), .major = 1000000, .units = (uintptr_t)&unit,
		.entries = (uintptr_t)&entry, .n_units = 1, .n_entries = 1,
	};
	struct apic_calendar_status status = { .size = sizeof(status) };
	struct apic_calendar_query query = { .size = sizeof(query) };
	struct apic_calendar_start start = { .size = sizeof(start) };
	struct apic_calendar_stop stop = { .size = sizeof(stop) };
	struct at_calendar calendar;
	uint64_t cycle = 0;
	long ret, n;
	int i;

	if (argc != 2 || number(argv[1]) != 8 * sizeof(long))
		return wrong("bits", 8 * sizeof(long));
	ret = at_calendar_open(&calendar);
	if (ret)
		return wrong("open", ret);
	ret = at_calendar_call(&calendar, APIC_CALENDAR_QUERY, &query);
	if (ret || query.share != 90 || !query.tsc_khz)
		return wrong("query", ret);
	/* The fault is named. */
	entry.budget = 1;
	ret = at_calendar_call(&calendar, APIC_CALENDAR_LOAD, &load);
	if (ret != -EINVAL || load.reason != APIC_CALENDAR_BAD_BUDGET || load.bad)
		return wrong("load, wrong", (long)load.reason);
	entry.budget = 200000;
	ret = at_calendar_call(&calendar, APIC_CALENDAR_LOAD, &load);
	if (ret || load.table)
		return wrong("load", ret);
	ret = at_calendar_bind(&calendar, 0);
	if (ret)
		return wrong("bind", ret);
	ret = at_calendar_call(&calendar, APIC_CALENDAR_START, &start);
	if (ret || !start.when)
		return wrong("start", ret);
	for (i = 0; i < CYCLES; i++) {
		ret = at_calendar_wait(&calendar);
		if (ret)
			return wrong("wait", ret);
		if (calendar.began < calendar.wait.start)
			return wrong("early", (long)(calendar.wait.start - calendar.began));
		if (calendar.wait.timeout <= calendar.wait.start ||
		    calendar.wait.start < start.when || (i && calendar.wait.cycle <= cycle))
			return wrong("window", (long)calendar.wait.cycle);
		cycle = calendar.wait.cycle;
	}
	ret = at_calendar_call(&calendar, APIC_CALENDAR_STATUS, &status);
	if (ret || status.state != APIC_CALENDAR_RUNNING || status.run < CYCLES - 1 ||
	    status.next != APIC_CALENDAR_NONE)
		return wrong("status", (long)status.run);
	ret = at_calendar_call(&calendar, APIC_CALENDAR_STOP, &stop);
	if (ret || stop.when < start.when)
		return wrong("stop", ret);
	ret = sys(NR_READ, calendar.fd, receipts, sizeof(receipts), 0);
	n = ret / (long)sizeof(receipts[0]);
	if (n < CYCLES || ret % (long)sizeof(receipts[0]))
		return wrong("read", ret);
	for (i = 0; i < n; i++)
		if (receipts[i].number != (uint64_t)i || receipts[i].start < start.when)
			return wrong("receipt", i);
	ret = at_calendar_call(&calendar, APIC_CALENDAR_STOP, &stop);
	if (ret != -ESRCH)
		return wrong("stop again", ret);
	sys(AT_NR_CLOSE, calendar.fd, 0, 0, 0);
	say("ok\n");
	return 0;
}
