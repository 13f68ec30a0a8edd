// SPDX-License-Identifier: GPL-2.0
/* Messages for people, and allocation that ends the program on failure. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

/* Seconds after which progress is shown. */
#define LONG	2

static char *shown;	/* the line of progress that is on the terminal, or NULL */

static void message(const char *format, va_list arguments)
{
	progress_end();
	fflush(stdout);
	fprintf(stderr, "apic-timer: ");
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message(format, arguments);
	va_end(arguments);
	exit(2);
}

void warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message(format, arguments);
	va_end(arguments);
}

static void show_progress(double ahead, const char *format, va_list arguments)
{
	static time_t start;
	struct timespec now;
	struct winsize size;
	char *text;

	if (!isatty(STDERR_FILENO))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!start)
		start = now.tv_sec;
	if (now.tv_sec - start + ahead < LONG)
		return;
	if (vasprintf(&text, format, arguments) < 0)
		fail("out of memory");
	/* Only the last line of a longer text would be erased. */
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col &&
	    strlen(text) >= size.ws_col)
		text[size.ws_col - 1] = 0;
	/* Callers may have nothing new to say thousands of times a second. */
	if (shown && !strcmp(shown, text)) {
		free(text);
		return;
	}
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	free(shown);
	shown = text;
}

void progress(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	show_progress(0, format, arguments);
	va_end(arguments);
}

void progress_before(double seconds, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	show_progress(seconds, format, arguments);
	va_end(arguments);
}

void progress_end(void)
{
	if (shown)
		fprintf(stderr, "\r\033[K");
	free(shown);
	shown = NULL;
}

/*
 * Make room for one more element in an array of @count; its size is doubled if
 * @count is a power of two.
 */
void *grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1) || (count && count < 8))
		return array;
	array = realloc(array, (count < 8 ? 8 : 2 * count) * size);
	if (!array)
		fail("out of memory");
	return array;
}

char *format_text(const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		fail("out of memory");
	return text;
}

const char *commas(int64_t number)
{
	static char buffers[16][32];
	static unsigned int next;
	char *buffer = buffers[next++ % 16], digits[24];
	uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char *to = buffer;
	int i, length;

	length = snprintf(digits, sizeof(digits), "%" PRIu64, size);
	if (number < 0)
		*to++ = '-';
	for (i = 0; i < length; i++) {
		*to++ = digits[i];
		if ((length - i) % 3 == 1 && i < length - 1)
			*to++ = ',';
	}
	*to = 0;
	return buffer;
}
