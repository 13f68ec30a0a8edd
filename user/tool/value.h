/* SPDX-License-Identifier: GPL-2.0 */
/* Parsed JSON, as written by this program and the lab's benchmark. */
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>
#include <stddef.h>

enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_TEXT, VALUE_ARRAY, VALUE_OBJECT };

struct value {
	enum value_kind kind;
	char *key;		/* in an object, else NULL */
	double number;		/* 0 or 1 for a bool; an int64_t holds its whole part */
	char *text;
	struct value *item;	/* items of an array or object */
	size_t count;
};

/* Parse a text. Return: its value, NULL if it is not valid JSON. */
struct value *value_parse(const char *text);
void value_free(struct value *value);

/* The functions below treat NULL, and a value of another kind, as missing. */

/* Return: a member of an object, or NULL. */
const struct value *value_get(const struct value *value, const char *key);
/* Return: number of items. */
size_t value_count(const struct value *value);
/* Return: an item of an array, or NULL. */
const struct value *value_item(const struct value *value, size_t place);
bool value_has(const struct value *value, const char *key);
/* Return: a member, or @otherwise. */
double value_number(const struct value *value, const char *key, double otherwise);
/* Return: a member, or "". */
const char *value_text(const struct value *value, const char *key);
/* Return: the item of an array that is an object whose @key is the text @text, or NULL. */
const struct value *value_find(const struct value *value, const char *key, const char *text);

#endif
