// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz COUNT SEED - random commands and arguments for /dev/apic_timer.
 *
 * A small model knows what must not succeed: an unknown command, flag or clock, a size that is too
 * small, something after a structure, a bad pointer. It knows that a successful sleep must not be
 * early, and that each successful read() returns something. Anything else may fail, with one of
 * the documented errors.
 */
#include "errors.h"
#include "random.h"
#include "start.h"

#define FILES	4

static struct at files[FILES];
static union {
	struct apic_timer_device query;
	struct apic_timer_sleep sleep;
	struct apic_timer_arm arm;
	uint64_t any[16];
} a;

/* Mostly a near moment, now and then any. */
static uint64_t moment(void)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return any() & any() & any();	/* mostly in the past */
	default:
		return at_readtsc() + below(200000);
	}
}

static int allowed(long ret)
{
	switch (-ret) {
	case 0:
	case EAGAIN:
	case EBUSY:
	case EINVAL:
	case E2BIG:
	case ETIME:
	case ESTALE:
		return 1;
	}
	return 0;
}

static int bad(const char *what, uint64_t n, long ret)
{
	say(what);
	say(": operation ");
	say_number((long)n);
	say(", result ");
	say_number(ret);
	say("\n");
	return 1;
}

static int sleeps(struct at *at, uint64_t n)
{
	uint32_t size, flags, clock, budget;
	uint64_t expires, i;
	int must_fail;
	long ret;

	for (i = 0; i < 16; i++)
		a.any[i] = below(4) ? 0 : any();
	size = below(8) ? sizeof(a.sleep) : below(sizeof(a));
	flags = below(8) ? below(16) : (uint32_t)any();
	clock = below(8) ? 0 : below(5);
	budget = below(4) ? below(60000) : 0;
	expires = clock ? 1 : moment();
	/* The moment might be a minute ahead. */
	if (expires > at_readtsc() + 1000000)
		expires = at_readtsc();
	a.sleep.size = size;
	a.sleep.flags = flags;
	a.sleep.clock = clock;
	a.sleep.budget = budget;
	a.sleep.expires = expires;
	if (below(2))
		a.sleep.epoch = 0;
	must_fail = size < sizeof(a.sleep) || flags & ~15U || clock > 2;
	for (i = sizeof(a.sleep) / 8; i < size / 8; i++)
		must_fail |= a.any[i] != 0;
	ret = sys(AT_NR_IOCTL, at->fd, APIC_TIMER_SLEEP, &a, 0);
	if (!allowed(ret) || (must_fail && !ret))
		return bad("sleep", n, ret);
	if (!ret && !clock) {
		/* As far as the kernel waits. */
		if (a.sleep.tsc != expires)
			return bad("moment", n, 0);
		if ((flags & APIC_TIMER_SLEEP_KERNEL_FINISH) == 0) {
			if (expires > at_readtsc() + 60000)
				return bad("far too early", n, 0);
		}
	}
	return 0;
}

static int arms(struct at *at, uint64_t n)
{
	uint64_t i;
	long ret;

	for (i = 0; i < 16; i++)
		a.any[i] = below(4) ? 0 : any();
	a.arm.size = below(8) ? sizeof(a.arm) : below(sizeof(a));
	a.arm.flags = below(8) ? 0 : (uint32_t)any();
	a.arm.clock = below(4) ? 0 : below(5);
	a.arm.expires = moment();
	a.arm.interval = below(4) ? below(300000) : any();
	if (below(2))
		a.arm.epoch = 0;
	ret = sys(AT_NR_IOCTL, at->fd, APIC_TIMER_ARM, &a, 0);
	if (!allowed(ret) ||
	    (!ret && (a.arm.size < sizeof(a.arm) || a.arm.flags || a.arm.clock > 2)))
		return bad("arm", n, ret);
	return 0;
}

static int reads(struct at *at, uint64_t n)
{
	uint64_t expired = 0;
	size_t size = below(4) ? 8 : below(12);
	long ret = sys(NR_READ, at->fd, &expired, size, 0);

	if (ret == (long)sizeof(expired) && expired && size >= 8)
		return 0;
	if (ret == -EAGAIN || (ret == -EINVAL && size < 8) || ret == -ESTALE)
		return 0;
	return bad("read", n, ret);
}

static int others(struct at *at, uint64_t n)
{
	unsigned int command;
	long ret, size;

	switch (below(4)) {
	case 0:
		command = APIC_TIMER_ARM + 1 + (unsigned int)below(1000);
		ret = sys(AT_NR_IOCTL, at->fd, command, &a, 0);
		/* Some apply to every file: FIOCLEX and the like. They are below. */
		return ret == -ENOTTY ? 0 : bad("unknown command", n, ret);
	case 1:
		ret = sys(AT_NR_IOCTL, at->fd, APIC_TIMER_QUERY + below(3), any() | 1ULL << 62, 0);
		return ret == -EFAULT ? 0 : bad("bad pointer", n, ret);
	case 2:
		a.query.size = sizeof(a.query);
		a.query.cpu = below(2) ? APIC_TIMER_CPU_THIS : (uint32_t)any();
		ret = sys(AT_NR_IOCTL, at->fd, APIC_TIMER_QUERY, &a, 0);
		return allowed(ret) ? 0 : bad("query", n, ret);
	default:
		/* Page and ring may be read, and nothing else. */
		size = (long)(below(20) * 4096);
		ret = at_syscall(AT_NR_MMAP, 0, size, (long)below(8), 1, at->fd,
				 (long)(below(2) ? below(3) * 4096 : APIC_TIMER_RING_OFFSET));
		if (ret < 0 && ret > -4096)
			return 0;
		at_syscall(AT_NR_MUNMAP, ret, size, 0, 0, 0, 0);
		return 0;
	}
}

int run(int argc, char **argv)
{
	uint64_t count, n;
	struct at *at;
	int i, failed = 0;

	if (argc != 3)
		return 2;
	count = number(argv[1]);
	random_seed(number(argv[2]));
	for (i = 0; i < FILES; i++) {
		if (at_open(&files[i]))
			return 3;
		/* O_NONBLOCK, by FIONBIO */
		sys(AT_NR_IOCTL, files[i].fd, 0x5421, &(int) { 1 }, 0);
	}
	for (n = 0; n < count && !failed; n++) {
		at = &files[below(FILES)];
		switch (below(8)) {
		case 0:
			failed = others(at, n);
			break;
		case 1:
		case 2:
			failed = arms(at, n);
			break;
		case 3:
			failed = reads(at, n);
			break;
		case 4:
			/* Close, with armed timers. */
			if (below(16))
				break;
			at_close(at);
			if (at_open(at))
				return 3;
			sys(AT_NR_IOCTL, at->fd, 0x5421, &(int) { 1 }, 0);
			break;
		default:
			failed = sleeps(at, n);
			break;
		}
	}
	for (i = 0; i < FILES; i++)
		at_close(&files[i]);
	return failed;
}
