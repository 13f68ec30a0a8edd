// SPDX-License-Identifier: GPL-2.0
/* JSON on standard output. Text for people is printed elsewhere. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "say.h"
#include "utf8.h"

static char stack[16];	/* the bracket that closes each level */
static unsigned int depth;
static bool first = true;

static void quoted(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	uint32_t code;
	int length;

	putchar('"');
	for (; *at; at += length ? length : 1) {
		length = utf8_read((const char *)at, &code);
		if (*at == '"' || *at == '\\')
			printf("\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			printf("\\u%04x", *at);
		else if (length)
			fwrite(at, 1, (size_t)length, stdout);
		else
			fputs("\\ufffd", stdout);	/* a name may be cut anywhere */
	}
	putchar('"');
}

static void begin(const char *key)
{
	if (!first)
		putchar(',');
	first = false;
	if (key) {
		quoted(key);
		putchar(':');
	}
}

static void open_level(const char *key, char bracket, char closing)
{
	begin(key);
	putchar(bracket);
	if (depth == COUNT(stack))
		fail("JSON is nested too deeply");
	stack[depth++] = closing;
	first = true;
}

void json_object(const char *key)
{
	open_level(key, '{', '}');
}

void json_array(const char *key)
{
	open_level(key, '[', ']');
}

void json_end(void)
{
	putchar(stack[--depth]);
	first = !depth;
	if (!depth) {
		putchar('\n');
		fflush(stdout);
	}
}

void json_text(const char *key, const char *text)
{
	begin(key);
	quoted(text);
}

void json_number(const char *key, int64_t number)
{
	begin(key);
	printf("%" PRId64, number);
}

void json_real(const char *key, double number, int digits)
{
	/* JSON has no such numbers. */
	if (!isfinite(number)) {
		json_null(key);
		return;
	}
	begin(key);
	printf("%.*f", digits, number);
}

void json_bool(const char *key, bool value)
{
	begin(key);
	printf("%s", value ? "true" : "false");
}

void json_null(const char *key)
{
	begin(key);
	printf("null");
}
