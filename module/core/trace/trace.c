// SPDX-License-Identifier: GPL-2.0
/*
 * The trace events, which every room may emit.
 */
#define CREATE_TRACE_POINTS
#include <trace/events/apic_timer.h>
