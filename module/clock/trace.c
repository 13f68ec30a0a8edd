// SPDX-License-Identifier: GPL-2.0
/* The trace events. */
#define CREATE_TRACE_POINTS
#include <trace/events/apic_clock.h>
