// SPDX-License-Identifier: GPL-2.0
/*
 * Small files of sysfs, procfs, debugfs and tracefs.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "say.h"

const char *files_root = "";

static char *path_of(const char *format, va_list arguments)
{
	char *path, *below;

	if (vasprintf(&path, format, arguments) < 0)
		fail("out of memory");
	below = format_text("%s%s", files_root, path);
	free(path);
	return below;
}

#define PATH_FROM(path, format)				\
	do {						\
		va_list arguments;			\
		va_start(arguments, format);		\
		path = path_of(format, arguments);	\
		va_end(arguments);			\
	} while (0)

char *files_path(const char *format, ...)
{
	char *path;

	PATH_FROM(path, format);
	return path;
}

static char *read_all(int fd)
{
	size_t size = 4096, length = 0;
	char *text = malloc(size);
	ssize_t got;

	while (text) {
		got = read(fd, text + length, size - length - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			free(text);
			return NULL;
		}
		if (!got)
			break;
		length += got;
		if (length == size - 1) {
			size *= 2;
			text = realloc(text, size);
		}
	}
	if (!text)
		fail("out of memory");
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = 0;
	return text;
}

static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	char *text;

	if (fd < 0)
		return NULL;
	text = read_all(fd);
	error = errno;
	close(fd);
	errno = error;
	return text;
}

char *files_read(const char *format, ...)
{
	char *path, *text;

	PATH_FROM(path, format);
	text = read_file(path);
	free(path);
	return text;
}

bool files_write(const char *text, const char *format, ...)
{
	ssize_t length = strlen(text), done;
	char *path;
	int fd, error;

	PATH_FROM(path, format);
	/* Files of a fake tree are regular ones: their former content may be longer. */
	fd = open(path, O_WRONLY | O_CLOEXEC | (*files_root ? O_TRUNC : 0));
	free(path);
	if (fd < 0)
		return false;
	done = write(fd, text, length);
	error = errno;
	close(fd);
	errno = error;
	return done == length;
}

bool files_exist(const char *format, ...)
{
	char *path;
	bool there;

	PATH_FROM(path, format);
	there = !access(path, F_OK);
	free(path);
	return there;
}

long files_number(long otherwise, const char *format, ...)
{
	char *path, *text, *end;
	long number;

	PATH_FROM(path, format);
	text = read_file(path);
	free(path);
	if (!text)
		return otherwise;
	number = strtol(text, &end, 0);
	if (end == text)
		number = otherwise;
	free(text);
	return number;
}

bool files_cpulist(const char *list, bool *in, int size)
{
	long from, to;
	char *end;

	memset(in, 0, size * sizeof(*in));
	while (*list) {
		from = strtol(list, &end, 10);
		if (end == list || from < 0 || from >= size)
			return false;
		to = from;
		list = end;
		if (*list == '-') {
			to = strtol(list + 1, &end, 10);
			if (end == list + 1 || to < from || to >= size)
				return false;
			list = end;
		}
		for (; from <= to; from++)
			in[from] = true;
		if (*list == ',')
			list++;
		else if (*list)
			return false;
	}
	return true;
}

char *files_list(const bool *in, int size)
{
	char *list = format_text("%s", ""), *longer;
	int from, to;

	for (from = 0; from < size; from = to + 1) {
		to = from;
		if (!in[from])
			continue;
		while (to + 1 < size && in[to + 1])
			to++;
		longer = format_text(to > from ? "%s%s%d-%d" : "%s%s%d", list, *list ? "," : "",
				     from, to);
		free(list);
		list = longer;
	}
	return list;
}
