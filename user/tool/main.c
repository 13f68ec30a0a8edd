// SPDX-License-Identifier: GPL-2.0
/*
 * apic-timer: see, trust and tune the timers of the module apic_timer.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apic_version.h"
#include "commands.h"
#include "opt.h"
#include "say.h"

const struct command * const commands[] = {
	&status_command, &hist_command, &top_command, &trace_command, &doctor_command,
	&clocks_command, &cycles_command, &memory_command, &accuracy_command, &chain_command,
	&pio_command, &bench_command, &report_command, NULL
};

/* Return: the exit status; that of a failure if the output could not be written. */
static int end(int status)
{
	progress_end();
	if (fflush(stdout) || ferror(stdout))
		fail("can't write to standard output");
	return status;
}

/*
 * Where a standard stream is closed, the next file opened would take its place, and get what is
 * written to it. Nothing can be written to this one, so that a missing output is still noticed.
 */
static void fill_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
}

int main(int count, char **arguments)
{
	const struct command *command;
	char **operands;
	int number;

	fill_streams();
	/* If the parent ignores SIGCHLD, children could not be waited for. */
	signal(SIGCHLD, SIG_DFL);
	if (count < 2) {
		opt_usage();
		return 2;
	}
	if (!strcmp(arguments[1], "--help") || !strcmp(arguments[1], "-h") ||
	    !strcmp(arguments[1], "help")) {
		opt_usage();
		return end(0);
	}
	if (!strcmp(arguments[1], "--version")) {
		printf("apic-timer %s\n", APIC_TIMER_VERSION);
		return end(0);
	}
	if (!strcmp(arguments[1], "--completion"))
		return end(opt_completion(arguments[2]));
	command = opt_command(arguments[1]);
	if (!command)
		fail("unknown command %s; see apic-timer --help", arguments[1]);
	operands = opt_parse(command, arguments + 2, &number);
	return end(operands ? command->run(number, operands) : 0);
}
