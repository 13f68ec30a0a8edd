// SPDX-License-Identifier: GPL-2.0
/*
 * A reader of JSON.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "value.h"

#define DEPTH	16
#define MOST	9223372036854774784.0	/* the largest double that an int64_t holds */

static bool parse(const char **at, struct value *value, unsigned int depth);

static void blanks(const char **at)
{
	*at += strspn(*at, " \t\r\n");
}

static bool one(const char **at, char what)
{
	blanks(at);
	if (**at != what)
		return false;
	(*at)++;
	return true;
}

/* Write a code point as UTF-8. Halves of a surrogate pair are not combined: our JSON has none. */
static char *add_utf8(char *to, unsigned int code)
{
	if (code < 0x80) {
		*to++ = code;
	} else if (code < 0x800) {
		*to++ = 0xc0 | code >> 6;
		*to++ = 0x80 | (code & 0x3f);
	} else {
		*to++ = 0xe0 | code >> 12;
		*to++ = 0x80 | (code >> 6 & 0x3f);
		*to++ = 0x80 | (code & 0x3f);
	}
	return to;
}

static bool escape(const char **at, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *found;
	char digits[5] = {}, *end;
	unsigned int code;

	if (**at != 'u') {
		found = **at ? strchr(from, **at) : NULL;
		if (!found)
			return false;
		(*at)++;
		*(*to)++ = into[found - from];
		return true;
	}
	strncpy(digits, *at + 1, 4);
	code = strtoul(digits, &end, 16);
	if (end != digits + 4 || !code)
		return false;
	*at += 5;
	*to = add_utf8(*to, code);
	return true;
}

/* Parse a string after the opening quote. Return: the allocated text, NULL if invalid. */
static char *string(const char **at)
{
	char *text = malloc(strlen(*at) + 1), *to = text;

	if (!text)
		fail("out of memory");
	while (**at && **at != '"') {
		if (**at != '\\') {
			*to++ = *(*at)++;
			continue;
		}
		(*at)++;
		if (!escape(at, &to))
			break;
	}
	if (**at != '"') {
		free(text);
		return NULL;
	}
	(*at)++;
	*to = 0;
	text = realloc(text, to - text + 1);
	if (!text)
		fail("out of memory");
	return text;
}

static bool items(const char **at, struct value *value, unsigned int depth, char end)
{
	struct value *item;
	char *key;

	if (one(at, end))
		return true;
	do {
		key = NULL;
		if (value->kind == VALUE_OBJECT) {
			if (!one(at, '"'))
				return false;
			key = string(at);
			if (!key)
				return false;
			if (!one(at, ':')) {
				free(key);
				return false;
			}
		}
		value->item = grow(value->item, value->count, sizeof(*value->item));
		item = &value->item[value->count++];
		memset(item, 0, sizeof(*item));
		item->key = key;
		if (!parse(at, item, depth + 1))
			return false;
	} while (one(at, ','));
	return one(at, end);
}

static bool word(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length))
		return false;
	*at += length;
	return true;
}

static bool parse(const char **at, struct value *value, unsigned int depth)
{
	char *end;

	if (depth > DEPTH)
		return false;
	if (one(at, '"')) {
		value->kind = VALUE_TEXT;
		value->text = string(at);
		return value->text;
	}
	if (one(at, '{')) {
		value->kind = VALUE_OBJECT;
		return items(at, value, depth, '}');
	}
	if (one(at, '[')) {
		value->kind = VALUE_ARRAY;
		return items(at, value, depth, ']');
	}
	if (word(at, "null"))
		return true;
	value->kind = VALUE_BOOL;
	if (word(at, "true")) {
		value->number = 1;
		return true;
	}
	if (word(at, "false"))
		return true;
	value->kind = VALUE_NUMBER;
	/* Refuse names such as "nan". */
	if (!**at || !strchr("-0123456789", **at))
		return false;
	value->number = strtod(*at, &end);
	if (end == *at || !isfinite(value->number))
		return false;
	*at = end;
	/* Callers convert it to an int64_t. */
	if (value->number > MOST)
		value->number = MOST;
	if (value->number < -MOST)
		value->number = -MOST;
	return true;
}

static void clear(struct value *value)
{
	size_t i;

	for (i = 0; i < value->count; i++)
		clear(&value->item[i]);
	free(value->item);
	free(value->text);
	free(value->key);
}

struct value *value_parse(const char *text)
{
	struct value *value = calloc(1, sizeof(*value));

	if (!value)
		fail("out of memory");
	if (parse(&text, value, 0)) {
		blanks(&text);
		if (!*text)
			return value;
	}
	value_free(value);
	return NULL;
}

void value_free(struct value *value)
{
	if (!value)
		return;
	clear(value);
	free(value);
}

const struct value *value_get(const struct value *value, const char *key)
{
	size_t i;

	if (!value || value->kind != VALUE_OBJECT)
		return NULL;
	for (i = 0; i < value->count; i++)
		if (!strcmp(value->item[i].key, key))
			return &value->item[i];
	return NULL;
}

size_t value_count(const struct value *value)
{
	return value ? value->count : 0;
}

const struct value *value_item(const struct value *value, size_t place)
{
	return place < value_count(value) ? &value->item[place] : NULL;
}

bool value_has(const struct value *value, const char *key)
{
	return value_get(value, key);
}

double value_number(const struct value *value, const char *key, double otherwise)
{
	const struct value *found = key ? value_get(value, key) : value;

	return found && found->kind == VALUE_NUMBER ? found->number : otherwise;
}

const char *value_text(const struct value *value, const char *key)
{
	const struct value *found = key ? value_get(value, key) : value;

	return found && found->kind == VALUE_TEXT ? found->text : "";
}

const struct value *value_find(const struct value *value, const char *key, const char *text)
{
	size_t i;

	for (i = 0; i < value_count(value); i++)
		if (!strcmp(value_text(&value->item[i], key), text))
			return &value->item[i];
	return NULL;
}
