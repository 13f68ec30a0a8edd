// SPDX-License-Identifier: GPL-2.0
/*
 * q_apic.so: the plug-in of iproute2's tc for the queueing discipline "apic":
 *
 *	tc qdisc add dev eth0 root apic rate 50mbit
 *
 * One file serves iproute2 6.1 to 7.3. Each option takes one value. An option that a
 * command omits keeps its value, or gets its default in a new qdisc or class. The output
 * of "tc qdisc show" can be typed again, except the parts in parentheses.
 */
#include "iproute2.h"
#include <linux/sch_apic.h>

#define MESSAGE_ROOM	65536	/* size of tc's buffer */
#define NS_PER_SEC	1000000000ULL
#define RATE_MAX	(1ULL << 40)
#define BURST_MAX	(1ULL << 27)

/* Type of an option's value, as text and as sent to the kernel. */
enum kind {
	RATE,		/* u64, bit/s */
	SIZE,		/* u32, bytes */
	TIME,		/* u64, ns */
	COUNT,		/* u32 */
	SIGNED,		/* s32, bytes */
	CPU,		/* u32; "any": TC_APIC_CPU_ANY */
	CHOICE,		/* u32: the number of a name */
	FLAG,		/* u8: 0 or 1, by name */
};

struct choice {
	const char *name;
	uint32_t number;
};

/* CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_TAI */
static const struct choice clocks[] = { { "mono", 1 }, { "tai", 11 }, { "realtime", 0 }, {} };

static const struct choice modes[] = {
	{ "auto", TC_APIC_MODE_AUTO }, { "hard", TC_APIC_MODE_HARD },
	{ "soft", TC_APIC_MODE_SOFT }, { "thread", TC_APIC_MODE_THREAD }, {}
};

static const struct choice late_policies[] = {
	{ "send", TC_APIC_LATE_SEND }, { "drop", TC_APIC_LATE_DROP }, {}
};

static const struct choice beyond_policies[] = { { "drop", 0 }, { "cap", 1 }, {} };
static const struct choice orders[] = { { "time", 0 }, { "flow", 1 }, {} };
static const struct choice switches[] = { { "off", 0 }, { "on", 1 }, {} };

struct option {
	const char *name;
	enum kind kind;
	uint16_t attr;
	const struct choice *choices;
	uint64_t min, max;
	const char *by_default;
	const char *what;
};

/* tools/docs/shaper.py makes docs/reference/tc-apic.md from these tables. */
static const struct option options[] = {
	{ "rate", RATE, TCA_APIC_RATE64, NULL, 0, RATE_MAX, "0",
	  "bits per second of all packets together; 0: no limit" },
	{ "burst", SIZE, TCA_APIC_BURST, NULL, 0, BURST_MAX, "0",
	  "bytes that may leave at once after a pause" },
	{ "overhead", SIGNED, TCA_APIC_OVERHEAD, NULL, 64, 255, "0",
	  "bytes to add to each packet's length before the rate is applied; 24 for "
	  "Ethernet's overhead on the wire" },
	{ "mode", CHOICE, TCA_APIC_MODE, modes, 0, 0, "auto",
	  "context in which packets are handed to the driver: the timer's interrupt, softirq, "
	  "or a thread; auto: the one that suits the driver" },
	{ "cpu", CPU, TCA_APIC_CPU, NULL, 0, UINT32_MAX - 1, "any",
	  "CPU whose timer sends; while it is offline, another one does; any: the CPU that "
	  "queues the first packet" },
	{ "clock", CHOICE, TCA_APIC_CLOCK, clocks, 0, 0, "mono",
	  "clock of departure times that do not specify theirs, such as BPF's" },
	{ "late", CHOICE, TCA_APIC_LATE, late_policies, 0, 0, "send",
	  "fate of a packet with SO_TXTIME that is late: sent at once, or dropped and reported "
	  "to its socket" },
	{ "late_after", TIME, TCA_APIC_LATE_NS, NULL, 0, 10 * NS_PER_SEC, "1us",
	  "time after which a packet is late, from its departure time or its deadline" },
	{ "horizon", TIME, TCA_APIC_HORIZON, NULL, 1000, 1000 * NS_PER_SEC, "10s",
	  "maximum time that a departure time may be ahead, and for which pacing may keep a "
	  "packet" },
	{ "beyond", FLAG, TCA_APIC_HORIZON_CAP, beyond_policies, 0, 0, "drop",
	  "fate of a packet beyond the horizon: dropped (reported if it uses SO_TXTIME), or sent "
	  "at the horizon" },
	{ "limit", COUNT, TCA_APIC_LIMIT, NULL, 1, UINT32_MAX, "10000",
	  "maximum number of queued packets" },
	{ "flow_limit", COUNT, TCA_APIC_FLOW_LIMIT, NULL, 0, UINT32_MAX, "0",
	  "maximum number of queued packets of a flow, which is a socket; 0: no such limit" },
	{ "order", FLAG, TCA_APIC_FLOW_ORDER, orders, 0, 0, "time",
	  "order in which packets of a flow leave: by departure time alone, or never before "
	  "those that were queued earlier" },
	{ "pacing", FLAG, TCA_APIC_PACING, switches, 0, 0, "on",
	  "whether packets without a departure time are sent at the rate of their socket, "
	  "SO_MAX_PACING_RATE, but at least one per second" },
	{ "ce_threshold", TIME, TCA_APIC_CE_THRESHOLD, NULL, 0, 1000 * NS_PER_SEC, "0",
	  "waiting time above which packets are marked with ECN's \"congestion experienced\"; "
	  "0: never" },
	{ "split_gso", FLAG, TCA_APIC_SPLIT_GSO, switches, 0, 0, "on",
	  "whether GSO packets are split, so that each of their segments has a departure time" },
	{ "offload", FLAG, TCA_APIC_OFFLOAD, switches, 0, 0, "off",
	  "whether the device keeps departure times (LaunchTime), and gets packets ahead of them; "
	  "its clock must be CLOCK_TAI, and all qdiscs of the transmit queue need this option" },
	{ "ahead", TIME, TCA_APIC_AHEAD, NULL, 1000, NS_PER_SEC / 10, "100us",
	  "time before its departure at which a packet is handed over with offload" },
	{ "doorbell", TIME, TCA_APIC_DOORBELL, NULL, 0, NS_PER_SEC / 10000, "0",
	  "time from the driver's first instruction until it starts the card; packets are handed "
	  "over earlier by this time; not with offload" },
	{}
};

static const struct option class_options[] = {
	{ "rate", RATE, TCA_APIC_RATE64, NULL, 1, RATE_MAX, "none",
	  "bits per second of the packets of the class; required" },
	{ "burst", SIZE, TCA_APIC_BURST, NULL, 0, BURST_MAX, "0",
	  "bytes of the class that may leave at once after a pause" },
	{ "overhead", SIGNED, TCA_APIC_OVERHEAD, NULL, 64, 255, "0",
	  "bytes to add to each packet's length before the rate of the class is applied" },
	{ "limit", COUNT, TCA_APIC_LIMIT, NULL, 1, UINT32_MAX, "1000",
	  "maximum number of queued packets of the class" },
	{}
};

#define OPTIONS_MAX	32	/* options in a table */

/* The next statistics belong to a class; tc prints them after the class's options. */
static bool of_class;

/* Name of a unit, and its value in the kind's base unit: bit/s for RATE, and so on. */
struct unit {
	const char *name;
	uint64_t value;
};

static const struct unit rate_units[] = {
	{ "", 1 }, { "bit", 1 }, { "kbit", 1000 }, { "mbit", 1000000 }, { "gbit", 1000000000 },
	{ "tbit", 1000000000000 }, { "kibit", 1024 }, { "mibit", 1 << 20 }, { "gibit", 1 << 30 },
	{ "tibit", 1ULL << 40 }, { "bps", 8 }, { "kbps", 8000 }, { "mbps", 8000000 },
	{ "gbps", 8000000000 }, { "tbps", 8000000000000 }, {}
};

static const struct unit size_units[] = {
	{ "", 1 }, { "b", 1 }, { "k", 1024 }, { "kb", 1024 }, { "m", 1 << 20 }, { "mb", 1 << 20 },
	{ "g", 1 << 30 }, { "gb", 1 << 30 }, {}
};

static const struct unit time_units[] = {
	{ "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", NS_PER_SEC }, {}
};

static const struct unit plain_units[] = { { "", 1 }, {} };

/* Units to print, which tc itself uses; the largest first. */
static const struct unit rate_printed[] = {
	{ "Tbit", 1000000000000 }, { "Gbit", 1000000000 }, { "Mbit", 1000000 }, { "Kbit", 1000 },
	{ "bit", 1 }, {}
};

static const struct unit time_printed[] = {
	{ "s", NS_PER_SEC }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, {}
};

static const struct {
	const struct unit *units;
	const char *example;
} kinds[] = {
	[RATE] = { rate_units, "a rate such as 50mbit" },
	[SIZE] = { size_units, "a size such as 1500 or 15k" },
	[TIME] = { time_units, "a time such as 100us" },
	[COUNT] = { plain_units, "a number" },
	[SIGNED] = { plain_units, "a number of bytes such as -14" },
	[CPU] = { plain_units, "the number of a CPU, or any" },
};

/*
 * Parse a decimal number with a unit, such as "1.5gbit", exactly. Return false if
 * the text is no such number, too large, or not a whole number of base units.
 */
static bool parse_number(const char *text, const struct unit *units, uint64_t *value)
{
	unsigned __int128 number = 0;
	uint64_t divisor = 1;
	bool digits = false, fraction = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction); text++) {
		if (*text == '.') {
			fraction = true;
			continue;
		}
		digits = true;
		number = number * 10 + (unsigned int)(*text - '0');
		if (fraction)
			divisor *= 10;
		if (number > UINT64_MAX || divisor > 1000000000000000000)
			return false;
	}
	if (!digits)
		return false;
	for (; units->name; units++) {
		if (strcasecmp(text, units->name))
			continue;
		number *= units->value;
		*value = (uint64_t)(number / divisor);
		return number % divisor == 0 && number / divisor <= UINT64_MAX;
	}
	return false;
}

/* Print a number in the largest unit that needs no fraction. */
static const char *format_number(char *text, size_t size, uint64_t number,
				 const struct unit *units)
{
	while (number % units->value || (!number && units->value > 1))
		units++;
	snprintf(text, size, "%llu%s", (unsigned long long)(number / units->value), units->name);
	return text;
}

static const char *format(char *text, size_t size, const struct option *option, uint64_t number)
{
	if (option->kind == RATE)
		return format_number(text, size, number, rate_printed);
	if (option->kind == TIME)
		return format_number(text, size, number, time_printed);
	snprintf(text, size, "%llu%s", (unsigned long long)number,
		 option->kind == SIZE ? "b" : "");
	return text;
}

static void usage_values(char *text, size_t size, const struct option *option)
{
	static const char *const names[] = {
		[RATE] = "RATE", [SIZE] = "BYTES", [TIME] = "TIME", [COUNT] = "PACKETS",
		[SIGNED] = "BYTES", [CPU] = "CPU|any",
	};
	const struct choice *choice = option->choices;
	size_t used = 0;

	if (!choice) {
		snprintf(text, size, "%s", names[option->kind]);
		return;
	}
	for (; choice->name; choice++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "|" : "",
					 choice->name);
}

static void usage(const struct option *option)
{
	char values[80];

	fprintf(stderr, "Usage: ... apic [OPTION VALUE]...\n\n");
	for (; option->name; option++) {
		usage_values(values, sizeof(values), option);
		fprintf(stderr, "  %-12s %s\n               %s (default: %s)\n", option->name,
			values, option->what, option->by_default);
	}
	fprintf(stderr, "\nRATE: 50mbit, 1.5gbit, 6mbps (bytes), 1000 (bit/s). TIME: 100us, 10ms,\n"
		"1500 (ns). BYTES: 1500, 15k. More: man 8 tc-apic\n");
}

static int bad(const struct option *option, const char *text)
{
	char values[80];

	if (option->choices) {
		usage_values(values, sizeof(values), option);
		fprintf(stderr, "apic: %s: \"%s\" is not one of %s\n", option->name, text, values);
	} else {
		fprintf(stderr, "apic: %s: \"%s\" is not %s\n", option->name, text,
			kinds[option->kind].example);
	}
	return -1;
}

static int out_of_range(const struct option *option, const char *text)
{
	char least[32], most[32];

	if (option->kind == SIGNED)
		snprintf(least, sizeof(least), "-%llu", (unsigned long long)option->min);
	else
		format(least, sizeof(least), option, option->min);
	format(most, sizeof(most), option, option->max);
	fprintf(stderr, "apic: %s: %s is out of range: %s to %s\n", option->name, text, least,
		most);
	return -1;
}

/* Parse the value of an option. If it is invalid, print the reason and return -1. */
static int parse_value(const struct option *option, const char *text, uint64_t *value)
{
	const struct choice *choice = option->choices;
	bool negative = option->kind == SIGNED && *text == '-';

	for (; choice && choice->name; choice++) {
		if (!strcmp(text, choice->name)) {
			*value = choice->number;
			return 0;
		}
	}
	if (option->choices)
		return bad(option, text);
	if (option->kind == CPU && !strcmp(text, "any")) {
		*value = TC_APIC_CPU_ANY;
		return 0;
	}
	if (!parse_number(text + negative, kinds[option->kind].units, value))
		return bad(option, text);
	if (option->kind == SIGNED) {
		if (*value > (negative ? option->min : option->max))
			return out_of_range(option, text);
		if (negative)
			*value = -*value;
		return 0;
	}
	if (*value < option->min || *value > option->max)
		return out_of_range(option, text);
	return 0;
}

static int size_of(enum kind kind)
{
	return kind == RATE || kind == TIME ? 8 : kind == FLAG ? 1 : 4;
}

static const struct option *find(const struct option *table, const char *name)
{
	for (; table->name; table++)
		if (!strcmp(name, table->name))
			return table;
	return NULL;
}

static int parse(const struct option *table, const char *help, int argc, char **argv,
		 struct nlmsghdr *n)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_ROOM, TCA_OPTIONS | NLA_F_NESTED);
	bool given[OPTIONS_MAX] = {};

	for (; argc > 0; argc -= 2, argv += 2) {
		const struct option *option = find(table, argv[0]);
		uint64_t value;

		if (!option) {
			if (!strcmp(argv[0], "help"))
				usage(table);
			else
				fprintf(stderr,
					"apic: unknown option \"%s\"; see \"%s help\"\n",
					argv[0], help);
			return -1;
		}
		if (argc < 2) {
			fprintf(stderr, "apic: %s needs a value\n", option->name);
			return -1;
		}
		if (given[option - table]) {
			fprintf(stderr, "apic: %s is given twice\n", option->name);
			return -1;
		}
		given[option - table] = true;
		if (parse_value(option, argv[1], &value))
			return -1;
		/* x86 is little endian: a smaller type's bytes come first. */
		addattr_l(n, MESSAGE_ROOM, option->attr, &value, size_of(option->kind));
	}
	addattr_nest_end(n, nest);
	return 0;
}

static int parse_qopt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		      const char *dev)
{
	(void)qu;
	(void)dev;
	return parse(options, "tc qdisc add dev X root apic", argc, argv, n);
}

static int parse_copt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		      const char *dev)
{
	(void)qu;
	(void)dev;
	return parse(class_options, "tc class add dev X parent 1: classid 1:10 apic", argc, argv,
		     n);
}

static const char *name_of(const struct choice *choice, uint64_t number)
{
	while (choice->name && choice->number != number)
		choice++;
	return choice->name ?: "?";
}

static void print_option(const struct option *option, uint64_t value)
{
	char text[32], words[64];

	if (option->choices) {
		snprintf(words, sizeof(words), "%s %%s ", option->name);
		print_color_string(PRINT_ANY, COLOR_NONE, option->name, words,
				   name_of(option->choices, value));
		return;
	}
	if (option->kind == SIGNED) {
		snprintf(words, sizeof(words), "%s %%d ", option->name);
		print_color_int(PRINT_ANY, COLOR_NONE, option->name, words, (int32_t)value);
		return;
	}
	if (option->kind == CPU && value == TC_APIC_CPU_ANY) {
		print_color_string(PRINT_ANY, COLOR_NONE, option->name, "cpu %s ", "any");
		return;
	}
	print_color_u64(PRINT_JSON, COLOR_NONE, option->name, NULL, value);
	snprintf(words, sizeof(words), "%s %%s ", option->name);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, words,
			   format(text, sizeof(text), option, value));
}

static void print_options(const struct option *option, struct rtattr *tb[])
{
	for (; option->name; option++) {
		struct rtattr *attr = tb[option->attr];
		size_t size = (size_t)size_of(option->kind);
		uint64_t value = 0;

		if (!attr || rta_payload(attr) < size)
			continue;
		memcpy(&value, rta_data(attr), size);
		print_option(option, value);
	}
}

static int print_copt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_APIC_MAX + 1];

	(void)qu;
	(void)f;
	of_class = true;
	if (!opt)
		return 0;
	parse_rtattr_flags(tb, TCA_APIC_MAX, rta_data(opt), (int)rta_payload(opt), NLA_F_NESTED);
	print_options(class_options, tb);
	return 0;
}

static int print_qopt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_APIC_MAX + 1];
	uint64_t value;

	(void)qu;
	(void)f;
	of_class = false;
	if (!opt)
		return 0;
	parse_rtattr_flags(tb, TCA_APIC_MAX, rta_data(opt), (int)rta_payload(opt), NLA_F_NESTED);
	print_options(options, tb);
	if (tb[TCA_APIC_MODE_NOW] && rta_payload(tb[TCA_APIC_MODE_NOW]) >= 4) {
		value = 0;
		memcpy(&value, rta_data(tb[TCA_APIC_MODE_NOW]), 4);
		print_color_string(PRINT_ANY, COLOR_NONE, "mode_now", "(%s) ",
				   name_of(modes, value));
	}
	return 0;
}

/* Counters of struct tc_apic_xstats: text before the name in a terminal, and name. */
#define OF_BOTH(line, member)	{ line, #member, offsetof(struct tc_apic_xstats, member), true }
#define OF_QDISC(line, member)	{ line, #member, offsetof(struct tc_apic_xstats, member), false }
static const struct {
	const char *line, *name;
	size_t offset;
	bool of_class;	/* also a counter of classes */
} counters[] = {
	OF_BOTH("  ", sent_hard), OF_BOTH("", sent_soft), OF_BOTH("", sent_thread),
	OF_BOTH("", sent_stack),
	OF_BOTH("\n  ", late), OF_BOTH("", early), OF_BOTH("", dropped_late),
	OF_QDISC("", dropped_horizon), OF_QDISC("", capped_horizon), OF_BOTH("", dropped_limit),
	OF_QDISC("", dropped_flow_limit),
	OF_BOTH("\n  ", ce_marked), OF_QDISC("", gso_split), OF_QDISC("", busy_lock),
	OF_QDISC("", busy_driver), OF_QDISC("", busy_cpu), OF_QDISC("", stopped),
	OF_QDISC("", no_timer), OF_QDISC("", waited_ns),
};

/* Return the class of errors that contains a percentile, in thousandths. */
static unsigned int percentile(const uint64_t *errors, uint64_t total, uint64_t thousandths)
{
	uint64_t rank = (total * thousandths + 999) / 1000;
	unsigned int i;

	for (i = 0; i < TC_APIC_ERRORS - 1; i++) {
		if (rank <= errors[i])
			break;
		rank -= errors[i];
	}
	return i;
}

static uint64_t class_end(unsigned int class)
{
	return class ? (1ULL << class) - 1 : 0;
}

static void print_errors(const struct tc_apic_xstats *stats)
{
	static const struct { const char *name; uint64_t thousandths; } parts[] = {
		{ "p50", 500 }, { "p99", 990 }, { "p99.9", 999 }, { "max", 1000 },
	};
	uint64_t total = 0;
	unsigned int i;

	open_json_array(PRINT_JSON, "errors");
	for (i = 0; i < TC_APIC_ERRORS; i++) {
		total += stats->errors[i];
		print_color_u64(PRINT_JSON, COLOR_NONE, NULL, NULL, stats->errors[i]);
	}
	close_json_array(PRINT_JSON, NULL);
	if (is_json_context() || !total)
		return;
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "\n  error%s", " in TSC cycles, at most:");
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s", parts[i].name);
		print_color_u64(PRINT_FP, COLOR_NONE, NULL, " %llu",
				class_end(percentile(stats->errors, total, parts[i].thousandths)));
	}
	for (i = 0; show_details && i < TC_APIC_ERRORS; i++) {
		if (!stats->errors[i])
			continue;
		print_color_u64(PRINT_FP, COLOR_NONE, NULL, "\n    up to %10llu:", class_end(i));
		print_color_u64(PRINT_FP, COLOR_NONE, NULL, " %llu", stats->errors[i]);
	}
}

static int print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_apic_xstats stats;
	char words[64];
	size_t i, size;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	/* The structure of an older kernel is shorter, that of a newer one longer. */
	size = rta_payload(xstats) < sizeof(stats) ? rta_payload(xstats) : sizeof(stats);
	memset(&stats, 0, sizeof(stats));
	memcpy(&stats, rta_data(xstats), size);

	for (i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
		uint64_t value;

		if (of_class && !counters[i].of_class)
			continue;
		memcpy(&value, (char *)&stats + counters[i].offset, sizeof(value));
		snprintf(words, sizeof(words), "%s%s %%llu ", counters[i].line, counters[i].name);
		print_color_u64(PRINT_ANY, COLOR_NONE, counters[i].name, words, value);
	}
	if (!of_class) {
		print_color_uint(PRINT_ANY, COLOR_NONE, "lead_hard", "\n  lead_hard %u ",
				 stats.lead_hard);
		print_color_uint(PRINT_ANY, COLOR_NONE, "lead_soft", "lead_soft %u ",
				 stats.lead_soft);
		print_color_uint(PRINT_ANY, COLOR_NONE, "path", "path %u ", stats.path);
		print_color_uint(PRINT_ANY, COLOR_NONE, "flows", "flows %u ", stats.flows);
	}
	print_color_uint(PRINT_ANY, COLOR_NONE, "tsc_khz", "tsc_khz %u", stats.tsc_khz);
	print_errors(&stats);
	return 0;
}

extern struct qdisc_util apic_qdisc_util;
struct qdisc_util apic_qdisc_util = {
	.id = "apic",
	.parse_qopt = parse_qopt,
	.print_qopt = print_qopt,
	.print_xstats = print_xstats,
	.parse_copt = parse_copt,
	.print_copt = print_copt,
};
