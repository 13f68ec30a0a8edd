// SPDX-License-Identifier: GPL-2.0
/*
 * Completion for bash and zsh, from the table of options.
 */
#include <stdio.h>
#include <string.h>

#include "opt.h"
#include "say.h"

/* Print words that are between bars with blanks in between. */
static void print_words(const char *words)
{
	for (; *words; words++)
		putchar(*words == '|' ? ' ' : *words);
}

static void bash_value(const struct command *command, const struct opt *opt)
{
	printf("\t%s,--%s", command->name, opt->name);
	if (opt->letter)
		printf("|%s,-%c", command->name, opt->letter);
	printf(")\n\t\t");
	switch (opt->kind) {
	case OPT_IS_CHOICE:
		printf("COMPREPLY=($(compgen -W \"");
		print_words(opt->arg);
		printf("\" -- \"$cur\"))\n\t\t");
		break;
	case OPT_IS_FILE:
		printf("COMPREPLY=($(compgen -f -- \"$cur\"))\n\t\t");
		break;
	case OPT_IS_DIRECTORY:
		printf("COMPREPLY=($(compgen -d -- \"$cur\"))\n\t\t");
		break;
	default:	/* a number or a text: nothing to offer */
		break;
	}
	printf("return\n\t\t;;\n");
}

static void bash(void)
{
	const struct command * const *command;
	const struct opt *opt;

	printf("# bash completion for apic-timer, made by apic-timer --completion bash\n"
	       "_apic_timer()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tlocal command=${COMP_WORDS[1]}\n\n\tCOMPREPLY=()\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	for (command = commands; *command; command++)
		printf("%s ", (*command)->name);
	printf("--help --version --completion\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
	       "\tcase $command,$prev in\n"
	       "\t--completion,--completion)\n"
	       "\t\tCOMPREPLY=($(compgen -W \"bash zsh\" -- \"$cur\"))\n\t\treturn\n\t\t;;\n");
	for (command = commands; *command; command++)
		for (opt = (*command)->options; opt->name; opt++)
			if (opt->kind != OPT_IS_FLAG)
				bash_value(*command, opt);
	printf("\tesac\n\tcase $command in\n");
	for (command = commands; *command; command++) {
		printf("\t%s) COMPREPLY=($(compgen -W \"", (*command)->name);
		for (opt = (*command)->options; opt->name; opt++)
			printf("--%s ", opt->name);
		for (opt = opt_common; opt->name; opt++)
			printf("--%s%s", opt->name, opt[1].name ? " " : "");
		printf("\" -- \"$cur\")) ;;\n");
	}
	printf("\tesac\n}\ncomplete -F _apic_timer apic-timer\n");
}

/* Print a text within single quotes and zsh's brackets. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			printf("'\\''");
		else if (strchr("[]:\\", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void zsh_option(const struct opt *opt)
{
	printf("\t\t'");
	if (opt->letter)
		printf("(-%c --%s)'{-%c,--%s", opt->letter, opt->name, opt->letter, opt->name);
	else
		printf("--%s", opt->name);
	if (opt->kind != OPT_IS_FLAG)
		printf("=");
	printf("%s[", opt->letter ? "}'" : "");
	zsh_text(opt->help);
	printf("]");
	switch (opt->kind) {
	case OPT_IS_FLAG:
		break;
	case OPT_IS_NUMBER:
	case OPT_IS_TEXT:
		printf(":%s: ", opt->arg);
		break;
	case OPT_IS_CHOICE:
		printf(":%s:(", opt->name);
		print_words(opt->arg);
		printf(")");
		break;
	case OPT_IS_FILE:
		printf(":%s:_files", opt->arg);
		break;
	case OPT_IS_DIRECTORY:
		printf(":%s:_files -/", opt->arg);
		break;
	}
	printf("' \\\n");
}

static void zsh(void)
{
	const struct command * const *command;
	const struct opt *opt;

	printf("#compdef apic-timer\n"
	       "# zsh completion for apic-timer, made by apic-timer --completion zsh\n"
	       "local -a commands\ncommands=(\n");
	for (command = commands; *command; command++) {
		printf("\t'%s:", (*command)->name);
		zsh_text((*command)->summary);
		printf("'\n");
	}
	printf(")\nif (( CURRENT == 2 )); then\n"
	       "\t_describe command commands -- '(--help --version --completion)'\n"
	       "\treturn\nfi\nlocal command=$words[2]\nshift words\n(( CURRENT-- ))\n"
	       "case $command in\n--completion)\n\t_values shell bash zsh\n\t;;\n");
	for (command = commands; *command; command++) {
		printf("%s)\n\t_arguments \\\n", (*command)->name);
		for (opt = (*command)->options; opt->name; opt++)
			zsh_option(opt);
		for (opt = opt_common; opt->name; opt++)
			zsh_option(opt);
		printf("\t\t'*:%s: '\n\t;;\n",
		       (*command)->operands ? (*command)->operands : "no more");
	}
	printf("esac\n");
}

int opt_completion(const char *shell)
{
	if (shell && !strcmp(shell, "bash"))
		bash();
	else if (shell && !strcmp(shell, "zsh"))
		zsh();
	else
		fail("--completion takes bash or zsh");
	return 0;
}
