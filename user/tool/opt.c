// SPDX-License-Identifier: GPL-2.0
/* The table of options: help and parser. For the shells, see completion.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opt.h"
#include "say.h"

bool opt_json;
static bool help;
static const struct opt **given;
static size_t givens;

const struct opt opt_common[] = {
	OPT_FLAG(0, "json", "print JSON", &opt_json),
	OPT_FLAG('h', "help", "print this help", &help),
	{}
};

const struct command *opt_command(const char *name)
{
	const struct command * const *command;

	for (command = commands; *command; command++)
		if (!strcmp((*command)->name, name))
			return *command;
	return NULL;
}

void opt_usage(void)
{
	const struct command * const *command;

	printf("usage: apic-timer COMMAND [OPTION]...\n\n"
	       "See, trust and tune the timers of the module apic_timer.\n\n");
	for (command = commands; *command; command++)
		printf("  %-10s %s\n", (*command)->name, (*command)->summary);
	printf("\n  --help, --version, --completion bash|zsh\n\n"
	       "apic-timer COMMAND --help lists the options of a command.\n"
	       "Exit status: 0 on success; 1 if a command found something wrong, or if trace did not\n"
	       "find an expiry; 2 if a command can't do its work, for example without the module or\n"
	       "without root.\n");
}

static void print_options(const struct opt *options)
{
	const struct opt *opt;
	char left[80];

	for (opt = options; opt->name; opt++) {
		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", opt->letter ? '-' : ' ',
			 opt->letter ? opt->letter : ' ', opt->letter ? "," : " ", opt->name,
			 opt->arg ? " " : "", opt->arg ? opt->arg : "");
		if (strlen(left) > 27)
			printf("  %s\n  %-28s %s\n", left, "", opt->help);
		else
			printf("  %-28s %s\n", left, opt->help);
	}
}

void opt_help(const struct command *command)
{
	printf("usage: apic-timer %s [OPTION]...%s%s\n\n%s.\n\n", command->name,
	       command->operands ? " " : "", command->operands ? command->operands : "",
	       command->summary);
	if (command->about)
		printf("%s\n\n", command->about);
	print_options(command->options);
	print_options(opt_common);
}

static const struct opt *find(const struct command *command, const char *name, size_t length,
			      char letter)
{
	const struct opt *tables[] = { command->options, opt_common };
	const struct opt *opt;
	unsigned int i;

	for (i = 0; i < 2; i++)
		for (opt = tables[i]; opt->name; opt++)
			if (letter ? opt->letter == letter :
			    strlen(opt->name) == length && !memcmp(opt->name, name, length))
				return opt;
	return NULL;
}

/* Return: the place of a word among words between bars, -1 if it is none of them. */
static int choice(const char *words, const char *word)
{
	size_t length;
	int place = 0;

	for (;; place++) {
		length = strcspn(words, "|");
		if (strlen(word) == length && !memcmp(words, word, length))
			return place;
		if (!words[length])
			return -1;
		words += length + 1;
	}
}

static void set(const struct command *command, const struct opt *opt, const char *text)
{
	char *end;
	long number;
	int place;

	given = grow(given, givens, sizeof(*given));
	given[givens++] = opt;
	switch (opt->kind) {
	case OPT_IS_FLAG:
		*(bool *)opt->value = true;
		break;
	case OPT_IS_NUMBER:
		errno = 0;
		number = strtol(text, &end, 0);
		if (errno || end == text || *end || number < opt->min || number > opt->max)
			fail("%s: --%s takes a number from %ld to %ld, not \"%s\"", command->name,
			     opt->name, opt->min, opt->max, text);
		*(long *)opt->value = number;
		break;
	case OPT_IS_CHOICE:
		place = choice(opt->arg, text);
		if (place < 0)
			fail("%s: --%s takes one of %s, not \"%s\"", command->name, opt->name,
			     opt->arg, text);
		*(int *)opt->value = place;
		break;
	case OPT_IS_FILE:
	case OPT_IS_DIRECTORY:
		/* At once, not when a long measurement has ended. */
		if (!*text)
			fail("%s: --%s takes the name of a %s, not \"\"", command->name, opt->name,
			     opt->kind == OPT_IS_FILE ? "file" : "directory");
		*(const char **)opt->value = text;
		break;
	case OPT_IS_TEXT:
		*(const char **)opt->value = text;
		break;
	}
}

void opt_refuse(const struct command *command, const void *value, const char *with)
{
	size_t i;

	for (i = 0; i < givens; i++)
		if (given[i]->value == value)
			fail("%s: --%s does not work with %s", command->name, given[i]->name, with);
}

static char **one(const struct command *command, char **at)
{
	const char *argument = *at, *text;
	const struct opt *opt;
	size_t length;

	if (argument[1] == '-') {
		length = strcspn(argument + 2, "=");
		opt = find(command, argument + 2, length, 0);
		text = argument[2 + length] ? argument + 3 + length : NULL;
	} else {
		opt = find(command, NULL, 0, argument[1]);
		text = argument[2] ? argument + 2 : NULL;
	}
	if (!opt)
		fail("%s: unknown option %s; see apic-timer %s --help", command->name,
		     argument, command->name);
	if (opt->kind == OPT_IS_FLAG) {
		if (text)
			fail("%s: --%s takes no value", command->name, opt->name);
	} else if (!text) {
		text = *++at;
		if (!text)
			fail("%s: --%s needs a value: %s", command->name, opt->name, opt->arg);
	}
	set(command, opt, text);
	return at + 1;
}

/*
 * Parse the arguments that follow a command's name, up to a NULL. Arguments
 * after "--" are no options. If there may be any number of operands, neither are
 * those after the first one: the operands are then a command with options of its
 * own. Return: the operands; NULL when only help was asked for.
 */
char **opt_parse(const struct command *command, char **arguments, int *count)
{
	char **operands = arguments, **at = arguments;
	bool over = false;

	*count = 0;
	while (*at) {
		if (!over && !strcmp(*at, "--")) {
			over = true;
			at++;
		} else if (!over && at[0][0] == '-' && at[0][1]) {
			at = one(command, at);
		} else {
			operands[(*count)++] = *at++;
			over |= command->most < 0;
		}
	}
	operands[*count] = NULL;
	if (help) {
		opt_help(command);
		return NULL;
	}
	if (*count < command->least)
		fail("%s: %s is missing; see apic-timer %s --help", command->name,
		     command->operands, command->name);
	if (command->most >= 0 && *count > command->most)
		fail("%s: unexpected argument \"%s\"; see apic-timer %s --help", command->name,
		     operands[command->most], command->name);
	return operands;
}
