// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_calendar COUNT SEED CPUS [others] - random commands for /dev/apic_calendar.
 *
 * A model knows which tables and units each calendar has, which unit is this thread's, and whether
 * it runs. For nearly every command it therefore knows whether the command must succeed, or with
 * which error it must fail. Otherwise a command may fail with one of the documented errors.
 * Priorities, counters and receipts are checked, too.
 *
 * others: other programs run, which may use any CPU
 */
#include "apic_calendar_user.h"
#include "errors.h"
#include "random.h"
#include "start.h"

#define NR_RT_SIGACTION		13
#define NR_SETITIMER		38
#define NR_GETPID		39
#define NR_SCHED_GETSCHEDULER	145
#define SCHED_FIFO		1
#define SCHED_RESET_ON_FORK	0x40000000	/* units have it too */
#define CALENDARS		3
#define UNITS			6
#define ENTRIES			8
#define US			1000ULL
#define SIGALRM			14
#define SIGCHLD			17	/* ignored by default */

enum running { IDLE, RUNNING, ENDING };	/* ENDING: at a boundary, maybe already */

struct model {
	int fd;
	uint32_t n_units, n_tables;
	struct apic_calendar_unit units[UNITS];
	enum running running;
	int bound;			/* number of our unit, -1: none */
	uint64_t run[UNITS];		/* earlier values of the counters */
	uint64_t next;			/* minimum number of the next receipt */
};

static uint32_t cpus, pid;
static int others;
static struct model calendars[CALENDARS];
static struct apic_calendar_receipt receipts[64];
static union {
	struct apic_calendar_load load;
	struct apic_calendar_start start;
	struct apic_calendar_stop stop;
	struct apic_calendar_bind bind;
	struct apic_calendar_wait wait;
	struct apic_calendar_query query;
	struct apic_calendar_status status;
	uint64_t any[20];
} a;

static int bad(const char *what, long ret)
{
	say(what);
	say(": result ");
	say_number(ret);
	say("\n");
	return 1;
}

static void clear(void)
{
	memset(&a, 0, sizeof(a));
}

static long call(const struct model *m, unsigned int command, uint32_t size)
{
	a.load.size = size;	/* the first member of each */
	return sys(AT_NR_IOCTL, m->fd, command, &a, 0);
}

static int opens(struct model *m)
{
	*m = (struct model) { .bound = -1 };
	m->fd = (int)sys(AT_NR_OPEN, AT_CALENDAR_DEVICE, 02000002 /* O_CLOEXEC | O_RDWR */,
			 0, 0);
	return m->fd < 0;
}

/* Whether another calendar of ours may use a CPU of this one. */
static int contended(const struct model *m)
{
	const struct model *o;
	uint32_t i, j;

	for (o = calendars; o < calendars + CALENDARS; o++) {
		if (o == m || o->running == IDLE)
			continue;
		for (i = 0; i < m->n_units; i++)
			for (j = 0; j < o->n_units; j++)
				if (m->units[i].cpu == o->units[j].cpu)
					return 1;
	}
	return 0;
}

static int is_bound(void)
{
	int i;

	for (i = 0; i < CALENDARS; i++)
		if (calendars[i].bound >= 0)
			return 1;
	return 0;
}

static void name_of(char *name, const char *is)
{
	while ((*name++ = *is++))
		;
}

static void make_unit(struct apic_calendar_unit *unit, uint32_t n)
{
	*unit = (struct apic_calendar_unit) { .name = { 'u', (char)('0' + n) } };
	unit->cpu = below(cpus);
	switch (below(4)) {
	case 0:
		unit->kind = APIC_CALENDAR_FUNCTION;
		name_of(unit->function, "step");
		break;
	case 1:
		unit->kind = APIC_CALENDAR_THREAD;
		name_of(unit->function, "toil");
		break;
	default:
		/* Not one that would kill this process. */
		unit->on_overrun = below(2) ? APIC_CALENDAR_PARK :
				   below(2) ? APIC_CALENDAR_SKIP : APIC_CALENDAR_SIGNAL;
		unit->signal = unit->on_overrun == APIC_CALENDAR_SIGNAL ? SIGCHLD : 0;
	}
}

/* Load a correct table, or one with a single fault. */
static int loads(struct model *m)
{
	static struct apic_calendar_entry entries[ENTRIES];
	static struct apic_calendar_unit units[UNITS];
	uint32_t n_units, n = 1 + below(ENTRIES), i, reason = APIC_CALENDAR_OK, wrong = below(14);
	uint64_t at = 0;
	long ret;

	n_units = m->n_units ? m->n_units : 1 + below(UNITS);
	for (i = 0; i < n_units; i++) {
		if (m->n_units)
			units[i] = m->units[i];
		else
			make_unit(&units[i], i);
	}
	for (i = 0; i < n; i++) {
		at += (20 + below(100)) * US;
		entries[i] = (struct apic_calendar_entry) {
			.offset = at, .budget = (5 + below(60)) * US, .unit = below(n_units),
		};
		at += entries[i].budget;
	}
	clear();
	a.load.major = at + 20 * US > 100 * US ? at + 20 * US : 100 * US;
	a.load.entries = (uintptr_t)entries;
	a.load.n_entries = n;
	if (!m->n_units) {
		a.load.units = (uintptr_t)units;
		a.load.n_units = n_units;
	}
	i = below(n);
	switch (wrong) {
	case 0:
		entries[i].unit = n_units + below(10);
		reason = APIC_CALENDAR_BAD_UNIT;
		break;
	case 1:
		entries[i].budget = below(5 * US);
		reason = APIC_CALENDAR_BAD_BUDGET;
		break;
	case 2:
		entries[n - 1].budget = a.load.major;
		reason = APIC_CALENDAR_BAD_END;
		break;
	case 3:
		a.load.major = below(100 * US);
		reason = APIC_CALENDAR_BAD_MAJOR;
		break;
	case 4:
		a.load.n_entries = below(2) ? 0 : APIC_CALENDAR_ENTRIES + 1 + below(1000);
		reason = APIC_CALENDAR_BAD_COUNT;
		break;
	case 5:
		a.load.max_overruns = 1 + below(9);
		a.load.degraded = m->n_tables + below(3);
		reason = APIC_CALENDAR_BAD_DEGRADED;
		break;
	case 6:
		if (m->n_units)
			break;
		units[n_units - 1].cpu = 100000 + below(9);
		reason = APIC_CALENDAR_BAD_CPU;
		break;
	case 7:
		if (m->n_units)
			break;
		name_of(units[n_units - 1].name, n_units > 1 ? "u0" : "");
		reason = APIC_CALENDAR_BAD_NAME;
		break;
	case 8:
		/* Not an array of entries. */
		a.load.entries = any() | 1ULL << 62;
		break;
	case 9:
		if (m->n_tables) {
			a.load.max_overruns = 1 + below(3);
			a.load.degraded = below(m->n_tables);
		}
		break;
	}
	ret = call(m, APIC_CALENDAR_LOAD, sizeof(a.load));
	if (wrong == 8 && ret == -EFAULT)
		return 0;
	/* A wrong count is noticed before too many tables. */
	if (m->n_tables == APIC_CALENDAR_TABLES && reason != APIC_CALENDAR_BAD_COUNT)
		return ret == -ENOSPC ? 0 : bad("load, too many", ret);
	if (reason) {
		if (ret == -EINVAL && a.load.reason == reason)
			return 0;
		say_number((long)a.load.reason);
		return bad(" load, wrong", (long)reason);
	}
	/* It may load CPUs too much, but nothing else. */
	if (ret == -EINVAL && a.load.reason == APIC_CALENDAR_LOAD_SHARE)
		return 0;
	if (ret || a.load.table != m->n_tables)
		return bad("load", ret);
	if (!m->n_units) {
		m->n_units = n_units;
		memcpy(m->units, units, sizeof(units));
	}
	m->n_tables++;
	return 0;
}

/* Update the model's knowledge of a stop. */
static int looks(struct model *m)
{
	struct apic_calendar_status *s = &a.status;
	uint32_t unit = m->n_units ? below(m->n_units) : 0;
	long ret;

	clear();
	s->unit = unit;
	ret = call(m, APIC_CALENDAR_STATUS, sizeof(*s));
	if (!m->n_tables)
		return ret == -ENOENT ? 0 : bad("status without a table", ret);
	if (ret)
		return bad("status", ret);
	if (m->running == ENDING && s->state == APIC_CALENDAR_IDLE)
		m->running = IDLE;
	if (s->state != (m->running == IDLE ? APIC_CALENDAR_IDLE : APIC_CALENDAR_RUNNING))
		return bad("state", (long)s->state);
	if (m->running != IDLE && s->table >= m->n_tables)
		return bad("table", (long)s->table);
	if (m->units[unit].kind == APIC_CALENDAR_USER &&
	    s->tid != (m->bound == (int)unit ? pid : 0))
		return bad("tid", (long)s->tid);
	if (s->run < m->run[unit] || s->overran > s->run)
		return bad("counters", (long)s->run);
	m->run[unit] = s->run;
	return 0;
}

static int starts(struct model *m)
{
	uint32_t table = m->n_tables && below(8) ? below(m->n_tables) :
			 m->n_tables + below(3), mode = below(8);
	long ret;

	clear();
	a.start.table = table;
	if (mode == 0)
		a.start.when = 1;		/* in the past */
	if (mode == 1)
		a.start.clock = 3 + below(9);	/* none */
	if (mode == 2)
		a.start.epoch = 1000000;	/* a different one */
	if (mode == 3)
		a.start.when = 1ULL << 62;
	ret = call(m, APIC_CALENDAR_START, sizeof(a.start));
	if (table >= m->n_tables || mode == 1 || mode == 3)
		return ret == -EINVAL ? 0 : bad("start of none", ret);
	if (mode == 2)
		return ret == -ESTALE && a.start.epoch ? 0 : bad("start, epoch", ret);
	if (mode == 0)
		return ret == -ETIME ? 0 : bad("start, past", ret);
	if (ret == -EBUSY && (m->running != IDLE || contended(m) || others))
		return 0;
	/* It may have ended since the model's check; so may one that has had its CPU. */
	if (ret || m->running == RUNNING)
		return bad("start", ret);
	if (!a.start.when)
		return bad("start, moment", 0);
	m->running = RUNNING;
	return 0;
}

static int switches(struct model *m)
{
	uint32_t table = m->n_tables ? below(m->n_tables + 1) : 0;
	long ret;

	clear();
	a.start.table = table;
	ret = call(m, APIC_CALENDAR_SWITCH, sizeof(a.start));
	if (table >= m->n_tables)
		return ret == -EINVAL ? 0 : bad("switch to none", ret);
	if (m->running == RUNNING)
		return !ret || ret == -EBUSY ? 0 : bad("switch", ret);
	if (m->running == ENDING)
		return ret == -EBUSY || ret == -ESRCH ? 0 : bad("switch, ending", ret);
	return ret == -ESRCH ? 0 : bad("switch, idle", ret);
}

static int stops(struct model *m)
{
	uint32_t flags = below(8) ? below(2) : 2 + below(100);
	long ret;

	clear();
	a.stop.flags = flags;
	ret = call(m, APIC_CALENDAR_STOP, sizeof(a.stop));
	if (flags > 1)
		return ret == -EINVAL ? 0 : bad("stop, flags", ret);
	if (m->running == IDLE)
		return ret == -ESRCH ? 0 : bad("stop, idle", ret);
	if (m->running == ENDING && ret == -ESRCH) {
		m->running = IDLE;
		return 0;
	}
	if (ret == -EBUSY && flags)
		return 0;
	if (ret)
		return bad("stop", ret);
	m->running = flags ? ENDING : IDLE;
	return 0;
}

static int has_fifo(void)
{
	return (sys(NR_SCHED_GETSCHEDULER, 0, 0, 0, 0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

static int binds(struct model *m)
{
	uint32_t unit = below(8) && m->n_units ? below(m->n_units) : m->n_units + below(3);
	int release = below(2), user;
	long ret;

	clear();
	a.bind.unit = unit;
	ret = call(m, release ? APIC_CALENDAR_UNBIND : APIC_CALENDAR_BIND, sizeof(a.bind));
	if (!m->n_tables)
		return ret == -ENOENT ? 0 : bad("bind without a table", ret);
	user = unit < m->n_units && m->units[unit].kind == APIC_CALENDAR_USER;
	if (!user)
		return ret == -EINVAL ? 0 : bad("bind, no unit", ret);
	if (release) {
		if (m->bound != (int)unit)
			return ret == -ESRCH ? 0 : bad("unbind, not ours", ret);
		if (ret || has_fifo())
			return bad("unbind", ret);
		m->bound = -1;
		return 0;
	}
	/* A thread has one unit, of any calendar. */
	if (is_bound())
		return ret == -EBUSY ? 0 : bad("bind, another unit", ret);
	if (ret || !has_fifo())
		return bad("bind", ret);
	m->bound = (int)unit;
	return 0;
}

static int waits(struct model *m)
{
	uint32_t unit = m->bound >= 0 && below(8) ? (uint32_t)m->bound : below(UNITS);
	struct apic_calendar_wait *w = &a.wait;
	long ret;

	clear();
	w->unit = unit;
	w->flags = below(8) ? below(2) : below(100);
	w->returned = below(2) ? any() : 0;
	w->began = below(2) ? any() : 0;
	if (w->flags > 1) {
		ret = call(m, APIC_CALENDAR_WAIT, sizeof(*w));
		return ret == -EINVAL ? 0 : bad("wait, flags", ret);
	}
	ret = call(m, APIC_CALENDAR_WAIT, sizeof(*w));
	if (!m->n_tables)
		return ret == -ENOENT ? 0 : bad("wait without a table", ret);
	if (unit >= m->n_units || m->units[unit].kind != APIC_CALENDAR_USER)
		return ret == -EINVAL ? 0 : bad("wait, no unit", ret);
	if (m->bound != (int)unit)
		return ret == -ESRCH ? 0 : bad("wait, not ours", ret);
	if (ret == -EINTR || ret == -ECANCELED)
		return 0;
	if (ret || w->start >= w->timeout || w->table >= m->n_tables || w->reserved)
		return bad("wait", ret);
	if (m->running == IDLE)
		return bad("wait, idle", ret);
	return 0;
}

static int reads(struct model *m)
{
	size_t size = below(8) ? sizeof(receipts[0]) * (1 + below(64)) : below(200);
	long ret = sys(NR_READ, m->fd, receipts, size, 0), i;

	if (size < sizeof(receipts[0]))
		return ret == -EINVAL ? 0 : bad("read, small", ret);
	if (ret == -EAGAIN)
		return 0;
	if (ret <= 0 || ret % (long)sizeof(receipts[0]))
		return bad("read", ret);
	for (i = 0; i < ret / (long)sizeof(receipts[0]); i++) {
		if (receipts[i].number < m->next || receipts[i].table >= m->n_tables ||
		    receipts[i].result > APIC_CALENDAR_PASSED || !receipts[i].count)
			return bad("receipt", (long)receipts[i].number);
		m->next = receipts[i].number + 1;
		if (receipts[i].result == APIC_CALENDAR_PASSED)
			continue;
		if (receipts[i].unit >= m->n_units ||
		    receipts[i].cpu != m->units[receipts[i].unit].cpu)
			return bad("receipt's unit", (long)receipts[i].unit);
		if (receipts[i].began && receipts[i].result == APIC_CALENDAR_RAN &&
		    receipts[i].began < receipts[i].start)
			return bad("early", (long)receipts[i].number);
	}
	return 0;
}

static int others_do(struct model *m)
{
	unsigned int command;
	uint32_t i;
	long ret;

	for (i = 0; i < 20; i++)
		a.any[i] = any();
	switch (below(5)) {
	case 0:
		ret = sys(AT_NR_IOCTL, m->fd, APIC_CALENDAR_STATUS + 1 + below(1000), &a, 0);
		return ret == -ENOTTY ? 0 : bad("unknown command", ret);
	case 1:
		ret = sys(AT_NR_IOCTL, m->fd, APIC_CALENDAR_QUERY + below(9), any() | 1ULL << 62,
			  0);
		return ret == -EFAULT ? 0 : bad("bad pointer", ret);
	case 2:
		command = APIC_CALENDAR_QUERY + below(9);
		ret = call(m, command, below(8));
		return ret == -EINVAL ? 0 : bad("small", ret);
	case 3:
		a.any[19] |= 1;
		ret = call(m, APIC_CALENDAR_QUERY + below(9), sizeof(a));
		return ret == -E2BIG ? 0 : bad("big", ret);
	default:
		clear();
		ret = call(m, APIC_CALENDAR_QUERY, sizeof(a.query));
		return !ret && a.query.priority && a.query.tsc_khz ? 0 : bad("query", ret);
	}
}

static int closes(struct model *m)
{
	int was = m->bound >= 0;

	sys(AT_NR_CLOSE, m->fd, 0, 0, 0);
	if (was && has_fifo())
		return bad("priority after close", 1);
	return opens(m) ? bad("open", m->fd) : 0;
}

static int step(struct model *m)
{
	/* The model's IDLE and RUNNING are certain only after a check. */
	if (m->n_tables && looks(m))
		return 1;
	switch (below(16)) {
	case 0:
		return others_do(m);
	case 1:
	case 2:
		return loads(m);
	case 3:
	case 4:
		return starts(m);
	case 5:
	case 6:
		return switches(m);
	case 7:
		return stops(m);
	case 8:
	case 9:
		return binds(m);
	case 10:
		return reads(m);
	case 11:
		return below(16) ? 0 : closes(m);
	case 12:
		return looks(m);
	default:
		return waits(m);
	}
}

/* Wake a thread that waits in vain. */
static void alarm(int signal)
{
	(void)signal;
}

void restore(void);
__asm__(".globl restore\nrestore:\n\tmov $15, %eax\n\tsyscall\n");

int run(int argc, char **argv)
{
	struct { void (*handler)(int); unsigned long flags; void (*restore)(void); uint64_t mask; }
		action = { alarm, 0x04000000 /* SA_RESTORER, no SA_RESTART */, restore, 0 };
	long every[4] = { 0, 20000, 0, 20000 };
	uint64_t count, n;
	int i;

	if (argc < 4)
		return 2;
	count = number(argv[1]);
	random_seed(number(argv[2]));
	cpus = (uint32_t)number(argv[3]);
	others = argc > 4;
	pid = (uint32_t)sys(NR_GETPID, 0, 0, 0, 0);
	sys(NR_RT_SIGACTION, SIGALRM, &action, 0, 8);
	sys(NR_SETITIMER, 0, every, 0, 0);
	for (i = 0; i < CALENDARS; i++)
		if (opens(&calendars[i]))
			return 3;
	for (n = 0; n < count; n++) {
		if (step(&calendars[below(CALENDARS)])) {
			say("operation ");
			say_number((long)n);
			say("\n");
			return 1;
		}
	}
	for (i = 0; i < CALENDARS; i++)
		sys(AT_NR_CLOSE, calendars[i].fd, 0, 0, 0);
	return has_fifo();
}
