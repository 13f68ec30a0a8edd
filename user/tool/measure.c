// SPDX-License-Identifier: GPL-2.0
/*
 * The device of the module apic_measure: opening it, and errors in words.
 */
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

#include "files.h"
#include "measure.h"
#include "module.h"
#include "say.h"
#include "tsc.h"
#include "version.h"

#define NODE	"/dev/apic_measure"
#define CPUS	1024

static int node = -1, own_cpu;
static pid_t load;

static void explain(void)
{
	if (!files_exist("/sys/module/apic_measure"))
		fail("the module apic_measure is not loaded: sudo modprobe apic_measure");
	if (geteuid())
		fail("only root can open " NODE ": run it with sudo");
	if (errno == EBUSY)
		fail("another process is measuring: " NODE " is busy");
	if (errno == EPERM)
		fail("can't open " NODE ": the kernel is locked down, or this is a container");
	fail("can't open " NODE ": %s", strerror(errno));
}

void measure_begin(int cpu)
{
	bool allowed[CPUS];
	int end = tsc_allowed(allowed, CPUS);

	if (node >= 0)
		return;
	node = open(NODE, O_RDONLY | O_CLOEXEC);
	if (node < 0)
		explain();
	/* Both modules are installed together, and the other one says its version. */
	if (module_other_version())
		warn("the module is version %s, this program %s", module_other_version(),
		     APIC_TIMER_VERSION);
	for (own_cpu = cpu < 0 ? 0 : cpu; cpu < 0 && own_cpu < end && !allowed[own_cpu]; own_cpu++)
		;
	if (!tsc_pin(own_cpu))
		fail("may not run on CPU %d", own_cpu);
}

void measure_end(void)
{
	close(node);
	node = -1;
}

int measure_cpu(void)
{
	return own_cpu;
}

int measure_call(unsigned long command, void *argument, int may_fail)
{
	if (!ioctl(node, command, argument))
		return 0;
	if (errno == may_fail)
		return errno;
	if (errno == ENOTTY)
		fail("the module apic_measure is of another version than this program");
	if (errno == EINTR)
		fail("interrupted");
	if (errno == ENODEV)
		fail("CPU %d has no timers: see apic-timer status", own_cpu);
	fail("apic_measure: %s", strerror(errno));
}

void measure_read(struct apic_measure_record *record)
{
	ssize_t size = read(node, record, sizeof(*record));

	if (size == sizeof(*record))
		return;
	if (size < 0 && errno == EINTR)
		fail("interrupted");
	if (size < 0 && errno == ENODEV)
		fail("CPU %d has no timers: see apic-timer status", own_cpu);
	fail("apic_measure: %s", size < 0 ? strerror(errno) : "half a record");
}

void measure_real_time(void)
{
	struct sched_param priority = { .sched_priority = 90 };

	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		warn("not in real time: %s", strerror(errno));
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		warn("memory is not locked: %s", strerror(errno));
}

void measure_load_start(const char *command)
{
	struct sched_param normal = {};

	if (!command)
		return;
	fflush(stdout);
	load = fork();
	if (load < 0)
		fail("can't start the load: %s", strerror(errno));
	if (!load) {
		/* Not in real time, and on whichever CPU: on ours too. */
		setpgid(0, 0);
		sched_setscheduler(0, SCHED_OTHER, &normal);
		dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
		dup2(STDIN_FILENO, STDOUT_FILENO);
		dup2(STDIN_FILENO, STDERR_FILENO);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	setpgid(load, load);
	atexit(measure_load_stop);
	sleep(1);
	if (waitpid(load, NULL, WNOHANG) == load) {
		load = 0;
		fail("the load has ended within a second: %s", command);
	}
}

void measure_load_stop(void)
{
	if (load <= 0)
		return;
	kill(-load, SIGKILL);
	waitpid(load, NULL, 0);
	load = 0;
}
