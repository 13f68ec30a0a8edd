/* SPDX-License-Identifier: GPL-2.0 */
/* The subcommands, one file each. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "opt.h"

extern const struct command status_command, hist_command, top_command, trace_command;
extern const struct command doctor_command, clocks_command, cycles_command, memory_command;
extern const struct command accuracy_command, chain_command, pio_command, bench_command;
extern const struct command report_command;

#endif
