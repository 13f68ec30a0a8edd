/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names in the module's trace events, statistics, parameters and files: all
 * that this program refers to.
 */
#ifndef WORDS_H
#define WORDS_H

#define MODULE_DIR	"/sys/module/apic_timer"
#define DEBUG_DIR	"/sys/kernel/debug/apic_timer"
#define CLOCK_DEBUG_DIR	"/sys/kernel/debug/apic_clock"
#define PARAMETER_DIR	MODULE_DIR "/parameters"
#define EVENT_SYSTEM	"apic_timer"

/* Trace events; the class of timer events has timer=, function=, expires= */
#define EVENT_ADD	"apic_timer_add"
#define EVENT_MOD	"apic_timer_mod"
#define EVENT_DEL	"apic_timer_del"
#define EVENT_CANCEL	"apic_timer_cancel"
#define EVENT_MIGRATE	"apic_timer_migrate"
#define EVENT_PROGRAM	"apic_timer_program"
#define EVENT_DEFER	"apic_timer_defer"
#define EVENT_HW_DEAD	"apic_timer_hw_dead"
#define EVENT_THROTTLE	"apic_timer_throttle"
#define EVENT_ENTRY	"apic_timer_expire_entry"
#define EVENT_EXIT	"apic_timer_expire_exit"
#define EVENT_RECEIPT	"apic_timer_receipt"

/* Fields of the receipt, of the deferral and of the programming, as printed */
#define FIELD_CPU_STATE	"cpu_state"
#define FIELD_DEFERRED	"deferred"
#define FIELD_DELTA	"delta"
/* The field of the receipt that a histogram is keyed by */
#define KEY_CPU_STATE	"cpu_state"

/* Statistics */
#define STAT_ADDED	"added"
#define STAT_EXPIRED	"expired"
#define STAT_LATE	"expired_late"
#define STAT_SKIPPED	"skipped"
#define STAT_HW_DEAD	"hw_dead"
#define STAT_THROTTLED	"throttled"
#define STAT_DEFERRED	"deferred"

/* Parameters, and the name of the deferral window in the file "lead" */
#define PARAM_LATE	"late_ns"
#define PARAM_DEFER	"defer_ns"
#define PARAM_BUDGET	"spin_budget_ns"
#define PARAM_BUSY	"busy_us"
#define PARAM_WATCHDOG	"watchdog_ms"
#define LEAD_DEFER	"defer"

#endif
