// SPDX-License-Identifier: GPL-2.0
/* A private tracefs instance. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apic_version.h"
#include "files.h"
#include "module.h"
#include "say.h"
#include "tracing.h"
#include "words.h"

#define PREFIX "apic-timer-"

volatile bool tracing_stopped;

static const char *tracefs;	/* where it is mounted */
static char instance[128];	/* "" while there is none */
static int pipe_fd = -1;
static int held_fd = -1;	/* keeps the instance from being removed as stale */

static void stop(int signal)
{
	(void)signal;
	tracing_stopped = true;
}

/*
 * Signals that end a process and are not caused by its own fault; a failed write ends the
 * work as well.
 */
static const int heeded[] = {
	SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
	SIGIO, SIGPWR, SIGSTKFLT, SIGXCPU, SIGXFSZ,
};

static struct sigaction before[COUNT(heeded)];

void tracing_signals(void)
{
	struct sigaction action = { .sa_handler = stop };	/* no SA_RESTART: waiting ends */
	unsigned int i;

	for (i = 0; i < COUNT(heeded); i++) {
		sigaction(heeded[i], NULL, &before[i]);
		/*
		 * Respect an ignored SIGHUP only: a shell makes processes that it starts with "&"
		 * ignore other signals as well.
		 */
		if (heeded[i] != SIGHUP || before[i].sa_handler != SIG_IGN)
			sigaction(heeded[i], &action, NULL);
	}
}

/* Execute the command in the child of tracing_run(), with signals as this program found them. */
static void become(char **command, const sigset_t *mask)
{
	unsigned int i;

	for (i = 0; i < COUNT(heeded); i++)
		sigaction(heeded[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(*command, command);
	fprintf(stderr, "apic-timer: can't run %s: %s\n", *command, strerror(errno));
	_exit(127);
}

/* Check for a signal of the terminal, which no process has sent: it reaches the command as well. */
static bool from_terminal(const siginfo_t *info)
{
	return info->si_code > 0 && (info->si_signo == SIGINT || info->si_signo == SIGQUIT ||
				     info->si_signo == SIGHUP);
}

int tracing_run(char **command)
{
	sigset_t waited, mask;
	siginfo_t signal_info;
	struct sigaction now;
	int status = 0;
	unsigned int i;
	pid_t child;

	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	for (i = 0; i < COUNT(heeded); i++)
		if (!sigaction(heeded[i], NULL, &now) && now.sa_handler == stop)
			sigaddset(&waited, heeded[i]);
	/* Block them, so that none can arrive between the check and the wait. */
	sigprocmask(SIG_BLOCK, &waited, &mask);
	if (tracing_stopped)
		return 130;
	fflush(stdout);
	child = fork();
	if (child < 0)
		fail("can't run %s: %s", *command, strerror(errno));
	if (!child)
		become(command, &mask);
	/*
	 * The signal of an alarm() that was set before this program began is also for the
	 * command.
	 */
	while (!waitpid(child, &status, WNOHANG))
		if (sigwaitinfo(&waited, &signal_info) > 0 && signal_info.si_signo != SIGCHLD &&
		    !from_terminal(&signal_info))
			kill(child, signal_info.si_signo);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Get the name of an instance: the PID, and a number where there is more than one. */
static char *name_of(int pid, unsigned int number)
{
	return number ? format_text(PREFIX "%d.%u", pid, number) : format_text(PREFIX "%d", pid);
}

/* Return: the PID in a name that this program gives; 0 for a name that a user gave. */
static int owner_of(const char *name)
{
	unsigned int number = 0;
	char *own;
	int pid;

	if (sscanf(name, PREFIX "%d.%u", &pid, &number) < 1 || pid <= 0)
		return 0;
	own = name_of(pid, number);
	if (strcmp(name, own))
		pid = 0;
	free(own);
	return pid;
}

/*
 * Remove instances of processes that were killed. An instance in use, from
 * another PID namespace, has an open file and is busy.
 */
static void remove_stale(void)
{
	char *path = files_path("%s/instances", tracefs), *stale;
	DIR *directory = opendir(path);
	struct dirent *entry;
	int pid;

	while (directory && (entry = readdir(directory))) {
		pid = owner_of(entry->d_name);
		if (!pid || !kill(pid, 0) || errno != ESRCH)
			continue;
		stale = format_text("%s/%s", path, entry->d_name);
		rmdir(stale);
		free(stale);
	}
	if (directory)
		closedir(directory);
	free(path);
}

static void need_tracefs(void)
{
	static const char * const places[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	unsigned int i;

	for (i = 0; i < COUNT(places); i++) {
		if (files_exist("%s/instances", places[i])) {
			tracefs = places[i];
			return;
		}
	}
	if (!*files_root && geteuid())
		fail("only root can trace: run it with sudo");
	fail("tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing");
}

/*
 * There may be an instance of this PID: a stale one where PIDs repeat, as in
 * containers, or one in use from another PID namespace, which is busy.
 */
static void make_instance(void)
{
	char name[sizeof(instance)], *own, *path;
	unsigned int i;

	for (i = 0;; i++) {
		own = name_of(getpid(), i);
		snprintf(name, sizeof(name), "%s/instances/%s", tracefs, own);
		free(own);
		path = files_path("%s", name);
		if (!mkdir(path, 0700))
			break;
		if (errno == EACCES || errno == EPERM)
			fail("only root can trace: run it with sudo");
		if (errno != EEXIST || i == 100)
			fail("can't create %s: %s", path, strerror(errno));
		if (!rmdir(path) && !mkdir(path, 0700))
			break;
		free(path);
	}
	free(path);
	strcpy(instance, name);
}

void tracing_begin(void)
{
	char *path;

	if (!module_loaded())
		fail("the module apic_timer is not loaded: sudo modprobe apic_timer");
	need_tracefs();
	if (!files_exist("%s/events/" EVENT_SYSTEM "/" EVENT_RECEIPT, tracefs)) {
		if (module_other_version())
			fail("version mismatch: the module is %s, this program %s: it has no trace event "
			     EVENT_RECEIPT, module_other_version(), APIC_TIMER_VERSION);
		fail("the module has no trace event " EVENT_RECEIPT
		     ": was the kernel built without CONFIG_EVENT_TRACING?");
	}
	if (module_other_version())
		warn("version mismatch: the module is %s, this program %s", module_other_version(),
		     APIC_TIMER_VERSION);
	tracing_signals();
	remove_stale();
	make_instance();
	atexit(tracing_end);
	path = files_path("%s/trace_marker", instance);
	held_fd = open(path, O_WRONLY | O_CLOEXEC);
	free(path);
}

void tracing_end(void)
{
	char *path;
	int tries;

	if (!*instance)
		return;
	if (pipe_fd >= 0)
		close(pipe_fd);
	if (held_fd >= 0)
		close(held_fd);
	pipe_fd = -1;
	held_fd = -1;
	/* Removal includes its triggers. It fails while another process has a file of it open. */
	path = files_path("%s", instance);
	for (tries = 0; rmdir(path) && errno == EBUSY && tries < 20; tries++)
		usleep(50000);
	if (!access(path, F_OK) && !*files_root)
		warn("can't remove %s: %s", path, strerror(errno));
	free(path);
	*instance = 0;
}

void tracing_write(const char *file, const char *text)
{
	if (!files_write(text, "%s/%s", instance, file))
		fail("can't write \"%s\" to %s: %s", text, file, strerror(errno));
}

void tracing_format(void)
{
	static const char * const options[] = {
		"context-info", "nolatency-format", "noraw", "nohex", "nobin", "nofields", "noverbose",
		"nostacktrace", "nouserstacktrace",
	};
	unsigned int i;

	for (i = 0; i < COUNT(options); i++) {
		/* EINVAL: this kernel has no such option, as 6.1 no "fields". */
		if (files_write(options[i], "%s/trace_options", instance) || errno == EINVAL)
			continue;
		fail("can't write \"%s\" to %s/trace_options: %s", options[i], instance,
		     strerror(errno));
	}
}

void tracing_histogram(const char *event, const char *trigger)
{
	if (!files_exist("%s/events/" EVENT_SYSTEM "/%s/hist", tracefs, event))
		fail("this kernel has no event histograms: it was built without CONFIG_HIST_TRIGGERS");
	/* Nothing is recorded, so the buffer can be small. */
	files_write("4", "%s/buffer_size_kb", instance);
	if (!files_write(trigger, "%s/events/" EVENT_SYSTEM "/%s/trigger", instance, event))
		fail("the kernel rejects the histogram \"%s\" of %s: %s", trigger, event,
		     strerror(errno));
}

char *tracing_read_histogram(const char *event)
{
	char *text = files_read("%s/events/" EVENT_SYSTEM "/%s/hist", instance, event);

	if (!text)
		fail("can't read the histogram of %s: %s", event, strerror(errno));
	return text;
}

void tracing_filter(const char *event, const char *filter)
{
	if (!filter)
		filter = "0";
	if (files_write(filter, "%s/events/" EVENT_SYSTEM "/%s/filter", instance, event))
		return;
	if (errno == ENOENT && !module_loaded())
		fail("the module apic_timer has been unloaded");
	fail("the kernel rejects the filter \"%s\" of %s: %s", filter, event, strerror(errno));
}

void tracing_enable(const char *event)
{
	if (!files_write("1", "%s/events/" EVENT_SYSTEM "/%s/enable", instance, event))
		fail("can't enable %s: %s", event, strerror(errno));
}

int tracing_pipe(void)
{
	char *path = files_path("%s/trace_pipe", instance);

	pipe_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (pipe_fd < 0)
		fail("can't read %s: %s", path, strerror(errno));
	free(path);
	return pipe_fd;
}

void tracing_sleep(double seconds)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)seconds;
	end.tv_nsec += (seconds - (time_t)seconds) * 1e9;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	while (!tracing_stopped &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}
