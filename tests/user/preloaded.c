// SPDX-License-Identifier: GPL-2.0
/*
 * preloaded CASE - check that clock_nanosleep() and timerfd behave as programs expect: "ok", or
 * the fault. With libc; both with and without the preload library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MS	1000000L

static struct timespec in(long ms)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_sec += ms / 1000;
	time.tv_nsec += ms % 1000 * MS;
	if (time.tv_nsec >= 1000 * MS) {
		time.tv_sec++;
		time.tv_nsec -= 1000 * MS;
	}
	return time;
}

static int sleep_until(struct timespec time)
{
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static int wrong(const char *what, long result)
{
	printf("%s: %ld\n", what, result);
	return 1;
}

static void interrupt(int number)
{
	(void)number;
	sleep_until(in(10));
}

/* signal() requests restarts, which do not apply to a sleep until a moment. */
static int ends_by_signal(void)
{
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	struct timespec when = in(5000), now;
	int ret;

	signal(SIGALRM, interrupt);
	setitimer(ITIMER_REAL, &soon, NULL);
	ret = sleep_until(when);
	if (ret != EINTR)
		return wrong("signalled sleep", ret);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec >= when.tv_sec)
		return wrong("seconds too long", now.tv_sec - when.tv_sec);
	return 0;
}

/* Moments after the end of the clock do not come. */
static int never_comes(void)
{
	static const time_t seconds[] = { LONG_MAX, 1L << 62, 20000000000L };
	struct pollfd polled = {
		.fd = timerfd_create(CLOCK_MONOTONIC, 0),
		.events = POLLIN,
	};
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	struct itimerspec new = { }, now;
	unsigned int i;
	int ret;

	signal(SIGALRM, interrupt);
	for (i = 0; i < 2 * sizeof(seconds) / sizeof(*seconds); i++) {
		new.it_value.tv_sec = seconds[i / 2];
		ret = timerfd_settime(polled.fd, i & 1 ? TFD_TIMER_ABSTIME : 0, &new, NULL);
		if (ret)
			return wrong("settime", errno);
		if (poll(&polled, 1, 50))
			return wrong("expired", i);
		if (timerfd_gettime(polled.fd, &now) || now.it_value.tv_sec < 1000000000)
			return wrong("rest", now.it_value.tv_sec);
		setitimer(ITIMER_REAL, &soon, NULL);
		ret = sleep_until(new.it_value);
		if (ret != EINTR)
			return wrong("sleep", ret);
	}
	close(polled.fd);
	return 0;
}

#define FILES	32

/* Close all files, as a program does that becomes a daemon, and open others. */
static void reopen(int by_range)
{
	int i;

	if (by_range)
		close_range(3, ~0U, 0);
	for (i = 3; i < FILES; i++)
		close(i);
	for (i = 3; i < FILES; i++)
		open("/dev/null", O_RDWR);
}

static int closed(void)
{
	int i, n = 0;

	for (i = 3; i < FILES; i++)
		n += fcntl(i, F_GETFD) < 0;
	return n;
}

static sem_t begun, ended;

static void *thread(void *unused)
{
	(void)unused;
	sleep_until(in(1));
	sem_post(&begun);
	sem_wait(&ended);
	return NULL;
}

/* Whatever a program has closed, its next files work as usual. */
static int keeps_files(void)
{
	struct itimerspec new = { .it_value.tv_sec = 1000 };
	pthread_t other;
	int i, fd, status;

	for (i = 0; i < 4; i++) {
		sleep_until(in(1));
		if (i & 2 && fork()) {
			wait(&status);
			if (status)
				return 1;
			continue;
		}
		reopen(i & 1);
		sleep_until(in(1));
		sleep_until(in(1));
		if (closed())
			return wrong("files closed", closed());
		if (i & 2)
			_exit(0);
	}
	sem_init(&begun, 0, 0);
	sem_init(&ended, 0, 0);
	pthread_create(&other, NULL, thread, NULL);
	sem_wait(&begun);
	reopen(0);
	sem_post(&ended);
	pthread_join(other, NULL);
	if (closed())
		return wrong("files closed by a thread", closed());
	close_range(3, ~0U, 0);
	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	/* A child of vfork() has its own files, but not its own memory. */
	if (!vfork()) {
		close(fd);
		_exit(0);
	}
	if (timerfd_settime(fd, 0, &new, NULL))
		return wrong("timer lost", errno);
	dup2(0, fd);
	if (!timerfd_settime(fd, 0, &new, NULL) || errno != EINVAL)
		return wrong("no timer, but", errno);
	return 0;
}

/* Whatever calls first, a timer that is closed is forgotten: its number is free for others. */
static int calls_early(void)
{
	pthread_t other;
	int fd;

	if (!vfork()) {
		close(FILES);
		_exit(0);
	}
	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	close(fd);
	sem_init(&begun, 0, 0);
	sem_init(&ended, 0, 1);
	pthread_create(&other, NULL, thread, NULL);
	pthread_join(other, NULL);
	return fcntl(fd, F_GETFD) < 0 ? 0 : wrong("left open", fd);
}

static int timer;

static void *sets(void *unused)
{
	struct itimerspec new = { .it_value.tv_sec = 1000 };

	(void)unused;
	for (;;)
		timerfd_settime(timer, 0, &new, NULL);
	return NULL;
}

/* A child of fork() has its timers, in any state of the other threads. */
static int forks(void)
{
	struct itimerspec now;
	pthread_t other;
	int i, status;

	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	pthread_create(&other, NULL, sets, NULL);
	for (i = 0; i < 200; i++) {
		if (!fork()) {
			alarm(1);
			_exit(timerfd_gettime(timer, &now));
		}
		wait(&status);
		if (status)
			return wrong("child", status);
	}
	return 0;
}

static sem_t forking;

static void *works(void *unused)
{
	struct itimerspec new = { .it_value.tv_sec = 1000 };

	(void)unused;
	sleep_until(in(1));
	sem_post(&begun);
	sem_wait(&forking);
	timerfd_settime(timer, 0, &new, NULL);
	sleep_until(in(1));
	sem_post(&ended);
	return NULL;
}

static pthread_t worker;
static int waited;

/* As some libraries do, end their thread before the process is copied. */
static void before_fork(void)
{
	struct timespec until;

	if (!worker)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	sem_post(&forking);
	waited = sem_timedwait(&ended, &until);
	if (!waited)
		waited = pthread_clockjoin_np(worker, NULL, CLOCK_REALTIME, &until);
}

static void register_first(void)
{
	pthread_atfork(before_fork, NULL, NULL);
}

/* What is registered first comes last before the process is copied. */
static __attribute__((section(".preinit_array"), used))
void (*first)(void) = register_first;

/* While one thread forks, others go on and end. */
static int forks_late(void)
{
	int status;

	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	sem_init(&begun, 0, 0);
	sem_init(&ended, 0, 0);
	sem_init(&forking, 0, 0);
	pthread_create(&worker, NULL, works, NULL);
	sem_wait(&begun);
	if (!fork()) {
		alarm(1);
		_exit(sleep_until(in(1)) || timerfd_gettime(timer, &(struct itimerspec) { }));
	}
	wait(&status);
	if (status)
		return wrong("child", status);
	return waited ? wrong("others have waited", waited) : 0;
}

/* Return the number of open files that are the device. */
static int devices(void)
{
	char link[64], target[64];
	ssize_t length;
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = 0;
		n += !strcmp(target, "/dev/apic_timer");
	}
	return n;
}

#define THREADS	8

/* A child has no threads but one, nor the files by which others sleep. */
static int leaves_files(void)
{
	int i, status, fd = timerfd_create(CLOCK_MONOTONIC, 0), timers = devices();
	struct itimerspec now;
	pthread_t other;

	if (!timers && getenv("LD_PRELOAD"))
		return wrong("no device", fd);
	sem_init(&begun, 0, 0);
	sem_init(&ended, 0, 0);
	for (i = 0; i < THREADS; i++)
		pthread_create(&other, NULL, thread, NULL);
	for (i = 0; i < THREADS; i++)
		sem_wait(&begun);
	sleep_until(in(1));
	if (!fork()) {
		if (devices() != timers)
			return wrong("devices in a child", devices());
		sleep_until(in(1));
		_exit(devices() > 2 * timers || timerfd_gettime(fd, &now));
	}
	wait(&status);
	if (status)
		return wrong("child", status);
	return timers && devices() != timers + THREADS + 1 ? wrong("devices", devices()) : 0;
}

static volatile sig_atomic_t handled;

static void looks(int number)
{
	struct itimerspec now;

	(void)number;
	timerfd_gettime(timer, &now);
	handled++;
}

/* A signal's handler may read the timer that the thread is about to set. */
static int handler_asks(void)
{
	struct itimerval often = { { .tv_usec = 997 }, { .tv_usec = 997 } };
	struct itimerspec new = { .it_value.tv_sec = 1000 };
	int status, i;
	pid_t child;

	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	child = fork();
	if (!child) {
		signal(SIGALRM, looks);
		setitimer(ITIMER_REAL, &often, NULL);
		while (handled < 200)
			timerfd_settime(timer, 0, &new, NULL);
		_exit(0);
	}
	for (i = 0; i < 1000; i++) {
		sleep_until(in(10));
		if (waitpid(child, &status, WNOHANG))
			return status ? wrong("child", status) : 0;
	}
	kill(child, SIGKILL);
	wait(&status);
	return wrong("seconds", i / 100);
}

static unsigned long long read_tsc(void)
{
	unsigned long long tsc;

	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	tsc = __builtin_ia32_rdtsc();
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	return tsc;
}

static unsigned long long vdso, restarted_at;

/* Read the TSC as one that has restarted, except for the kernel's clock. */
static void restarted(int number, siginfo_t *info, void *data)
{
	greg_t *regs = ((ucontext_t *)data)->uc_mcontext.gregs;
	const unsigned char *code = (const unsigned char *)regs[REG_RIP];
	int rdtscp = !memcmp(code, "\x0f\x01\xf9", 3);
	unsigned long long tsc;

	(void)info;
	if (!rdtscp && memcmp(code, "\x0f\x31", 2)) {
		signal(number, SIG_DFL);
		return;
	}
	tsc = read_tsc();
	if (regs[REG_RIP] - vdso >= 1 << 14)
		tsc -= restarted_at;
	regs[REG_RAX] = tsc & 0xffffffff;
	regs[REG_RDX] = tsc >> 32;
	if (rdtscp)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += rdtscp ? 3 : 2;
}

/* The TSC restarts while a thread is about to return from its sleep. */
static int restarts(void)
{
	struct sigaction action = { .sa_sigaction = restarted, .sa_flags = SA_SIGINFO };
	struct timespec when, now;
	int ret;

	vdso = getauxval(AT_SYSINFO_EHDR);
	sigaction(SIGSEGV, &action, NULL);
	sleep_until(in(1));
	/* Before the machine slept, the TSC had counted for longer than this guest's has. */
	restarted_at = read_tsc() << 8;
	alarm(1);
	when = in(50);
	ret = sleep_until(when);
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	if (ret)
		return wrong("sleep", ret);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < when.tv_sec || (now.tv_sec == when.tv_sec && now.tv_nsec < when.tv_nsec))
		return wrong("early", when.tv_nsec - now.tv_nsec);
	if (now.tv_sec > when.tv_sec + 1)
		return wrong("seconds late", now.tv_sec - when.tv_sec);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "signalled", ends_by_signal },
	{ "never", never_comes },
	{ "closes", keeps_files },
	{ "forks", forks },
	{ "forks-late", forks_late },
	{ "handler", handler_asks },
	{ "restarts", restarts },
	{ "early", calls_early },
	{ "leaves", leaves_files },
};

int main(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		if (cases[i].run())
			return 1;
		puts("ok");
		return 0;
	}
	return wrong("case", argc);
}
