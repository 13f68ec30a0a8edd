/* SPDX-License-Identifier: GPL-2.0 */
/* The subcommands, one file each. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "opt.h"

extern const struct command status_command;
extern const struct command hist_command;
extern const struct command top_command;
extern const struct command trace_command;
extern const struct command clocks_command;
extern const struct command cycles_command;
extern const struct command memory_command;

#endif
