// SPDX-License-Identifier: GPL-2.0
/*
 * Convert the user's table to one that can be executed.
 */
#include <linux/apic_calendar.h>
#include <linux/apic_struct.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/nospec.h>
#include <linux/rtmutex.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/uaccess.h>

#include "calendar.h"
#include "table.h"

/* Size of the structure's first version. */
#define LOAD_SIZE_VER0	64

static_assert(sizeof(struct apic_calendar_load) == LOAD_SIZE_VER0);
static_assert(offsetof(struct apic_calendar_load, units) == 16);
static_assert(offsetof(struct apic_calendar_load, table) == 48);
static_assert(sizeof(struct apic_calendar_unit) == 96);
static_assert(sizeof(struct apic_calendar_entry) == 24);

static unsigned int gap_ns = CALENDAR_GAP_USER;

static int set_gap(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1000, NSEC_PER_MSEC);
}

static const struct kernel_param_ops gap_ops = {
	.set = set_gap, .get = param_get_uint,
};

module_param_cb(gap_ns, &gap_ops, &gap_ns, 0644);
MODULE_PARM_DESC(gap_ns, "minimum gap before a window of a thread, in ns (1000 to 1000000; applies to tables loaded later)");

static bool has_cpu(u32 cpu)
{
	struct apic_timer_info info;

	if (cpu >= nr_cpu_ids)
		return false;
	cpu = array_index_nospec(cpu, nr_cpu_ids);
	return cpu_online(cpu) && !apic_timer_query(cpu, &info);
}

/**
 * calendar_limits_ns() - get the limits of a table
 * @limits:	filled in, in ns
 *
 * Context: Any.
 */
void calendar_limits_ns(struct calendar_limits *limits)
{
	*limits = (struct calendar_limits) {
		.major_min = CALENDAR_MAJOR_MIN,
		.major_max = CALENDAR_MAJOR_MAX,
		.budget_min = CALENDAR_BUDGET_MIN,
		.gap_user = READ_ONCE(gap_ns),
		.gap_function = CALENDAR_GAP_FUNCTION,
		.share = CALENDAR_SHARE,
		.has_cpu = has_cpu,
		.has_function = calendar_function_known,
	};
}

static void limits_of(struct calendar_limits *limits, bool cycles)
{
	calendar_limits_ns(limits);
	if (!cycles)
		return;
	limits->major_min = apic_timer_ns_to_tsc(limits->major_min);
	limits->major_max = apic_timer_ns_to_tsc(limits->major_max);
	limits->budget_min = apic_timer_ns_to_tsc(limits->budget_min);
	limits->gap_user = apic_timer_ns_to_tsc(limits->gap_user);
	limits->gap_function = apic_timer_ns_to_tsc(limits->gap_function);
}

static struct calendar_cpu *cpu_of(struct calendar *calendar, u32 cpu)
{
	u32 i;

	for (i = 0; i < calendar->n_cpus; i++) {
		if (calendar->cpus[i].cpu == cpu)
			return &calendar->cpus[i];
	}
	i = calendar->n_cpus++;
	calendar->cpus[i].calendar = calendar;
	calendar->cpus[i].cpu = cpu;
	calendar->cpus[i].slot = i;
	calendar_cpu_init(&calendar->cpus[i]);
	return &calendar->cpus[i];
}

static int make_unit(struct calendar *calendar, u32 n, const struct apic_calendar_unit *def)
{
	struct calendar_unit *unit = &calendar->units[n];

	unit->calendar = calendar;
	unit->cpu = cpu_of(calendar, def->cpu);
	unit->number = n;
	unit->def = *def;
	INIT_LIST_HEAD(&unit->over);
	rt_mutex_init(&unit->scheduling);
	unit->count.slack_min = U64_MAX;
	unit->reported = APIC_CALENDAR_NONE;
	calendar_learn_init(unit);
	if (def->kind == APIC_CALENDAR_USER)
		return 0;
	unit->function = calendar_function_get(def->function, def->kind);
	/* The function was registered when the table was checked. */
	if (!unit->function)
		return -ENOENT;
	return def->kind == APIC_CALENDAR_THREAD ? calendar_thread_start(unit) : 0;
}

/* The units' memory stays: parked threads may still read it. */
static void end_units(struct calendar *calendar)
{
	struct calendar_unit *unit;
	u32 i;

	/* The keeper first: it may be stopping the calendar, which wakes threads. */
	calendar_keeper_stop(calendar);
	for (i = 0; i < calendar->n_units; i++) {
		unit = &calendar->units[i];
		if (unit->thread) {
			kthread_stop(unit->thread);
			put_task_struct(unit->thread);
			unit->thread = NULL;
			unit->task = NULL;
		}
	}
	/*
	 * Until the keeper had turned all CPUs off, the thread of a unit may have armed a timer
	 * again after it was deleted, and its handler may have called a function:
	 *
	 *	keeper: stop()		thread: calendar_cpu_free()	calendar_stop_sync()
	 *	  running = false
	 *				  apic_timer_pending()
	 *								  del_apic_timer_sync()
	 *				  mod_apic_timer()
	 *	  stop_cpu()
	 */
	calendar_del_timers(calendar);
	for (i = 0; i < calendar->n_units; i++) {
		calendar_function_put(calendar->units[i].function);
		calendar->units[i].function = NULL;
	}
}

static void free_units(struct calendar *calendar)
{
	end_units(calendar);
	kvfree(calendar->units);
	kvfree(calendar->cpus);
	calendar->units = NULL;
	calendar->cpus = NULL;
	calendar->n_units = 0;
	calendar->n_cpus = 0;
}

static int make_units(struct calendar *calendar, const struct apic_calendar_unit *defs,
		      u32 n_units)
{
	int ret = -ENOMEM;
	u32 i;

	calendar->units = kvcalloc(n_units, sizeof(*calendar->units), GFP_KERNEL_ACCOUNT);
	calendar->cpus = kvcalloc(n_units, sizeof(*calendar->cpus), GFP_KERNEL_ACCOUNT);
	if (calendar->units && calendar->cpus)
		ret = calendar_keeper_start(calendar);
	for (i = 0; !ret && i < n_units; i++) {
		ret = make_unit(calendar, i, &defs[i]);
		calendar->n_units = i + 1;
	}
	if (ret)
		free_units(calendar);
	return ret;
}

static void free_table(struct calendar_table *table)
{
	if (!table)
		return;
	kvfree(table->windows);
	kvfree(table->slot);
	kfree(table);
}

/* Sort entries by CPU; those of one CPU are already in order. */
static struct calendar_table *make_table(struct calendar *calendar,
					 const struct apic_calendar_load *a,
					 const struct apic_calendar_entry *entries)
{
	struct calendar_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	struct calendar_window *window;
	u32 slot, i, n = 0;
	u64 end;

	if (!table)
		return NULL;
	table->slot = kvcalloc(calendar->n_cpus + 1, sizeof(*table->slot), GFP_KERNEL_ACCOUNT);
	table->windows = kvcalloc(a->n_entries, sizeof(*table->windows), GFP_KERNEL_ACCOUNT);
	if (!table->slot || !table->windows) {
		free_table(table);
		return NULL;
	}
	table->cycles = a->flags & APIC_CALENDAR_CYCLES;
	table->major = a->major;
	table->max_overruns = a->max_overruns;
	table->degraded = a->degraded;
	table->n_slots = calendar->n_cpus;
	for (slot = 0; slot < calendar->n_cpus; slot++) {
		for (i = 0; i < a->n_entries; i++) {
			if (calendar->units[entries[i].unit].cpu->slot != slot)
				continue;
			window = &table->windows[n++];
			end = entries[i].offset + entries[i].budget;
			window->offset = entries[i].offset;
			if (!table->cycles) {
				window->offset = apic_timer_ns_to_tsc(window->offset);
				end = apic_timer_ns_to_tsc(end);
			}
			window->budget = end - window->offset;
			window->unit = entries[i].unit;
			window->entry = i;
		}
		table->slot[slot + 1] = n;
	}
	return table;
}

static int check(struct calendar *calendar, struct apic_calendar_load *a,
		 const struct apic_calendar_unit *defs,
		 const struct apic_calendar_entry *entries, u32 n_units)
{
	struct calendar_verdict verdict = {
		.bad = APIC_CALENDAR_NONE, .other = APIC_CALENDAR_NONE,
	};
	struct calendar_limits limits;
	struct calendar_seen *seen;

	limits_of(&limits, a->flags & APIC_CALENDAR_CYCLES);
	if (!calendar->n_units)
		verdict = calendar_check_units(&limits, defs, n_units);
	if (!verdict.reason) {
		seen = kcalloc(APIC_CALENDAR_UNITS, sizeof(*seen), GFP_KERNEL_ACCOUNT);
		if (!seen)
			return -ENOMEM;
		verdict = calendar_check_table(&limits, defs, n_units, a->major, entries,
					       a->n_entries, seen);
		kfree(seen);
	}
	if (!verdict.reason &&
	    (a->max_overruns ? a->degraded >= calendar->n_tables : a->degraded))
		verdict.reason = APIC_CALENDAR_BAD_DEGRADED;
	a->reason = verdict.reason;
	a->bad = verdict.bad;
	a->other = verdict.other;
	return verdict.reason ? -EINVAL : 0;
}

/* Return the units as they were defined, to check another table. */
static struct apic_calendar_unit *defined(struct calendar *calendar)
{
	struct apic_calendar_unit *defs;
	u32 i;

	defs = kvcalloc(calendar->n_units, sizeof(*defs), GFP_KERNEL_ACCOUNT);
	for (i = 0; defs && i < calendar->n_units; i++)
		defs[i] = calendar->units[i].def;
	return defs ?: ERR_PTR(-ENOMEM);
}

static int add(struct calendar *calendar, struct apic_calendar_load *a,
	       const struct apic_calendar_unit *units, const struct apic_calendar_entry *entries)
	__must_hold(&calendar->loading)
{
	bool first = !calendar->n_units;
	struct apic_calendar_unit *defs = NULL;
	struct calendar_table *table;
	u32 n_units;
	int ret;

	lockdep_assert_held(&calendar->loading);
	if (calendar->n_tables == APIC_CALENDAR_TABLES)
		return -ENOSPC;
	if (first) {
		n_units = a->n_units;
	} else {
		if (a->n_units || a->units)
			return -EINVAL;
		n_units = calendar->n_units;
		defs = defined(calendar);
		if (IS_ERR(defs))
			return PTR_ERR(defs);
		units = defs;
	}
	ret = check(calendar, a, units, entries, n_units);
	if (!ret && first)
		ret = make_units(calendar, units, n_units);
	kvfree(defs);
	if (ret)
		return ret;
	table = make_table(calendar, a, entries);
	if (!table) {
		if (first)
			free_units(calendar);
		return -ENOMEM;
	}
	table->number = calendar->n_tables;
	a->table = table->number;
	calendar->tables[table->number] = table;
	smp_store_release(&calendar->n_tables, table->number + 1); /* calendar_switch() */
	return 0;
}

/*
 * Copy an array of the user's into memory that is charged to the user. Hold no lock: a page may be
 * missing for any time, and the process that provides it may wait for the lock.
 */
static void *copy(u64 from, u32 n, size_t size)
{
	void *to = kvmalloc_array(n, size, GFP_KERNEL_ACCOUNT);

	if (!to)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(to, u64_to_user_ptr(from), array_size(n, size))) {
		kvfree(to);
		return ERR_PTR(-EFAULT);
	}
	return to;
}

static int load(struct calendar *calendar, struct apic_calendar_load *a)
{
	struct apic_calendar_unit *units = NULL;
	struct apic_calendar_entry *entries;
	int ret;

	entries = copy(a->entries, a->n_entries, sizeof(*entries));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	if (a->n_units) {
		units = copy(a->units, a->n_units, sizeof(*units));
		if (IS_ERR(units)) {
			ret = PTR_ERR(units);
			goto free_entries;
		}
	}
	if (mutex_lock_interruptible(&calendar->loading)) {
		ret = -ERESTARTSYS;
		goto free_units;
	}
	/* Another task may have loaded the first table meanwhile. */
	ret = !a->n_units && !calendar->n_units ? -EINVAL : add(calendar, a, units, entries);
	mutex_unlock(&calendar->loading);
free_units:
	kvfree(units);
free_entries:
	kvfree(entries);
	return ret;
}

/**
 * calendar_load() - APIC_CALENDAR_LOAD
 * @calendar:	the calendar
 * @argument:	the user's struct apic_calendar_load
 *
 * Context: Task. Sleeps.
 * Return: 0, or an error: see &struct apic_calendar_load.
 */
long calendar_load(struct calendar *calendar, void __user *argument)
{
	struct apic_calendar_load a;
	u32 usize;
	int ret;

	ret = apic_struct_in(&a, sizeof(a), LOAD_SIZE_VER0, argument, &usize);
	if (ret)
		return ret;
	a.table = APIC_CALENDAR_NONE;
	a.reason = APIC_CALENDAR_OK;
	a.bad = APIC_CALENDAR_NONE;
	a.other = APIC_CALENDAR_NONE;
	if (a.flags & ~APIC_CALENDAR_CYCLES) {
		ret = -EINVAL;
	} else if (!a.n_entries || a.n_entries > APIC_CALENDAR_ENTRIES ||
		   a.n_units > APIC_CALENDAR_UNITS ||
		   (!a.n_units && !READ_ONCE(calendar->n_units))) {
		a.reason = APIC_CALENDAR_BAD_COUNT;
		ret = -EINVAL;
	} else {
		ret = load(calendar, &a);
	}
	return apic_struct_out(argument, usize, &a, sizeof(a)) ?: ret;
}

/**
 * calendar_unload() - end the units and free the tables, but not the units' memory
 * @calendar:	the calendar, which does not run
 *
 * Context: Task. Sleeps. The file has no users.
 */
void calendar_unload(struct calendar *calendar)
{
	u32 i;

	end_units(calendar);
	for (i = 0; i < calendar->n_tables; i++)
		free_table(calendar->tables[i]);
}
