/* SPDX-License-Identifier: GPL-2.0 */
/* The sections of a page, for each machine. */
#ifndef PAGE_SECTIONS_H
#define PAGE_SECTIONS_H

#include "report.h"

void draw_machine(const struct report_machine *machine);
void draw_loops(const struct report_machine *machine);
void draw_timers(const struct report_machine *machine);
void draw_searches(const struct report_machine *machine);
void draw_cycles(const struct report_machine *machine);
void draw_memory(const struct report_machine *machine);
void draw_chain(const struct report_machine *machine);
void draw_ports(const struct report_machine *machine);
void draw_clocks(const struct report_machine *machine);
/* The section of the benchmark, which ran on one machine */
void draw_bench(const struct value *found);

#endif
