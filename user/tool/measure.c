// SPDX-License-Identifier: GPL-2.0
/* The device of the module apic_measure: open it, and report errors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apic_version.h"
#include "files.h"
#include "measure.h"
#include "module.h"
#include "say.h"
#include "tsc.h"

#define NODE	"/dev/apic_measure"

static int node = -1, own_cpu;
static struct tsc_cpus before;	/* CPUs before binding */
static pid_t load, watcher;
static int end_of_load = -1;	/* closed when this program ends, or before */

static void explain(int error)
{
	/* Where it is built in, it has no directory in /sys, but the device is there. */
	if (error == ENOENT && !files_exist("/sys/module/apic_measure"))
		fail("the module apic_measure is not loaded: sudo modprobe apic_measure");
	if (geteuid())
		fail("only root can open " NODE ": run it with sudo");
	if (error == EBUSY)
		fail("another process is measuring: " NODE " is busy");
	if (error == EPERM)
		fail("can't open " NODE ": the kernel is locked down, or this is a container");
	fail("can't open " NODE ": %s", strerror(error));
}

void measure_begin(int cpu)
{
	bool allowed[CPUS];
	int end = tsc_allowed(allowed, CPUS);

	if (node >= 0)
		return;
	node = open(NODE, O_RDONLY | O_CLOEXEC);
	if (node < 0)
		explain(errno);
	/* Both modules are installed together, and only the other one reports its version. */
	if (module_other_version())
		warn("version mismatch: the module is %s, this program %s", module_other_version(),
		     APIC_TIMER_VERSION);
	before = tsc_cpus_get();
	for (own_cpu = cpu < 0 ? 0 : cpu; cpu < 0 && own_cpu < end && !allowed[own_cpu]; own_cpu++)
		;
	if (!tsc_may_run(own_cpu) || !tsc_pin(own_cpu))
		fail("not allowed to run on CPU %d", own_cpu);
}

/*
 * A figure is of one CPU. When that goes offline, or is taken from this process's cpuset, the
 * kernel moves the process to another CPU, and no call fails.
 */
static void check_cpu(void)
{
	int cpu = sched_getcpu();

	if (cpu >= 0 && cpu != own_cpu)
		fail("moved to CPU %d while measuring on CPU %d: is that offline, or taken away?",
		     cpu, own_cpu);
}

void measure_end(void)
{
	check_cpu();
	close(node);
	node = -1;
}

int measure_cpu(void)
{
	return own_cpu;
}

int measure_call(unsigned long command, void *argument, int may_fail)
{
	if (!ioctl(node, command, argument)) {
		check_cpu();
		return 0;
	}
	if (errno == may_fail)
		return errno;
	if (errno == ENOTTY)
		fail("the module apic_measure is not of this program's version");
	if (errno == EINTR)
		fail("interrupted");
	if (errno == ENODEV)
		fail("CPU %d has no timers: see apic-timer status", own_cpu);
	fail("apic_measure: %s", strerror(errno));
}

void measure_read(struct apic_measure_record *record)
{
	ssize_t size;

	/* After the read() it would add to the time at which the caller runs again. */
	check_cpu();
	size = read(node, record, sizeof(*record));
	if (size == sizeof(*record))
		return;
	if (size < 0 && errno == EINTR)
		fail("interrupted");
	if (size < 0 && errno == ENODEV)
		fail("CPU %d has no timers: see apic-timer status", own_cpu);
	fail("apic_measure: %s", size < 0 ? strerror(errno) : "incomplete record");
}

void measure_real_time(void)
{
	struct sched_param priority = { .sched_priority = 90 };

	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		warn("no real-time priority: %s", strerror(errno));
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		warn("memory is not locked: %s", strerror(errno));
}

/*
 * Kill the load when this program ends for any reason: even SIGKILL ends the read() here. Runs
 * in a session of its own, which the terminal's signals do not reach.
 */
static void watch(int end)
{
	char none;

	setsid();
	close(node);
	close(end_of_load);
	while (read(end, &none, 1) < 0 && errno == EINTR)
		;
	kill(-load, SIGKILL);
	_exit(0);
}

void measure_load_start(const char *command)
{
	struct sched_param normal = {};
	siginfo_t ended = {};
	int ends[2];

	if (!command)
		return;
	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC))
		fail("can't start the load: %s", strerror(errno));
	load = fork();
	if (load < 0)
		fail("can't start the load: %s", strerror(errno));
	if (!load) {
		/*
		 * Run the load without real-time priority, on all CPUs that this program was
		 * given, including ours, unless that is isolated: from an isolated CPU,
		 * nothing would be moved to the others.
		 */
		setpgid(0, 0);
		sched_setscheduler(0, SCHED_OTHER, &normal);
		tsc_cpus_set(0, &before);
		dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
		dup2(STDIN_FILENO, STDOUT_FILENO);
		dup2(STDIN_FILENO, STDERR_FILENO);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	setpgid(load, load);
	end_of_load = ends[1];
	atexit(measure_load_stop);
	watcher = fork();
	if (watcher < 0)
		fail("can't watch the load: %s", strerror(errno));
	if (!watcher)
		watch(ends[0]);
	close(ends[0]);
	sleep(1);
	if (!waitid(P_PID, load, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid == load)
		fail("the load ended within a second: %s", command);
}

void measure_load_stop(void)
{
	if (load <= 0)
		return;
	kill(-load, SIGKILL);
	close(end_of_load);
	/* The watcher kills once more: the PID belongs to the load until it is waited for. */
	if (watcher > 0)
		waitpid(watcher, NULL, 0);
	waitpid(load, NULL, 0);
	load = 0;
}
