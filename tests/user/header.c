// SPDX-License-Identifier: GPL-2.0
/*
 * header CASE - use apic_timer_user.h while the TSC restarts, or in a child of fork(), perhaps with
 * its parent's process ID: "ok", or the fault. With libc.
 *
 * The kernel lets each RDTSC of this process fault, and the handler returns what the case wants.
 * The kernel itself reads the real TSC.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "apic_timer_user.h"

#define ESTALE		116
/* Longer than a case may take, in cycles of any TSC; until then a wait would not end. */
#define UPTIME		(UINT64_C(1) << 60)
#define AHEAD		3000000

static struct at at;
static uint64_t vdso;
/* What is added to the real TSC: until the real TSC is @turn, and from then on. */
static uint64_t before, after, turn;
static int reads;		/* that @after is for; then @before again */
static int new_epoch;		/* by how much the thread's epoch differs at the turn */

static uint64_t real_tsc(void)
{
	uint64_t tsc;

	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	tsc = at_readtsc();
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	return tsc;
}

static void fault(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	greg_t *regs = context->uc_mcontext.gregs;
	const unsigned char *code = (const unsigned char *)regs[REG_RIP];
	int rdtscp = !memcmp(code, "\x0f\x01\xf9", 3);
	uint64_t tsc;

	(void)info;
	if (!rdtscp && memcmp(code, "\x0f\x31", 2)) {
		signal(number, SIG_DFL);
		return;
	}
	tsc = real_tsc();
	if ((uint64_t)code - vdso < 1 << 14) {
		/* The kernel's clock goes on. */
	} else if (tsc < turn || !reads) {
		tsc += before;
	} else {
		reads--;
		tsc += after;
		at.epoch += new_epoch;
		new_epoch = 0;
	}
	regs[REG_RAX] = tsc & 0xffffffff;
	regs[REG_RDX] = tsc >> 32;
	if (rdtscp)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += rdtscp ? 3 : 2;
}

static void begin(void)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };

	vdso = getauxval(AT_SYSINFO_EHDR);
	sigaction(SIGSEGV, &action, NULL);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

/* Have the TSC restart when it has counted @cycles more, for the next @count reads. */
static uint64_t restart_in(uint64_t cycles, uint64_t back, int count)
{
	uint64_t now = real_tsc();

	before = back;
	after = 0;
	turn = now + cycles;
	reads = count;
	return now + before;
}

static int wrong(const char *what, long long result)
{
	printf("%s: %lld\n", what, result);
	return 1;
}

#define FOREVER		1000000000

/* A long wait ends when the TSC restarts. */
static int until(void)
{
	uint64_t now, when;
	int has = at_has_tpause();

	for (at.tpause = 0; at.tpause <= has; at.tpause++) {
		when = restart_in(AHEAD / 2, UPTIME, FOREVER) + AHEAD;
		now = at_until(&at, when);
		if (now >= when)
			return wrong("no restart", at.tpause);
		/* If there is none, the wait is complete. */
		when = restart_in(2 * AHEAD, UPTIME, FOREVER) + AHEAD;
		now = at_until(&at, when);
		if (now < when)
			return wrong("early", (long long)(when - now));
	}
	return 0;
}

/* So does the loop that has no room for a check. */
static int spin(void)
{
	at_spin(restart_in(AHEAD / 2, UPTIME, FOREVER) + AHEAD);
	at_spin_cost(restart_in(AHEAD / 2, UPTIME, FOREVER) + AHEAD);
	return 0;
}

/* A CPU whose TSC is a little behind is no restart. */
static int skew(void)
{
	uint64_t when = restart_in(AHEAD / 2, 5000, FOREVER) + AHEAD, now = at_until(&at, when);

	return now < when ? wrong("early", (long long)(when - now)) : 0;
}

/* A TSC value of another epoch is void. */
static int stale(void)
{
	int ret;

	turn = 0;
	reads = FOREVER;
	/* The machine sleeps when the thread is about to return from its call. */
	after = -real_tsc();
	new_epoch = 1;
	ret = at_mdelay(&at, real_tsc() + 50 * AHEAD);
	return ret == -ESTALE ? 0 : wrong("stale", ret);
}

/* In the same epoch, another CPU is far behind: the wait goes on. */
static int same_epoch(void)
{
	uint64_t when = real_tsc() + 50 * AHEAD, now;
	struct timespec time;
	long long ns;
	int ret;

	turn = 0;
	before = 0;
	after = -(when / 2);
	reads = 2;
	ret = at_mdelay(&at, when);
	now = real_tsc();
	if (ret || now < when)
		return wrong("early", ret);
	clock_gettime(CLOCK_MONOTONIC, &time);
	ns = time.tv_sec * 1000000000LL + time.tv_nsec + 50000000;
	reads = 2;
	ret = at_sleep_until(&at, APIC_TIMER_CLOCK_MONOTONIC, ns);
	clock_gettime(CLOCK_MONOTONIC, &time);
	ns -= time.tv_sec * 1000000000LL + time.tv_nsec;
	return ret || ns > 1000 ? wrong("clock", ret) : 0;
}

/* A child closes what it has inherited, and only that. */
static int forked(void)
{
	int status, fd = at.fd;
	char *other;

	if (!fork()) {
		other = mmap((void *)at.page, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (other != (char *)at.page)
			_exit(wrong("the address is in use", 0));
		*other = 1;
		if (at_mdelay(&at, real_tsc() + AHEAD))
			_exit(wrong("sleep", 0));
		at_close(&at);
		*other = 2;
		_exit(write(fd, other, 1) >= 0);
	}
	wait(&status);
	if (status)
		return wrong("child", status);
	if (!at.page->epoch)
		return wrong("page", 0);
	at_close(&at);
	return 0;
}

/* The first process of a container starts another one: both have process ID 1. */
static int contained(void)
{
	int status;

	if (unshare(CLONE_NEWPID))
		return wrong("unshare", 0);
	if (!fork()) {
		if (at_open(&at))
			_exit(wrong("open", 0));
		at.cost = 0;
		if (unshare(CLONE_NEWPID))
			_exit(wrong("unshare again", 0));
		status = forked();
		fflush(stdout);
		_exit(status);
	}
	wait(&status);
	return status;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "until", until },
	{ "spin", spin },
	{ "skew", skew },
	{ "stale", stale },
	{ "same-epoch", same_epoch },
	{ "forked", forked },
	{ "contained", contained },
};

int main(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		if (at_open(&at))
			return wrong("open", 0);
		at.cost = 0;
		alarm(1);
		begin();
		if (cases[i].run())
			return 1;
		puts("ok");
		return 0;
	}
	return wrong("case", argc);
}
