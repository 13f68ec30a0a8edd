// SPDX-License-Identifier: GPL-2.0
/*
 * libapictimer-preload.so: let unchanged programs that sleep with
 * clock_nanosleep(TIMER_ABSTIME) or timerfd use /dev/apic_timer.
 *
 *	LD_PRELOAD=/path/to/libapictimer-preload.so cyclictest ...
 *
 * The kernel's own calls still serve the cases that the device does not: other clocks,
 * relative sleeps, a device that cannot be opened, a sleeper over a limit. With
 * APIC_TIMER_PRELOAD=0 in the environment, they serve everything.
 */
#if !defined(__x86_64__) || defined(__ILP32__)
/* Those whose time_t has 64 bits call other functions: their timerfd would not work. */
#error "this library is not for programs of 32 bits"
#endif

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "apic_timer_user.h"

#define NS_PER_S	1000000000ULL
#define NS_AT_MOST	1000000ULL	/* of waiting for the clock itself */
#define TIMERS		64
#define FILES		65536

static int (*next_clock_nanosleep)(clockid_t, int, const struct timespec *,
				   struct timespec *);
static int (*next_timerfd_create)(int, int);
static int (*next_timerfd_settime)(int, int, const struct itimerspec *,
				   struct itimerspec *);
static int (*next_timerfd_gettime)(int, struct itimerspec *);
static int (*next_close)(int);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int off;
static pid_t process;
static dev_t device;		/* atomic */

/*
 * A timerfd of the program that is really an open device. Its expiry is kept here,
 * because the device has no gettime.
 */
struct timer {
	int fd;			/* -1: none; atomic: close() takes no lock */
	int clock;
	uint64_t expires;	/* ns, 0: not armed */
	uint64_t interval;
};

static struct timer timers[TIMERS];

/*
 * Which files are threads' devices, a bit each; atomic: close() takes no lock. A child of fork()
 * closes them, except for higher numbers, which few processes have.
 */
static uint64_t files[FILES / 64];

/* For all changes of timers but those by close(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Keeps fork() away while a thread opens and notes its device, or closes it: the child could not
 * know of that file. Only fork() waits for it. A thread that waited for fork() might wait for ever:
 * before the process is copied, a library may wait until its own threads have ended, or hold
 * what they need to go on.
 */
static pthread_rwlock_t forking = PTHREAD_RWLOCK_INITIALIZER;
static sigset_t fork_mask;	/* of the thread that forks, under that lock */

/* A thread's device. A child process opens its own: the page is not inherited. */
static __thread struct at at = { .fd = -1 };
static pthread_key_t at_key;

static void block_signals(sigset_t *mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, mask);
}

/* Take the lock with signals blocked: a signal's handler may also take it. */
static void take_lock(sigset_t *mask)
{
	block_signals(mask);
	pthread_mutex_lock(&lock);
}

static void release_lock(const sigset_t *mask)
{
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static struct timer *find(int fd)
{
	int i;

	for (i = 0; i < TIMERS; i++)
		if (__atomic_load_n(&timers[i].fd, __ATOMIC_ACQUIRE) == fd)
			return &timers[i];
	return NULL;
}

static int is_noted(int fd)
{
	return fd >= 0 && fd < FILES &&
	       __atomic_load_n(&files[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1;
}

static void note(int fd)
{
	if (fd < FILES)
		__atomic_or_fetch(&files[fd / 64], UINT64_C(1) << fd % 64, __ATOMIC_RELAXED);
}

static void forget(int fd)
{
	if (is_noted(fd))
		__atomic_and_fetch(&files[fd / 64], ~(UINT64_C(1) << fd % 64), __ATOMIC_RELAXED);
}

static int open_device(struct at *own)
{
	struct stat status;

	if (off || at_open(own) < 0)
		return -1;
	if (!fstat(own->fd, &status))
		__atomic_store_n(&device, status.st_rdev, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Check whether a file is still the device: the program may have closed it, for example
 * with all files above 2, and opened another one.
 */
static int is_device(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && S_ISCHR(status.st_mode) &&
	       status.st_rdev == __atomic_load_n(&device, __ATOMIC_RELAXED);
}

/* Forget a thread's device, and close it if it is still open. */
static void drop(struct at *own)
{
	forget(own->fd);
	if (own->fd >= 0 && (!is_device(own->fd) || find(own->fd)))
		own->fd = -1;
	at_close(own);
}

static void end_thread(void *data)
{
	sigset_t mask;
	int forks;

	block_signals(&mask);
	/* If another thread is forking, its child may keep the file, which costs little. */
	forks = pthread_rwlock_tryrdlock(&forking);
	drop(data);
	if (!forks)
		pthread_rwlock_unlock(&forking);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void before_fork(void)
{
	sigset_t mask;

	block_signals(&mask);
	pthread_rwlock_wrlock(&forking);
	fork_mask = mask;
}

static void after_fork(void)
{
	sigset_t mask = fork_mask;

	pthread_rwlock_unlock(&forking);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/*
 * The threads whose devices these files are exist in the parent only, and a file that is open
 * holds the module. The child does not inherit the pages. Nor does it have the thread that held
 * the lock, or, since its own thread has another number, the one that holds the other.
 */
static void after_fork_in_child(void)
{
	int fd;

	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	forking = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	for (fd = 0; fd < FILES; fd++) {
		if (!files[fd / 64])
			fd += 63;
		else if (is_noted(fd) && is_device(fd) && !find(fd))
			next_close(fd);
	}
	memset(files, 0, sizeof(files));
	drop(&at);
	process = getpid();
	pthread_sigmask(SIG_SETMASK, &fork_mask, NULL);
}

static void start(void)
{
	const char *wish = getenv("APIC_TIMER_PRELOAD");
	int i;

	off = wish && !strcmp(wish, "0");
	process = getpid();
	for (i = 0; i < TIMERS; i++)
		timers[i].fd = -1;
	next_clock_nanosleep = dlsym(RTLD_NEXT, "clock_nanosleep");
	next_timerfd_create = dlsym(RTLD_NEXT, "timerfd_create");
	next_timerfd_settime = dlsym(RTLD_NEXT, "timerfd_settime");
	next_timerfd_gettime = dlsym(RTLD_NEXT, "timerfd_gettime");
	next_close = dlsym(RTLD_NEXT, "close");
	pthread_key_create(&at_key, end_thread);
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/*
 * Before main(), when there is no other thread, no signal's handler and no child that shares our
 * memory. The calls do it too, for those that come from constructors that run earlier.
 */
static __attribute__((constructor)) void start_early(void)
{
	pthread_once(&once, start);
}

static int open_thread(void)
{
	sigset_t mask;
	int ret = 0;

	if (at.fd >= 0)
		return 0;
	if (off)
		return -1;
	block_signals(&mask);
	/* During fork() the kernel's own call serves this sleep. */
	if (pthread_rwlock_tryrdlock(&forking)) {
		ret = -1;
	} else {
		if (at.fd < 0)	/* else a signal's handler has opened it */
			ret = open_device(&at);
		if (!ret)
			note(at.fd);
		pthread_rwlock_unlock(&forking);
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (!ret)
		pthread_setspecific(at_key, &at);
	return ret;
}

static int clock_of(clockid_t clock)
{
	if (clock == CLOCK_MONOTONIC)
		return APIC_TIMER_CLOCK_MONOTONIC;
	if (clock == CLOCK_TAI)
		return APIC_TIMER_CLOCK_TAI;
	return -1;
}

/* Convert to ns, saturating at the largest moment, as the kernel does. */
static uint64_t ns_of(const struct timespec *time)
{
	if ((uint64_t)time->tv_sec >= INT64_MAX / NS_PER_S)
		return INT64_MAX;
	return time->tv_sec * NS_PER_S + time->tv_nsec;
}

static uint64_t now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return ns_of(&now);
}

static int is_time(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)NS_PER_S;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
		    struct timespec *rest)
{
	int ours = clock_of(clock), ret, old;
	uint64_t wanted, now;
	struct at own;

	pthread_once(&once, start);
	if (ours < 0 || flags != TIMER_ABSTIME || !is_time(time) || open_thread())
		return next_clock_nanosleep(clock, flags, time, rest);
	wanted = ns_of(time);
	/* Use a copy, because a signal's handler may sleep as well. */
	own = at;
	own.flags = APIC_TIMER_SLEEP_NO_RESTART;
	/* The replaced call is a cancellation point. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	ret = at_sleep(&own, ours, wanted);
	pthread_setcanceltype(old, &old);
	at.began = own.began;
	if (ret == -EINTR)
		return EINTR;
	if (ret) {
		if (!is_device(own.fd))
			end_thread(&at);
		return next_clock_nanosleep(clock, flags, time, rest);
	}
	at_finish(&own);
	/*
	 * The clock itself decides, in case it does not run on the TSC or was slowed down, or
	 * the TSC has restarted. If it was set back since the kernel last converted the moment,
	 * the wait may be hours.
	 */
	while ((now = now_of(clock)) < wanted)
		if (wanted - now > NS_AT_MOST)
			return next_clock_nanosleep(clock, flags, time, rest);
	return 0;
}

/* Find a timer whose file is still the device. Under the lock. */
static struct timer *find_open(int fd)
{
	struct timer *timer = fd >= 0 ? find(fd) : NULL;

	if (timer && !is_device(fd)) {
		__atomic_store_n(&timer->fd, -1, __ATOMIC_RELEASE);
		timer = NULL;
	}
	return timer;
}

int timerfd_create(int clock, int flags)
{
	struct timer *timer;
	struct at own;
	sigset_t mask;
	int fd, ours = clock_of(clock);

	pthread_once(&once, start);
	if (ours < 0 || flags & ~(TFD_CLOEXEC | TFD_NONBLOCK) || open_device(&own))
		return next_timerfd_create(clock, flags);
	/* The timer does not need the page. */
	at_unmap(&own);
	fd = own.fd;
	take_lock(&mask);
	/* A timer whose file was closed unnoticed may have had the same number. */
	timer = find(fd);
	if (!timer)
		timer = find(-1);
	if (timer) {
		timer->clock = clock;
		timer->expires = 0;
		timer->interval = 0;
		__atomic_store_n(&timer->fd, fd, __ATOMIC_RELEASE);
	}
	release_lock(&mask);
	if (!timer) {
		next_close(fd);
		return next_timerfd_create(clock, flags);
	}
	if (!(flags & TFD_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	if (flags & TFD_NONBLOCK)
		fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	return fd;
}

static struct timespec spec_of(uint64_t ns)
{
	return (struct timespec) { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

static struct itimerspec setting_of(const struct timer *timer)
{
	uint64_t now = now_of(timer->clock), next = timer->expires;

	if (next && next <= now && timer->interval)
		next += ((now - next) / timer->interval + 1) * timer->interval;
	if (next <= now)
		return (struct itimerspec) { .it_interval = spec_of(timer->interval) };
	return (struct itimerspec) {
		.it_interval = spec_of(timer->interval),
		.it_value = spec_of(next - now),
	};
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct at own = { .fd = fd };
	struct itimerspec was;
	struct timer *timer;
	uint64_t expires;
	sigset_t mask;
	int ret;

	pthread_once(&once, start);
	take_lock(&mask);
	timer = find_open(fd);
	if (!timer) {
		release_lock(&mask);
		return next_timerfd_settime(fd, flags, new, old);
	}
	was = setting_of(timer);
	if (flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) || !is_time(&new->it_value) ||
	    !is_time(&new->it_interval)) {
		ret = -EINVAL;
		goto out;
	}
	expires = ns_of(&new->it_value);
	if (expires && !(flags & TFD_TIMER_ABSTIME)) {
		expires += now_of(timer->clock);
		if (expires > INT64_MAX)
			expires = INT64_MAX;
	}
	ret = at_arm(&own, clock_of(timer->clock), expires, ns_of(&new->it_interval));
	if (ret)
		goto out;
	timer->expires = expires;
	timer->interval = ns_of(&new->it_interval);
	if (old)
		*old = was;
out:
	release_lock(&mask);
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}

int timerfd_gettime(int fd, struct itimerspec *now)
{
	struct timer *timer;
	sigset_t mask;

	pthread_once(&once, start);
	take_lock(&mask);
	timer = find_open(fd);
	if (timer)
		*now = setting_of(timer);
	release_lock(&mask);
	return timer ? 0 : next_timerfd_gettime(fd, now);
}

int close(int fd)
{
	struct timer *timer;

	pthread_once(&once, start);
	/* Without a lock: a signal's handler or a child of fork() may call this. */
	timer = fd >= 0 ? find(fd) : NULL;
	/* A child of vfork() closes its own file, but shares our memory. */
	if ((timer || is_noted(fd)) && getpid() == process) {
		if (timer)
			__atomic_store_n(&timer->fd, -1, __ATOMIC_RELEASE);
		forget(fd);
	}
	return next_close(fd);
}
