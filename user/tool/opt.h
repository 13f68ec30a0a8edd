/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Subcommands and their options: one table, from which --help is printed,
 * arguments are parsed, and completion is generated.
 */
#ifndef OPT_H
#define OPT_H

#include <stdbool.h>

enum opt_kind {
	OPT_IS_FLAG,	/* value: bool */
	OPT_IS_NUMBER,	/* value: long, from min to max */
	OPT_IS_CHOICE,	/* value: int, the place in arg, which has words between bars */
	OPT_IS_TEXT,	/* value: const char * */
	OPT_IS_FILE,	/* value: const char * */
	OPT_IS_DIRECTORY,	/* value: const char * */
};

struct opt {
	char letter;		/* 0: none */
	const char *name;	/* NULL ends a table */
	enum opt_kind kind;
	const char *arg;
	const char *help;
	void *value;
	long min, max;
};

#define OPT_FLAG(l, n, h, v) \
	{ .letter = (l), .name = (n), .kind = OPT_IS_FLAG, .help = (h), .value = (v) }
#define OPT_NUMBER(l, n, a, from, to, h, v) \
	{ .letter = (l), .name = (n), .kind = OPT_IS_NUMBER, .arg = (a), .help = (h), \
	  .value = (v), .min = (from), .max = (to) }
#define OPT_CHOICE(l, n, a, h, v) \
	{ .letter = (l), .name = (n), .kind = OPT_IS_CHOICE, .arg = (a), .help = (h), .value = (v) }
#define OPT_TEXT(l, n, a, h, v) \
	{ .letter = (l), .name = (n), .kind = OPT_IS_TEXT, .arg = (a), .help = (h), .value = (v) }
#define OPT_FILE(l, n, a, h, v) \
	{ .letter = (l), .name = (n), .kind = OPT_IS_FILE, .arg = (a), .help = (h), .value = (v) }
#define OPT_DIRECTORY(l, n, a, h, v) \
	{ .letter = (l), .name = (n), .kind = OPT_IS_DIRECTORY, .arg = (a), .help = (h), \
	  .value = (v) }

struct command {
	const char *name;
	const char *operands;	/* as in the synopsis, or NULL */
	int least, most;	/* number of operands, -1: any, of a command to run */
	const char *summary;	/* one line */
	const char *about;	/* paragraphs of --help */
	const struct opt *options;
	int (*run)(int count, char **operands);	/* returns the exit status */
};

/* In the order of --help; a NULL ends them. */
extern const struct command * const commands[];

extern bool opt_json;
extern const struct opt opt_common[];

const struct command *opt_command(const char *name);
void opt_usage(void);
void opt_help(const struct command *command);
char **opt_parse(const struct command *command, char **arguments, int *count);
/*
 * End the program if an option was given that would be ignored. @value: that of its table;
 * @with: the option or operand that it does not work with.
 */
void opt_refuse(const struct command *command, const void *value, const char *with);
int opt_completion(const char *shell);

#endif
