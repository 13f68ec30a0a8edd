// SPDX-License-Identifier: GPL-2.0
/*
 * apic-calendar run FILE [SECONDS] [--table NAME] - load a calendar, and run a table.
 *
 * For each user unit, this program runs a thread that ends each window as soon as it
 * has begun. This shows whether the machine keeps to the table. Real work of units is
 * done by other programs, see apic_calendar_user.h.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apic_calendar_user.h"
#include "calendar.h"

#define STACK		65536
#define PATIENCE_MS	1000

struct worker {
	pthread_t thread;
	struct at_calendar calendar;
	uint32_t unit;
	sem_t *bound;
	int error;	/* errno value */
};

static int failed(const char *what, int error)
{
	fprintf(stderr, "apic-calendar: %s: %s\n", what, strerror(error < 0 ? -error : error));
	return 1;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	int ret = at_calendar_bind(&worker->calendar, worker->unit);

	worker->error = -ret;
	sem_post(worker->bound);
	while (!ret || ret == -EINTR)
		ret = at_calendar_wait(&worker->calendar);
	return NULL;
}

static int load(struct at_calendar *calendar, const struct calendar_file *file, const char *name)
{
	struct apic_calendar_load load;
	uint32_t table;
	int ret;

	for (table = 0; table < file->n_tables; table++) {
		load = calendar_file_load(file, table);
		ret = at_calendar_call(calendar, APIC_CALENDAR_LOAD, &load);
		if (ret && load.reason && load.reason < APIC_CALENDAR_REASONS)
			return calendar_refused(file, name, table, (struct calendar_verdict) {
				.reason = load.reason, .bad = load.bad, .other = load.other,
			});
		if (ret)
			return failed("load", ret);
	}
	return 0;
}

/* Start and bind a thread for each unit that needs one. Returns their number. */
static int begin(const struct at_calendar *calendar, const struct calendar_file *file,
		 struct worker *workers, uint32_t *n)
{
	static sem_t bound;
	pthread_attr_t small;
	struct worker *worker;
	uint32_t i;
	int ret;

	sem_init(&bound, 0, 0);
	/* Use small stacks, because a stack is locked into memory as a whole. */
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	for (i = 0; i < file->n_units; i++) {
		if (file->units[i].kind != APIC_CALENDAR_USER)
			continue;
		worker = &workers[*n];
		at_calendar_init(&worker->calendar, calendar->fd);
		worker->unit = i;
		worker->bound = &bound;
		ret = pthread_create(&worker->thread, &small, work, worker);
		if (ret)
			return failed("thread", ret);
		++*n;
		while (sem_wait(&bound) && errno == EINTR)
			;
		if (worker->error)
			return failed(file->units[i].name, worker->error);
	}
	return 0;
}

static double us(uint64_t cycles, uint32_t khz)
{
	return (double)cycles * 1000 / khz;
}

/* Print the result of each unit. Returns the state of the calendar. */
static struct apic_calendar_status show(const struct at_calendar *calendar,
					const struct calendar_file *file)
{
	struct apic_calendar_query query = { .size = sizeof(query) };
	struct apic_calendar_status status = { .size = sizeof(status) };
	uint32_t i;

	at_calendar_call(calendar, APIC_CALENDAR_QUERY, &query);
	for (i = 0; i < file->n_units; i++) {
		status = (struct apic_calendar_status) { .size = sizeof(status), .unit = i };
		at_calendar_call(calendar, APIC_CALENDAR_STATUS, &status);
		if (!i) {
			printf("%s\n%-20s %10s %8s %9s %8s %12s %10s\n",
			       status.table < file->n_tables ? file->tables[status.table].name :
			       "stopped", "", "run", "missed", "never ran", "overran",
			       "slack us", "lead us");
		}
		printf("%-20s %10llu %8llu %9llu %8llu", file->units[i].name,
		       (unsigned long long)status.run, (unsigned long long)status.missed,
		       (unsigned long long)status.never_ran, (unsigned long long)status.overran);
		if (status.slack_min == UINT64_MAX)
			printf(" %12s", "-");
		else
			printf(" %12.3f", us(status.slack_min, query.tsc_khz));
		printf(" %10.3f\n", us(status.lead, query.tsc_khz));
	}
	fflush(stdout);
	return status;
}

/*
 * Stop at the end of a major cycle, which takes two cycles or more. Where that would take longer
 * than PATIENCE_MS, or if another signal arrives, stop at once.
 */
static int stop(const struct at_calendar *calendar, const sigset_t *signals)
{
	static const struct timespec ms = { .tv_nsec = 1000000 };
	struct apic_calendar_stop stop = {
		.size = sizeof(stop), .flags = APIC_CALENDAR_AT_BOUNDARY,
	};
	struct apic_calendar_status status = { .size = sizeof(status) };
	int ret = -EBUSY, i;

	for (i = 0; i < PATIENCE_MS && sigtimedwait(signals, NULL, &ms) < 0; i++) {
		/* A change may be under way. */
		if (ret == -EBUSY)
			ret = at_calendar_call(calendar, APIC_CALENDAR_STOP, &stop);
		if (!ret)
			ret = at_calendar_call(calendar, APIC_CALENDAR_STATUS, &status);
		if (!ret && status.state != APIC_CALENDAR_RUNNING)
			return 0;
		if (ret && ret != -EBUSY)
			break;
	}
	if (!ret || ret == -EBUSY) {
		stop.flags = 0;
		ret = at_calendar_call(calendar, APIC_CALENDAR_STOP, &stop);
	}
	/* The calendar may have stopped by itself. */
	return ret == -ESRCH ? 0 : ret;
}

static int run(const struct at_calendar *calendar, const struct calendar_file *file,
	       uint32_t table, unsigned long seconds, const sigset_t *signals)
{
	struct apic_calendar_start start = { .size = sizeof(start), .table = table };
	const struct timespec second = { .tv_sec = 1 };
	struct apic_calendar_status status;
	unsigned long n = 0;
	int ret;

	ret = at_calendar_call(calendar, APIC_CALENDAR_START, &start);
	if (ret)
		return failed("start", ret);
	while (sigtimedwait(signals, NULL, &second) < 0) {
		if (errno == EINTR)
			continue;
		if (++n == seconds)
			break;
		status = show(calendar, file);
		if (status.state != APIC_CALENDAR_RUNNING)
			return failed("stopped", (int)status.error);
	}
	ret = stop(calendar, signals);
	status = show(calendar, file);
	if (ret)
		return failed("stop", ret);
	return status.error == ECANCELED ? 0 : failed("stopped", (int)status.error);
}

int calendar_run(const struct calendar_file *file, const char *name, const char *table,
		 unsigned long seconds)
{
	static struct worker workers[APIC_CALENDAR_UNITS];
	struct at_calendar calendar;
	uint32_t first = 0, n = 0, i;
	sigset_t signals;
	int ret;

	while (table && strcmp(table, file->tables[first].name)) {
		if (++first < file->n_tables)
			continue;
		fprintf(stderr, "apic-calendar: %s: no table %s\n", name, table);
		return 1;
	}
	/* The threads inherit the blocked signals: only this thread waits for them. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	ret = at_calendar_open(&calendar);
	if (ret)
		return failed(AT_CALENDAR_DEVICE, ret);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		perror("apic-calendar: mlockall");
	ret = load(&calendar, file, name);
	if (!ret)
		ret = begin(&calendar, file, workers, &n);
	if (ret)
		return ret;
	ret = run(&calendar, file, first, seconds, &signals);
	if (ret)
		return ret;
	for (i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	close(calendar.fd);
	return 0;
}
