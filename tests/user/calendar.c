// SPDX-License-Identifier: GPL-2.0
/*
 * calendar FILE CYCLES [UNIT EVERY [SWITCHES SEED]] - run a calendar, and record its events.
 *
 * Each user unit is a process that works for six tenths of each budget; UNIT never ends its work
 * in each EVERYth of its windows. Standard output gets the receipts. File descriptor 3 gets four
 * u64 for each overrun of UNIT: the window's end, the last TSC that the process read before it was
 * stopped, the first one afterwards, and the start of the window in which that was. File
 * descriptor 4 gets four u64 for the start and each switch: 0, the moment, the table, the length
 * of its major cycle in ns. Lines for people are on standard error.
 */
#include "apic_calendar_file.h"
#include "apic_calendar_user.h"
#include "errors.h"
#include "start.h"

#define NR_FORK			57
#define NR_WAIT4		61
#define NR_KILL			62
#define NR_NANOSLEEP		35
#define MAX_TEXT		65536
#define MAX_BREAKS		4096

/* Memory shared by the processes. */
struct shared {
	volatile uint32_t ready;
	volatile uint32_t breaks;
	uint64_t left[MAX_BREAKS][4];
};

static char text[MAX_TEXT];
static struct calendar_file file;
static struct apic_calendar_receipt receipts[256];
static struct shared *shared;

static void err(const char *what)
{
	size_t n = 0;

	while (what[n])
		n++;
	sys(NR_WRITE, 2, what, n, 0);
}

static int fail(const char *what, long error)
{
	char digits[8];
	int n = 8;

	digits[--n] = '\n';
	error = error < 0 ? -error : error;
	do {
		digits[--n] = (char)('0' + error % 10);
		error /= 10;
	} while (error && n);
	err(what);
	err(": ");
	sys(NR_WRITE, 2, digits + n, 8 - n, 0);
	return 1;
}

static void put(int fd, const void *data, size_t size)
{
	const char *from = data;
	long done;

	while (size && (done = sys(NR_WRITE, fd, from, size, 0)) > 0) {
		from += done;
		size -= (size_t)done;
	}
}

static void sleep_ms(long ms)
{
	long spec[2] = { ms / 1000, ms % 1000 * 1000000 };

	sys(NR_NANOSLEEP, spec, 0, 0, 0);
}

/* Work until this process was stopped for longer than any interrupt takes. */
static void overrun(struct at_calendar *calendar)
{
	uint64_t timeout = calendar->wait.timeout, last = at_readtsc(), now;
	uint32_t n;

	for (;;) {
		now = at_readtsc();
		if (now - last > 20000 && now > timeout)
			break;
		last = now;
	}
	n = shared->breaks;
	if (n < MAX_BREAKS) {
		shared->left[n][0] = timeout;
		shared->left[n][1] = last;
		shared->left[n][2] = now;
		shared->breaks = n + 1;
	}
}

static int child(struct at_calendar *calendar, uint32_t unit, uint64_t every)
{
	uint64_t n = 0, until;
	long ret;

	sys(NR_MLOCKALL, 3 /* MCL_CURRENT | MCL_FUTURE */, 0, 0, 0);
	ret = at_calendar_bind(calendar, unit);
	if (ret)
		return fail("bind", ret);
	__atomic_fetch_add(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!(ret = at_calendar_wait(calendar))) {
		until = calendar->wait.start +
			(calendar->wait.timeout - calendar->wait.start) * 6 / 10;
		if (every && ++n % every == 0)
			overrun(calendar);
		else
			while (at_readtsc() < until)
				;
	}
	return ret == -ECANCELED ? 0 : fail("wait", ret);
}

static uint64_t state;

static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void told(uint64_t when, uint32_t table)
{
	uint64_t line[4] = { 0, when, table, file.tables[table].major };

	put(4, line, sizeof(line));
}

/* Read all receipts; return the last cycle seen. */
static uint64_t drain(struct at_calendar *calendar)
{
	uint64_t cycle = 0;
	long got;

	while ((got = sys(NR_READ, calendar->fd, receipts, sizeof(receipts), 0)) > 0) {
		put(1, receipts, (size_t)got);
		cycle = receipts[(size_t)got / sizeof(receipts[0]) - 1].cycle;
	}
	return cycle;
}

int run(int argc, char **argv)
{
	uint64_t cycles, every = 0, switches = 0, next_switch = 0, cycle = 0;
	struct apic_calendar_start start = { .size = sizeof(start) };
	struct apic_calendar_stop stop = {
		.size = sizeof(stop), .flags = APIC_CALENDAR_AT_BOUNDARY,
	};
	struct apic_calendar_load load;
	struct at_calendar calendar;
	uint32_t i, table, users = 0;
	int status, overruns, bad = 0;
	long ret;

	if (argc < 3)
		return 2;
	ret = sys(AT_NR_OPEN, argv[1], 0, 0, 0);
	if (ret < 0)
		return fail(argv[1], ret);
	ret = sys(NR_READ, ret, text, sizeof(text), 0);
	if (ret < 0 || calendar_parse(&file, text, (size_t)ret)) {
		err(file.error ? file.error : "read");
		return fail(", line", file.line);
	}
	cycles = number(argv[2]);
	if (argc > 4)
		every = number(argv[4]);
	if (argc > 6) {
		switches = number(argv[5]);
		state = 88172645463325252ULL ^ number(argv[6]) * 0x9E3779B97F4A7C15ULL;
	}
	ret = at_calendar_open(&calendar);
	if (ret)
		return fail("open", ret);
	for (table = 0; table < file.n_tables; table++) {
		load = calendar_file_load(&file, table);
		ret = at_calendar_call(&calendar, APIC_CALENDAR_LOAD, &load);
		if (ret) {
			if (load.reason < APIC_CALENDAR_REASONS)
				err(calendar_reasons[load.reason]);
			return fail(", line", calendar_file_line(&file, table, load.reason,
								 load.bad));
		}
	}
	ret = at_syscall(AT_NR_MMAP, 0, sizeof(*shared), 3 /* PROT_READ | PROT_WRITE */,
			 0x21 /* MAP_SHARED | MAP_ANONYMOUS */, -1, 0);
	if (ret < 0 && ret > -4096)
		return fail("mmap", ret);
	shared = (struct shared *)ret;
	for (i = 0; i < file.n_units; i++) {
		if (file.units[i].kind != APIC_CALENDAR_USER)
			continue;
		users++;
		if (sys(NR_FORK, 0, 0, 0, 0))
			continue;
		overruns = argc > 4 && equal(file.units[i].name, argv[3]);
		sys(NR_EXIT, child(&calendar, i, overruns ? every : 0), 0, 0, 0);
	}
	for (i = 0; shared->ready < users && i < 1000; i++)
		sleep_ms(1);
	/* All of them wait by then, or miss their first window. */
	sleep_ms(2);
	ret = at_calendar_call(&calendar, APIC_CALENDAR_START, &start);
	if (ret)
		return fail("start", ret);
	told(start.when, 0);
	while (cycle < cycles) {
		sleep_ms(10);
		cycle = drain(&calendar);
		if (switches && cycle >= next_switch) {
			start = (struct apic_calendar_start) {
				.size = sizeof(start),
				.table = (uint32_t)(random_number() % file.n_tables),
			};
			next_switch = cycle + 1 + random_number() % (2 * cycles / switches + 1);
			ret = at_calendar_call(&calendar, APIC_CALENDAR_SWITCH, &start);
			if (ret && ret != -EBUSY)
				bad |= fail("switch", ret);
			if (!ret)
				told(start.when, start.table);
		}
	}
	/* A switch may be in progress. */
	while ((ret = at_calendar_call(&calendar, APIC_CALENDAR_STOP, &stop)) == -16)
		sleep_ms(1);
	if (ret)
		bad |= fail("stop", ret);
	while (users--) {
		sys(NR_WAIT4, -1, &status, 0, 0);
		bad |= status;
	}
	/* Without units that are threads of programs, nobody has waited for the boundary. */
	while (!ret && at_readtsc() <= stop.when)
		sleep_ms(1);
	drain(&calendar);
	stop.flags = 0;
	for (i = 0; i < shared->breaks; i++)
		put(3, shared->left[i], sizeof(shared->left[i]));
	put(4, (uint64_t[4]) { 1, stop.when, 0, 0 }, 32);
	return bad != 0;
}
