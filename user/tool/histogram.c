// SPDX-License-Identifier: GPL-2.0
/*
 * Read histograms counted by the kernel's triggers.
 *
 * The kernel's log2 modifier treats a negative value as a huge one, and counts
 * it as 1. So values below 0 have a trigger of their own, with linear buckets
 * whose width is a power of 2; here they are merged into buckets of powers of
 * 2.
 *
 * The kernel computes linear buckets by unsigned division: unless their width
 * is a power of 2, one bucket has values on both sides of 0. So these also need
 * two triggers, and the last bucket of the one below 0 ends at -1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "histogram.h"
#include "say.h"
#include "tracing.h"
#include "words.h"

#define NEGATIVE_WIDTH	64
#define TRIGGER		"# trigger info:"
#define ROWS		"8192"	/* of a trigger: the kernel drops and reports more */

static const char * const keys[] = {
	[HISTOGRAM_BY_CPU] = "common_cpu",
	[HISTOGRAM_BY_HANDLER] = "function.sym",
	[HISTOGRAM_BY_CPU_STATE] = KEY_CPU_STATE,
};

static const char * const cpu_states[] = { "busy", "idle", "stopped" };

static struct group *group_of(struct histogram *histogram, const char *name, long order)
{
	struct group *group = histogram_group(histogram, name);

	if (group)
		return group;
	histogram->group = grow(histogram->group, histogram->groups, sizeof(*group));
	group = &histogram->group[histogram->groups++];
	memset(group, 0, sizeof(*group));
	snprintf(group->name, sizeof(group->name), "%s", name);
	group->order = order;
	return group;
}

static void count_in(struct group *group, int64_t low, int64_t high, uint64_t count)
{
	size_t i;

	for (i = 0; i < group->buckets; i++)
		if (group->bucket[i].low == low && group->bucket[i].high == high)
			break;
	if (i == group->buckets) {
		group->bucket = grow(group->bucket, group->buckets, sizeof(*group->bucket));
		group->bucket[group->buckets++] = (struct bucket){ low, high, 0 };
	}
	group->bucket[i].count += count;
	group->count += count;
}

/* The trigger that a row belongs to */
enum side {
	ANY,
	NEGATIVE_LINEAR,	/* the one for values below 0 */
	NEGATIVE_WIDENED,	/* the same, next to one in powers of 2 */
};

/*
 * Parse a bucket's ends: "~ 2^4", "~ 100-199" or "17". Values below 0 are in
 * two's complement of 64 bits.
 */
static bool range_of(const char *text, enum side side, int64_t *low, int64_t *high)
{
	uint64_t from, to, power, size;
	char *end;

	if (sscanf(text, " ~ 2^%" SCNu64, &power) == 1 && power < 64) {
		*low = power ? (int64_t)((UINT64_C(1) << power) / 2 + 1) : 0;
		*high = power < 63 ? (int64_t)(UINT64_C(1) << power) : INT64_MAX;
		return true;
	}
	if (sscanf(text, " ~ %" SCNu64 "-%" SCNu64, &from, &to) == 2) {
		*low = (int64_t)from;
		*high = (int64_t)to;
		if (side == ANY)
			return *low <= *high;
		if (*low >= 0)
			return false;
		if (side == NEGATIVE_LINEAR) {
			if (*high >= 0)
				*high = -1;
			return *low <= *high;
		}
		/* Widen it to a power of 2. */
		for (size = NEGATIVE_WIDTH; size < -from; size *= 2)
			;
		*low = (int64_t)-size;
		*high = size == NEGATIVE_WIDTH ? -1 : -(int64_t)(size / 2) - 1;
		return true;
	}
	errno = 0;
	*low = strtoll(text, &end, 10);
	*high = *low;
	return end != text && !errno;
}

/* "common_cpu: 3", "function: [ffffffffc0a01020] handler [module]  " or "class: 1" */
static bool group_name(char *text, char *name, size_t size, long *order)
{
	char *value = strchr(text, ':'), *end;
	long number;

	if (!value)
		return false;
	*value++ = 0;
	value += strspn(value, " ");
	for (end = value + strlen(value); end > value && end[-1] == ' ';)
		*--end = 0;
	text += strspn(text, " ");
	*order = 0;
	if (*value == '[') {
		value = strchr(value, ']');
		if (!value++)
			return false;
		snprintf(name, size, "%s", value + strspn(value, " "));
		return *name;
	}
	number = strtol(value, &end, 10);
	if (end == value || *end || number < 0)
		return false;
	*order = number;
	if (!strcmp(text, KEY_CPU_STATE) && number < (long)COUNT(cpu_states))
		snprintf(name, size, "%s", cpu_states[number]);
	else
		snprintf(name, size, "%s %ld", strcmp(text, "common_cpu") ? text : "CPU", number);
	return true;
}

/* "{ KEY: VALUE, FIELD: VALUE } hitcount:  1  SUM:  2" */
static bool parse_row(struct histogram *histogram, char *row, const char *field, enum side side)
{
	char *close = strstr(row, "} hitcount:"), *at, *value = NULL, *sum, name[112];
	char *wanted = format_text(", %s:", field);
	struct group *group;
	int64_t low, high;
	uint64_t count;
	long order;

	if (!close) {
		free(wanted);
		return false;
	}
	*close = 0;
	for (at = row; (at = strstr(at, wanted)); at++)
		value = at;
	free(wanted);
	if (!value)
		return false;
	*value = 0;
	value = strchr(value + 1, ':') + 1;
	if (!range_of(value, side, &low, &high) ||
	    !group_name(row + strspn(row, "{ "), name, sizeof(name), &order) ||
	    sscanf(close + 1, " hitcount: %" SCNu64, &count) != 1)
		return false;
	group = group_of(histogram, name, order);
	count_in(group, low, high, count);
	sum = strchr(strchr(close + 1, ':') + 1, ':');
	if (sum)
		group->sum += strtoull(sum + 1, NULL, 10);
	return true;
}

static int compare_buckets(const void *a, const void *b)
{
	int64_t x = ((const struct bucket *)a)->low, y = ((const struct bucket *)b)->low;

	return (x > y) - (x < y);
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->order != y->order ? (x->order > y->order) - (x->order < y->order) :
				      strcmp(x->name, y->name);
}

/* Return: true if any trigger of a file counts in powers of 2. */
static bool in_powers(const char *text)
{
	while ((text = strstr(text, TRIGGER))) {
		if (memmem(text, strcspn(text, "\n"), ".log2", 5))
			return true;
		text += strlen(TRIGGER);
	}
	return false;
}

bool histogram_parse(struct histogram *histogram, const char *text, const char *field,
		     const char **line)
{
	char *row;
	size_t length, i;
	uint64_t number;
	enum side negative = in_powers(text) ? NEGATIVE_WIDENED : NEGATIVE_LINEAR, side = ANY;
	bool good = true;

	memset(histogram, 0, sizeof(*histogram));
	for (; *text && good; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		*line = text;
		row = format_text("%.*s", (int)length, text);
		if (*row == '{')
			good = parse_row(histogram, row, field, side);
		else if (!strncmp(row, TRIGGER, strlen(TRIGGER)))
			side = strstr(row, " < 0") ? negative : ANY;
		else if (sscanf(row, " Hits: %" SCNu64, &number) == 1)
			histogram->hits += number;
		else if (sscanf(row, " Dropped: %" SCNu64, &number) == 1)
			histogram->dropped += number;
		free(row);
	}
	for (i = 0; i < histogram->groups; i++)
		qsort(histogram->group[i].bucket, histogram->group[i].buckets,
		      sizeof(struct bucket), compare_buckets);
	if (histogram->groups)
		qsort(histogram->group, histogram->groups, sizeof(struct group), compare_groups);
	return good;
}

void histogram_free(struct histogram *histogram)
{
	size_t i;

	for (i = 0; i < histogram->groups; i++)
		free(histogram->group[i].bucket);
	free(histogram->group);
	memset(histogram, 0, sizeof(*histogram));
}

struct group *histogram_group(const struct histogram *histogram, const char *name)
{
	size_t i;

	for (i = 0; i < histogram->groups; i++)
		if (!strcmp(histogram->group[i].name, name))
			return &histogram->group[i];
	return NULL;
}

void histogram_copy(struct histogram *to, const struct histogram *from)
{
	struct group *group;
	size_t g, i;

	*to = *from;
	to->group = NULL;
	for (g = 0; g < from->groups; g++) {
		to->group = grow(to->group, g, sizeof(*group));
		group = &to->group[g];
		*group = from->group[g];
		group->bucket = NULL;
		for (i = 0; i < group->buckets; i++) {
			group->bucket = grow(group->bucket, i, sizeof(*group->bucket));
			group->bucket[i] = from->group[g].bucket[i];
		}
	}
}

void histogram_subtract(struct histogram *from, const struct histogram *before)
{
	const struct group *old;
	struct group *group;
	size_t g, i, j;

	for (g = 0; g < from->groups; g++) {
		group = &from->group[g];
		old = histogram_group(before, group->name);
		if (!old)
			continue;
		for (i = 0, j = 0; i < old->buckets; i++) {
			while (j < group->buckets && group->bucket[j].low < old->bucket[i].low)
				j++;
			if (j < group->buckets && group->bucket[j].low == old->bucket[i].low)
				group->bucket[j].count -= old->bucket[i].count;
		}
		group->count -= old->count;
		group->sum -= old->sum;
	}
	from->hits -= before->hits;
	from->dropped -= before->dropped;
}

int64_t histogram_quantile(const struct group *group, double part)
{
	uint64_t wanted = part * group->count, seen = 0;
	size_t i;

	if (wanted >= group->count && group->count)
		wanted = group->count - 1;
	for (i = 0; i < group->buckets; i++) {
		seen += group->bucket[i].count;
		if (seen > wanted)
			return group->bucket[i].high;
	}
	return 0;
}

uint64_t histogram_negative(const struct group *group)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < group->buckets; i++)
		if (group->bucket[i].high < 0)
			count += group->bucket[i].count;
	return count;
}

void histogram_start(const char *event, const char *field, enum histogram_by by, long linear,
		     bool is_signed)
{
	char *trigger, *modifier;

	modifier = linear ? format_text("buckets=%ld", linear) : format_text("log2");
	trigger = format_text("hist:keys=%s,%s.%s%s%s:size=" ROWS "%s%s%s", keys[by], field,
			      modifier, is_signed ? "" : ":vals=", is_signed ? "" : field,
			      is_signed ? " if " : "", is_signed ? field : "",
			      is_signed ? " >= 0" : "");
	tracing_histogram(event, trigger);
	free(trigger);
	free(modifier);
	if (!is_signed)
		return;
	trigger = format_text("hist:keys=%s,%s.buckets=%ld:size=" ROWS " if %s < 0", keys[by],
			      field, linear ? linear : NEGATIVE_WIDTH, field);
	tracing_histogram(event, trigger);
	free(trigger);
}

void histogram_read(struct histogram *histogram, const char *event, const char *field)
{
	char *text = tracing_read_histogram(event);
	const char *line = text;

	if (!histogram_parse(histogram, text, field, &line))
		fail("unknown line in the kernel's histogram: %.*s",
		     (int)strcspn(line, "\n"), line);
	free(text);
}
