// SPDX-License-Identifier: GPL-2.0
/*
 * Parse a line of trace_pipe:
 *
 *	   <idle>-0       [000] d.h..  9287461523: apic_timer_add: timer=... function=f [m] ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "utf8.h"
#include "words.h"

/* Our events' names begin with the system's. */
#define MARK ": " EVENT_SYSTEM "_"
#define DIGITS "0123456789"

/*
 * Return: beginning of the time, in front of *mark; NULL if it is not a line of one of
 * our events. The last mark counts: a task's name may contain one, the fields do not.
 */
static const char *time_of(const char *text, const char **mark)
{
	const char *at, *next;

	for (at = strstr(text, MARK); at && (next = strstr(at + 1, MARK)); at = next)
		;
	*mark = at;
	while (at && at > text && at[-1] != ' ')
		at--;
	return at;
}

bool trace_line_in_seconds(const char *text)
{
	const char *mark, *at = time_of(text, &mark);
	size_t whole = at ? strspn(at, DIGITS) : 0;

	if (!whole || at[whole] != '.')
		return false;
	at += whole + 1;
	return at + strspn(at, DIGITS) == mark;
}

bool trace_line_is_loss(const char *text)
{
	int cpu, end = 0;
	unsigned long events;

	if (sscanf(text, "CPU:%d [LOST %lu EVENTS]%n", &cpu, &events, &end) < 2 || !end)
		sscanf(text, "CPU:%d [LOST EVENTS]%n", &cpu, &end);
	return end && !text[end];
}

bool trace_line_parse(const char *text, struct trace_line *line)
{
	const char *mark, *at = time_of(text, &mark), *cpu, *name;
	size_t length;
	int end;

	if (!at || sscanf(at, "%" SCNu64 "%n", &line->tsc, &end) != 1 || at + end != mark)
		return false;
	/* A task's name may also contain brackets: the last ones are the CPU's. */
	for (cpu = at; cpu > text && *cpu != '[';)
		cpu--;
	if (sscanf(cpu, "[%d]", &line->cpu) != 1)
		return false;
	text += strspn(text, " ");
	length = cpu - text;
	while (length && text[length - 1] == ' ')
		length--;
	snprintf(line->task, sizeof(line->task), "%.*s", (int)length, text);
	/* A task's name may contain any bytes. */
	utf8_make_printable(line->task);
	name = mark + 2;
	length = strcspn(name, ":");
	if (!name[length])
		return false;
	snprintf(line->event, sizeof(line->event), "%.*s", (int)length, name);
	line->fields = name + length + 1;
	return true;
}

/* Return: what follows " NAME=", or NULL. */
static const char *value_of(const char *fields, const char *name)
{
	size_t length = strlen(name);
	const char *at;

	for (at = fields; (at = strstr(at, name)); at += length)
		if (at > fields && at[-1] == ' ' && at[length] == '=')
			return at + length + 1;
	return NULL;
}

int64_t trace_number(const char *fields, const char *name, int64_t otherwise)
{
	const char *value = value_of(fields, name);
	char *end;
	int64_t number;

	if (!value)
		return otherwise;
	number = *value == '-' ? strtoll(value, &end, 10) : (int64_t)strtoull(value, &end, 0);
	return end == value ? otherwise : number;
}

bool trace_word(const char *fields, const char *name, char *word, size_t size)
{
	const char *value = value_of(fields, name);
	size_t length;

	if (!value)
		return false;
	length = strcspn(value, " \n");
	if (value[length] == ' ' && value[length + 1] == '[')
		length += 1 + strcspn(value + length + 1, " \n");
	snprintf(word, size, "%.*s", (int)length, value);
	return true;
}

void trace_shares(const uint64_t *parts, unsigned int *tenths, unsigned int count)
{
	uint64_t sum = 0, rest[8] = {}, most;
	unsigned int i, place, given = 0;

	for (i = 0; i < count; i++)
		sum += parts[i];
	for (i = 0; i < count; i++) {
		tenths[i] = sum ? (unsigned int)((double)parts[i] * 1000 / sum) : 0;
		rest[i] = sum ? (uint64_t)((double)parts[i] * 1000000 / sum) % 1000 : 0;
		given += tenths[i];
	}
	/* Distribute the remainder of rounding down to the parts that lost most. */
	for (; sum && given < 1000; given++) {
		for (i = 0, place = 0, most = 0; i < count; i++) {
			if (rest[i] >= most && parts[i]) {
				most = rest[i];
				place = i;
			}
		}
		tenths[place]++;
		rest[place] = 0;
	}
}
