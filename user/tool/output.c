// SPDX-License-Identifier: GPL-2.0
/* A file that takes the place of an older one once it is complete. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "say.h"

static const char *named;	/* as the user did */
static char *place;		/* behind symbolic links */
static char *fresh;		/* NULL: written in place, or not there */
static FILE *file;

static void discard(void)
{
	if (fresh)
		unlink(fresh);
}

FILE *output_open(const char *path)
{
	struct stat there;

	named = path;
	place = realpath(path, NULL);
	if (!place)
		place = format_text("%s", path);
	/* Don't rename anything over a device or a pipe: root could replace /dev/null. */
	if (stat(place, &there) || S_ISREG(there.st_mode))
		fresh = format_text("%s.new", place);
	file = fopen(fresh ? fresh : place, "we");
	if (!file)
		fail("can't write %s: %s", path, strerror(errno));
	atexit(discard);
	return file;
}

void output_close(void)
{
	bool bad = ferror(file);

	if (fclose(file) || bad || (fresh && rename(fresh, place)))
		fail("can't write %s: %s", named, strerror(errno));
	free(fresh);
	free(place);
	fresh = NULL;
}
