/* SPDX-License-Identifier: GPL-2.0 */
/* JSON that has been read: what this program and the lab's benchmark write. */
#ifndef VALUE_H
#define VALUE_H

#include <stdbool.h>
#include <stddef.h>

enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_TEXT, VALUE_ARRAY, VALUE_OBJECT };

struct value {
	enum value_kind kind;
	char *key;		/* in an object, else NULL */
	double number;		/* of a bool 0 or 1 */
	char *text;
	struct value *item;	/* of an array or object */
	size_t count;
};

/* Return: what a text says, NULL if it is no JSON. */
struct value *value_parse(const char *text);
void value_free(struct value *value);

/* The ones below take a NULL, and what is of another kind, for one that isn't there. */

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
/* Return: the item of an array that is an object with @key as a text of @text, or NULL. */
const struct value *value_find(const struct value *value, const char *key, const char *text);

#endif
