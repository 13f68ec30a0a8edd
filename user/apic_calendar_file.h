/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Calendars as text. A file has one statement per line; # begins a comment:
 *
 *	unit NAME cpu N user [park | signal N | kill | skip]
 *	unit NAME cpu N function [FUNCTION]
 *	unit NAME cpu N thread [FUNCTION]
 *	table NAME major TIME
 *	at TIME run NAME for TIME
 *	degrade to NAME after N
 *
 * Units come first. Entries belong to the table above them, in any order. "degrade"
 * names a table above in the file, which replaces this one after N overruns. A TIME is a
 * number with ns, us, ms or s. FUNCTION defaults to NAME.
 *
 * Header only; needs no libc.
 */
#ifndef APIC_CALENDAR_FILE_H
#define APIC_CALENDAR_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <linux/apic_calendar.h>

#define CALENDAR_FILE_ENTRIES	1024	/* of all tables */

/* A table, and the position of its entries. */
struct calendar_file_table {
	char name[APIC_CALENDAR_NAME];
	__u64 major;			/* ns */
	uint32_t first;
	uint32_t n;
	uint32_t max_overruns;
	uint32_t degraded;
	uint32_t line;
};

struct calendar_file {
	struct apic_calendar_unit units[APIC_CALENDAR_UNITS];
	uint32_t unit_line[APIC_CALENDAR_UNITS];
	uint32_t n_units;
	struct calendar_file_table tables[APIC_CALENDAR_TABLES];
	uint32_t n_tables;
	struct apic_calendar_entry entries[CALENDAR_FILE_ENTRIES];
	uint32_t entry_line[CALENDAR_FILE_ENTRIES];
	uint32_t n_entries;
	/* the first error */
	uint32_t line;
	const char *error;
};

static const char *const calendar_reasons[APIC_CALENDAR_REASONS] = {
	[APIC_CALENDAR_OK] = "no error",
	[APIC_CALENDAR_BAD_MAJOR] = "the major cycle is shorter than 100 us, or longer than a day",
	[APIC_CALENDAR_BAD_COUNT] = "no unit, no entry, or too many",
	[APIC_CALENDAR_BAD_NAME] = "another unit has this name",
	[APIC_CALENDAR_BAD_KIND] = "no such kind of unit",
	[APIC_CALENDAR_BAD_POLICY] = "invalid overrun policy",
	[APIC_CALENDAR_BAD_CPU] = "no such CPU, or it is offline",
	[APIC_CALENDAR_BAD_FUNCTION] = "no module has registered this function",
	[APIC_CALENDAR_BAD_UNIT] = "no such unit",
	[APIC_CALENDAR_BAD_ORDER] = "entries are not in order",
	[APIC_CALENDAR_BAD_BUDGET] = "the budget is too short",
	[APIC_CALENDAR_BAD_END] = "the window ends after the major cycle",
	[APIC_CALENDAR_OVERLAP] = "the window begins before another one on its CPU ends",
	[APIC_CALENDAR_GAP] = "the window begins too soon after another one on its CPU ends",
	[APIC_CALENDAR_LOAD_SHARE] = "with this window, too much of its CPU's time is taken",
	[APIC_CALENDAR_BAD_DEGRADED] = "no such table to degrade to",
};

struct calendar_words {
	const char *at[10];
	uint32_t size[10];
	uint32_t n;
};

static inline int calendar_is(const struct calendar_words *words, uint32_t i, const char *text)
{
	uint32_t j;

	if (i >= words->n)
		return 0;
	for (j = 0; j < words->size[i] && text[j] == words->at[i][j]; j++)
		;
	return j == words->size[i] && !text[j];
}

static inline int calendar_copy_name(const struct calendar_words *words, uint32_t i, char *to)
{
	uint32_t j;

	if (i >= words->n || words->size[i] >= APIC_CALENDAR_NAME)
		return 0;
	for (j = 0; j < APIC_CALENDAR_NAME; j++)
		to[j] = j < words->size[i] ? words->at[i][j] : 0;
	return 1;
}

/* Parse a number below 10^16 at the beginning of a word. Returns its number of digits. */
static inline uint32_t calendar_digits(const struct calendar_words *words, uint32_t i,
				       __u64 *value)
{
	uint32_t j;

	*value = 0;
	for (j = 0; i < words->n && j < words->size[i] && j < 16 &&
	     words->at[i][j] >= '0' && words->at[i][j] <= '9'; j++)
		*value = *value * 10 + (uint64_t)(words->at[i][j] - '0');
	return j;
}

static inline int calendar_number(const struct calendar_words *words, uint32_t i, uint32_t *to)
{
	__u64 value;
	uint32_t digits = calendar_digits(words, i, &value);

	*to = (uint32_t)value;
	return digits && digits == words->size[i] && value <= UINT32_MAX;
}

static inline int calendar_time(const struct calendar_words *words, uint32_t i, __u64 *ns)
{
	static const struct { const char *name; __u64 ns; } units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
	};
	struct calendar_words unit = { .n = 1 };
	uint32_t digits = calendar_digits(words, i, ns), j;

	if (!digits)
		return 0;
	unit.at[0] = words->at[i] + digits;
	unit.size[0] = words->size[i] - digits;
	for (j = 0; j < 4; j++) {
		if (calendar_is(&unit, 0, units[j].name) && *ns <= UINT64_MAX / units[j].ns) {
			*ns *= units[j].ns;
			return 1;
		}
	}
	return 0;
}

static inline const char *calendar_parse_unit(struct calendar_file *file,
					      const struct calendar_words *words)
{
	struct apic_calendar_unit *unit = &file->units[file->n_units];
	int on = words->n > 5;

	if (file->n_tables)
		return "units must come before tables";
	if (file->n_units == APIC_CALENDAR_UNITS)
		return "too many units";
	*unit = (struct apic_calendar_unit) { .kind = APIC_CALENDAR_USER };
	if (!calendar_copy_name(words, 1, unit->name) || !calendar_is(words, 2, "cpu") ||
	    !calendar_number(words, 3, &unit->cpu))
		return "expected: unit NAME cpu N ...";
	if (calendar_is(words, 4, "user")) {
		if (on && calendar_is(words, 5, "signal")) {
			unit->on_overrun = APIC_CALENDAR_SIGNAL;
			if (words->n != 7 || !calendar_number(words, 6, &unit->signal))
				return "expected: unit NAME cpu N user signal N";
		} else if (words->n > 6) {
			return "unexpected words after the unit";
		} else if (on && calendar_is(words, 5, "kill")) {
			unit->on_overrun = APIC_CALENDAR_KILL;
		} else if (on && calendar_is(words, 5, "skip")) {
			unit->on_overrun = APIC_CALENDAR_SKIP;
		} else if (on && !calendar_is(words, 5, "park")) {
			return "expected park, signal N, kill or skip";
		}
	} else {
		if (calendar_is(words, 4, "function"))
			unit->kind = APIC_CALENDAR_FUNCTION;
		else if (calendar_is(words, 4, "thread"))
			unit->kind = APIC_CALENDAR_THREAD;
		else
			return "expected user, function or thread";
		if (words->n > 6 || !calendar_copy_name(words, on ? 5 : 1, unit->function))
			return "expected: unit NAME cpu N function [FUNCTION]";
	}
	file->unit_line[file->n_units++] = file->line;
	return NULL;
}

static inline int calendar_same(const char *a, const char *b)
{
	uint32_t i;

	for (i = 0; i < APIC_CALENDAR_NAME && a[i] == b[i]; i++) {
		if (!a[i])
			return 1;
	}
	return 0;
}

static inline const char *calendar_parse_table(struct calendar_file *file,
					       const struct calendar_words *words)
{
	struct calendar_file_table *table = &file->tables[file->n_tables];
	uint32_t i;

	if (file->n_tables == APIC_CALENDAR_TABLES)
		return "too many tables";
	*table = (struct calendar_file_table) { .first = file->n_entries, .line = file->line };
	if (words->n != 4 || !calendar_copy_name(words, 1, table->name) ||
	    !calendar_is(words, 2, "major") || !calendar_time(words, 3, &table->major))
		return "expected: table NAME major TIME";
	for (i = 0; i < file->n_tables; i++) {
		if (calendar_same(file->tables[i].name, table->name))
			return "another table has this name";
	}
	file->n_tables++;
	return NULL;
}

/* Parse an entry, and keep the entries of a table in the order of their offsets. */
static inline const char *calendar_parse_entry(struct calendar_file *file,
					       const struct calendar_words *words)
{
	struct calendar_file_table *table = &file->tables[file->n_tables - 1];
	struct apic_calendar_entry entry = { .flags = 0 };
	uint32_t i;

	if (!file->n_tables)
		return "no table above this entry";
	if (file->n_entries == CALENDAR_FILE_ENTRIES)
		return "too many entries";
	if (words->n != 6 || !calendar_time(words, 1, &entry.offset) ||
	    !calendar_is(words, 2, "run") || !calendar_is(words, 4, "for") ||
	    !calendar_time(words, 5, &entry.budget))
		return "expected: at TIME run NAME for TIME";
	while (entry.unit < file->n_units && !calendar_is(words, 3, file->units[entry.unit].name))
		entry.unit++;
	if (entry.unit == file->n_units)
		return "no such unit";
	for (i = file->n_entries; i > table->first &&
	     file->entries[i - 1].offset > entry.offset; i--) {
		file->entries[i] = file->entries[i - 1];
		file->entry_line[i] = file->entry_line[i - 1];
	}
	file->entries[i] = entry;
	file->entry_line[i] = file->line;
	file->n_entries++;
	table->n++;
	return NULL;
}

static inline const char *calendar_parse_degrade(struct calendar_file *file,
						 const struct calendar_words *words)
{
	struct calendar_file_table *table = &file->tables[file->n_tables - 1];
	uint32_t i;

	if (!file->n_tables)
		return "no table above this line";
	if (words->n != 5 || !calendar_is(words, 1, "to") || !calendar_is(words, 3, "after") ||
	    !calendar_number(words, 4, &table->max_overruns) || !table->max_overruns)
		return "expected: degrade to NAME after N";
	for (i = 0; i < file->n_tables - 1; i++) {
		if (calendar_is(words, 2, file->tables[i].name)) {
			table->degraded = i;
			return NULL;
		}
	}
	return "no such table above this one";
}

/* Parse a file. Returns 0, or -1 with @file->line and @file->error. */
static inline int calendar_parse(struct calendar_file *file, const char *text, size_t size)
{
	struct calendar_words words;
	size_t i = 0;

	file->n_units = 0;
	file->n_tables = 0;
	file->n_entries = 0;
	file->line = 0;
	file->error = NULL;
	while (i < size && !file->error) {
		file->line++;
		words.n = 0;
		while (i < size && text[i] != '\n') {
			if (text[i] == '#') {
				while (i < size && text[i] != '\n')
					i++;
				break;
			}
			if (text[i] == ' ' || text[i] == '\t' || text[i] == '\r') {
				i++;
				continue;
			}
			/* For calendar_is() and in names it is the end of a text. */
			if (!text[i]) {
				file->error = "a byte is 0";
				break;
			}
			if (words.n == 10) {
				file->error = "too many words";
				break;
			}
			words.at[words.n] = text + i;
			while (i < size && text[i] != ' ' && text[i] != '\t' && text[i] != '\r' &&
			       text[i] != '\n' && text[i] != '#' && text[i])
				i++;
			words.size[words.n] = (uint32_t)(text + i - words.at[words.n]);
			words.n++;
		}
		i++;
		if (file->error || !words.n)
			continue;
		if (calendar_is(&words, 0, "unit"))
			file->error = calendar_parse_unit(file, &words);
		else if (calendar_is(&words, 0, "table"))
			file->error = calendar_parse_table(file, &words);
		else if (calendar_is(&words, 0, "at"))
			file->error = calendar_parse_entry(file, &words);
		else if (calendar_is(&words, 0, "degrade"))
			file->error = calendar_parse_degrade(file, &words);
		else
			file->error = "expected unit, table, at or degrade";
	}
	if (!file->error && !file->n_tables)
		file->error = "no table";
	return file->error ? -1 : 0;
}

/* Get the argument of LOAD for a table. */
static inline struct apic_calendar_load calendar_file_load(const struct calendar_file *file,
							   uint32_t table)
{
	const struct calendar_file_table *from = &file->tables[table];

	return (struct apic_calendar_load) {
		.size = sizeof(struct apic_calendar_load),
		.major = from->major,
		.units = table ? 0 : (uint64_t)(uintptr_t)file->units,
		.entries = (uint64_t)(uintptr_t)(file->entries + from->first),
		.n_units = table ? 0 : file->n_units,
		.n_entries = from->n,
		.max_overruns = from->max_overruns,
		.degraded = from->degraded,
	};
}

/* Get the line that a verdict is about, or the line of the table. */
static inline uint32_t calendar_file_line(const struct calendar_file *file, uint32_t table,
					  uint32_t reason, uint32_t bad)
{
	if (bad == APIC_CALENDAR_NONE)
		return file->tables[table].line;
	if (reason >= APIC_CALENDAR_BAD_NAME && reason <= APIC_CALENDAR_BAD_FUNCTION)
		return bad < file->n_units ? file->unit_line[bad] : 0;
	return bad < file->tables[table].n ? file->entry_line[file->tables[table].first + bad] : 0;
}

#endif /* APIC_CALENDAR_FILE_H */
