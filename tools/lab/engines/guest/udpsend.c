// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * udpsend NAME=VALUE... - send UDP packets that say when they are to leave.
 *
 *	count=N		N packets
 *	size=BYTES	of a frame, Ethernet's 14 bytes among them
 *	segment=BYTES	of payload: the frame is for the kernel or the device to split, UDP_SEGMENT
 *	gap=NS		between plans; gap=NS-NS: random, uniform
 *	how=plan	each packet has its time, by SO_TXTIME
 *	how=burst	no times: all is sent at once, and the qdisc has the rate
 *	how=pace	as burst, with SO_MAX_PACING_RATE of one packet a gap
 *	how=timed	no times: sent when it is time, to be late by what that costs
 *	clock=mono|real|tai	of SO_TXTIME
 *	ahead=NS	so long before its time a packet is sent at the latest
 *	batch=N		N are sent in a row, the first of them `ahead`
 *	late=drop	SOF_TXTIME_DEADLINE_MODE
 *	flow=N seed=N to=A.B.C.D port=N
 *	connect=1	the socket: IPv4 counts its packets then, instead of taking random numbers
 *	mark=N		SO_MARK; priority=N SO_PRIORITY
 *	burn=1		count what of the CPU is left while the packets leave
 *	wait=NS		for the last to leave, and for errors to come back
 *
 * It runs at SCHED_FIFO, so that the load does not decide when it sends. It
 * prints how many packets it sent, were refused, and came back by the error
 * queue, and of how many the report has a time that none of them had. No libc:
 * it is compiled where no libc headers are.
 */

#define SYS_read		0
#define SYS_write		1
#define SYS_setsockopt		54
#define SYS_socket		41
#define SYS_connect		42
#define SYS_sendmsg		46
#define SYS_recvmsg		47
#define SYS_exit		60
#define SYS_sched_setscheduler	144
#define SYS_clock_gettime	228
#define SYS_clock_nanosleep	230

#define AF_INET			2
#define SOCK_DGRAM		2
#define SOL_SOCKET		1
#define SOL_UDP			17
#define SO_PRIORITY		12
#define SO_SNDBUFFORCE		32
#define SO_MARK			36
#define SO_MAX_PACING_RATE	47
#define SO_TXTIME		61
#define UDP_SEGMENT		103
#define SOF_TXTIME_DEADLINE_MODE	1
#define SOF_TXTIME_REPORT_ERRORS	2
#define MSG_DONTWAIT		0x40
#define MSG_ERRQUEUE		0x2000
#define SO_EE_ORIGIN_TXTIME	6
#define SO_EE_CODE_TXTIME_INVALID	1
#define SO_EE_CODE_TXTIME_MISSED	2
#define CLOCK_REALTIME		0
#define CLOCK_MONOTONIC		1
#define CLOCK_TAI		11
#define TIMER_ABSTIME		1
#define SCHED_OTHER		0
#define SCHED_FIFO		1
#define HEADERS			42	/* Ethernet, IPv4, UDP */
#define MAX_SIZE		65000

typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned short u16;

struct timespec {
	long sec, nsec;
};

struct sockaddr_in {
	u16 family, port;
	u32 address;
	char zero[8];
};

struct iovec {
	void *base;
	u64 length;
};

struct msghdr {
	void *name;
	u32 name_length;
	struct iovec *iov;
	u64 iov_count;
	void *control;
	u64 control_length;
	u32 flags;
};

struct cmsghdr {
	u64 length;
	u32 level, type;
	char data[0];
};

struct sock_extended_err {
	u32 number;
	unsigned char origin, type, code, pad;
	u32 info, data;
};

/* What tests/modules/net/sink.h calls struct sink_payload. */
struct payload {
	u64 magic, planned;
	u32 clock, flow;
	u64 seq;
} __attribute__((packed));

enum { PLAN, BURST, PACE, TIMED };

static struct {
	u64 count, size, segment, gap_min, gap_max, ahead, batch, flow, seed, port, mark, priority,
	    burn, wait, connect;
	u32 to, clock, txtime_flags;
	u32 how;
} ask = {
	.count = 1, .size = 100, .gap_min = 100000, .gap_max = 100000, .ahead = 1000000,
	.batch = 1, .port = 9, .to = 0x0209090a, .clock = CLOCK_MONOTONIC, .wait = 20000000,
};

static char buffer[MAX_SIZE];
static u64 failed, invalid, missed, wrong, earliest, latest;

static long sys(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

void *memset(void *at, int value, u64 size)
{
	char *p = at;

	while (size--)
		*p++ = (char)value;
	return at;
}

void *memcpy(void *to, const void *from, u64 size)
{
	const char *f = from;
	char *t = to;

	while (size--)
		*t++ = *f++;
	return to;
}

static u64 length(const char *text)
{
	u64 n = 0;

	while (text[n])
		n++;
	return n;
}

static void print(const char *text)
{
	sys(SYS_write, 1, (long)text, (long)length(text), 0, 0);
}

static void print_number(const char *name, u64 number)
{
	char text[24], *p = text + sizeof(text) - 1;

	*p = 0;
	do {
		*--p = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	print(" ");
	print(name);
	print(" ");
	print(p);
}

static void die(const char *what)
{
	print("udpsend: ");
	print(what);
	print("\n");
	sys(SYS_exit, 1, 0, 0, 0, 0);
	__builtin_unreachable();
}

static int equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The value of NAME=VALUE, if that is the name. */
static const char *value(const char *text, const char *name)
{
	while (*name && *text == *name)
		text++, name++;
	return !*name && *text == '=' ? text + 1 : 0;
}

static u64 number(const char **text)
{
	u64 n = 0;

	if (**text < '0' || **text > '9')
		die("digits are missing");
	while (**text >= '0' && **text <= '9')
		n = n * 10 + (u64)(*(*text)++ - '0');
	return n;
}

static const struct {
	const char *name;
	u64 *number;
} numbers[] = {
	{ "count", &ask.count }, { "size", &ask.size }, { "ahead", &ask.ahead },
	{ "batch", &ask.batch }, { "flow", &ask.flow }, { "seed", &ask.seed },
	{ "port", &ask.port }, { "mark", &ask.mark }, { "priority", &ask.priority },
	{ "burn", &ask.burn }, { "wait", &ask.wait }, { "segment", &ask.segment },
	{ "connect", &ask.connect },
};

static u32 address(const char *text)
{
	u32 found = 0, shift;

	for (shift = 0; shift < 32; shift += 8) {
		found |= (u32)number(&text) << shift;
		if (*text == '.')
			text++;
	}
	return found;
}

static const struct {
	const char *name;
	u32 number;
} words[] = {
	{ "how=plan", PLAN }, { "how=burst", BURST }, { "how=pace", PACE }, { "how=timed", TIMED },
	{ "clock=mono", CLOCK_MONOTONIC }, { "clock=real", CLOCK_REALTIME },
	{ "clock=tai", CLOCK_TAI }, { "late=drop", SOF_TXTIME_DEADLINE_MODE },
};

/* An option whose value is no plain number. */
static void option_word(const char *text)
{
	const char *gap = value(text, "gap"), *to = value(text, "to");
	u32 i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!equal(text, words[i].name))
			continue;
		if (value(text, "how"))
			ask.how = words[i].number;
		else if (value(text, "clock"))
			ask.clock = words[i].number;
		else
			ask.txtime_flags |= words[i].number;
		return;
	}
	if (to) {
		ask.to = address(to);
	} else if (gap) {
		ask.gap_min = number(&gap);
		ask.gap_max = ask.gap_min;
		if (*gap++ == '-')
			ask.gap_max = number(&gap);
	} else {
		die(text);
	}
}

static void option(const char *text)
{
	const char *v;
	u32 i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		v = value(text, numbers[i].name);
		if (v) {
			*numbers[i].number = number(&v);
			return;
		}
	}
	option_word(text);
}

static u64 now(u32 clock)
{
	struct timespec time;

	sys(SYS_clock_gettime, clock, (long)&time, 0, 0, 0);
	return (u64)time.sec * 1000000000 + (u64)time.nsec;
}

static void sleep_until(u64 moment)
{
	struct timespec time = { (long)(moment / 1000000000), (long)(moment % 1000000000) };

	while (sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&time, 0, 0))
		;
}

static u64 random_gap(void)
{
	static u64 state;

	if (ask.gap_max <= ask.gap_min)
		return ask.gap_min;
	if (!state)
		state = 88172645463325252 ^ (ask.seed * 0x9e3779b97f4a7c15);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ask.gap_min + state % (ask.gap_max - ask.gap_min + 1);
}

static void set(int s, int level, int name, const void *data, u64 size, const char *what)
{
	if (sys(SYS_setsockopt, s, level, name, (long)data, (long)size))
		die(what);
}

static int open_socket(void)
{
	int s = (int)sys(SYS_socket, AF_INET, SOCK_DGRAM, 0, 0, 0);
	u32 big = 256 << 20, mark = (u32)ask.mark, priority = (u32)ask.priority,
	    segment = (u32)ask.segment;
	struct { u32 clock, flags; } txtime = {
		ask.clock, ask.txtime_flags | SOF_TXTIME_REPORT_ERRORS
	};
	u64 rate = ask.size * 1000000000 / (ask.gap_min ? ask.gap_min : 1);

	if (s < 0)
		die("cannot create a socket");
	set(s, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big), "SO_SNDBUFFORCE");
	if (ask.mark)
		set(s, SOL_SOCKET, SO_MARK, &mark, sizeof(mark), "SO_MARK");
	if (ask.priority)
		set(s, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority), "SO_PRIORITY");
	if (ask.segment)
		set(s, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment), "UDP_SEGMENT");
	if (ask.how == PLAN)
		set(s, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime), "SO_TXTIME");
	if (ask.how == PACE)
		set(s, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate), "SO_MAX_PACING_RATE");
	return s;
}

static struct sockaddr_in destination(void)
{
	return (struct sockaddr_in) {
		AF_INET, (u16)(ask.port << 8 | ask.port >> 8), ask.to, ""
	};
}

static void connect_to(int s)
{
	struct sockaddr_in to = destination();

	if (sys(SYS_connect, s, (long)&to, sizeof(to), 0, 0))
		die("cannot connect");
}

static void schedule(int policy, int priority)
{
	/* Where it may not, it is no worse than its load. */
	sys(SYS_sched_setscheduler, 0, policy, (long)&priority, 0, 0);
}

/* Send all; return the time of the last, by CLOCK_MONOTONIC. */
static u64 send(int s)
{
	struct sockaddr_in to = destination();
	struct payload *payload = (void *)buffer;
	struct { struct cmsghdr head; u64 time; } control = {
		{ sizeof(control), SOL_SOCKET, SO_TXTIME }, 0
	};
	struct iovec io = { buffer, ask.size - HEADERS };
	struct msghdr message = { &to, sizeof(to), &io, 1, 0, 0, 0 };
	u64 offset = now(ask.clock) - now(CLOCK_MONOTONIC);
	u64 time = now(CLOCK_MONOTONIC) + ask.ahead, sent = 0, in_batch;

	if (ask.how == PLAN) {
		message.control = &control;
		message.control_length = sizeof(control);
	}
	payload->magic = __builtin_bswap64(0x4150494354494d45);
	payload->clock = ask.clock;
	payload->flow = (u32)ask.flow;
	while (sent < ask.count) {
		if (ask.how == PLAN) {
			if (time > now(CLOCK_MONOTONIC) + ask.ahead)
				sleep_until(time - ask.ahead);
			if (time < now(CLOCK_MONOTONIC) + ask.ahead)
				time = now(CLOCK_MONOTONIC) + ask.ahead;
		}
		for (in_batch = 0; in_batch < ask.batch && sent < ask.count; in_batch++) {
			time += random_gap();
			if (ask.how == TIMED)
				sleep_until(time);
			payload->planned = ask.how == PLAN ? time + offset : 0;
			payload->seq = sent++;
			control.time = payload->planned;
			latest = control.time;
			if (!earliest)
				earliest = latest;
			if (sys(SYS_sendmsg, s, (long)&message, 0, 0, 0) < 0)
				failed++;
		}
	}
	return time;
}

/* Cycles that are left of the CPU until a moment, in units of a loop. */
static u64 loops_until(u64 tsc)
{
	u64 n = 0;

	while (__builtin_ia32_rdtsc() < tsc)
		n++;
	return n;
}

/* The loop without packets, then with all of them: what they took, cycles a packet. */
static void burn(u64 last)
{
	u64 begin, window, free_loops, free_cycles = 20000000, loops, left;

	schedule(SCHED_OTHER, 0);
	begin = __builtin_ia32_rdtsc();
	free_loops = loops_until(begin + free_cycles);
	begin = __builtin_ia32_rdtsc();
	/* In virtual time a nanosecond is a cycle. */
	window = last - now(CLOCK_MONOTONIC) + 1000000;
	loops = loops_until(begin + window);
	left = loops * free_cycles / free_loops;
	print_number("cycles", window > left ? (window - left) / ask.count : 0);
}

static void read_errors(int s)
{
	static char data[2048], control[512];

	for (;;) {
		struct iovec io = { data, sizeof(data) };
		struct msghdr message = { 0, 0, &io, 1, control, sizeof(control), 0 };
		struct cmsghdr *head = (void *)control;
		struct sock_extended_err *error = (void *)head->data;
		u64 time;

		if (sys(SYS_recvmsg, s, (long)&message, MSG_ERRQUEUE | MSG_DONTWAIT, 0, 0) < 0)
			return;
		if (message.control_length < sizeof(*head) + sizeof(*error) ||
		    error->origin != SO_EE_ORIGIN_TXTIME)
			continue;
		invalid += error->code == SO_EE_CODE_TXTIME_INVALID;
		missed += error->code == SO_EE_CODE_TXTIME_MISSED;
		time = (u64)error->data << 32 | error->info;
		wrong += time < earliest || time > latest;
	}
}

static int run(int count, char **words)
{
	u64 last;
	int s, i;

	for (i = 1; i < count; i++)
		option(words[i]);
	if (ask.size < HEADERS + sizeof(struct payload) || ask.size > MAX_SIZE || !ask.batch)
		die("size or batch is out of range");
	s = open_socket();
	if (ask.connect)
		connect_to(s);
	schedule(SCHED_FIFO, 10);
	last = send(s);
	print("udpsend");
	print_number("sent", ask.count - failed);
	print_number("failed", failed);
	if (ask.burn)
		burn(last);
	sleep_until((last > now(CLOCK_MONOTONIC) ? last : now(CLOCK_MONOTONIC)) + ask.wait);
	read_errors(s);
	print_number("invalid", invalid);
	print_number("missed", missed);
	print_number("wrong", wrong);
	print("\n");
	return failed != 0;
}

__attribute__((used)) static void start(long *stack)
{
	sys(SYS_exit, run((int)stack[0], (char **)(stack + 1)), 0, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
