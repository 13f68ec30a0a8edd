// SPDX-License-Identifier: GPL-2.0
/* The checks of doctor, each for one reason for late handlers. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apic_version.h"
#include "doctor.h"
#include "files.h"
#include "module.h"
#include "native.h"
#include "say.h"
#include "words.h"

#define CPU_DIR		"/sys/devices/system/cpu"
#define CLOCK_DIR	"/sys/devices/system/clocksource/clocksource0"

/* Minimum length of a gap: longer than an interrupt takes. */
#define GAP_US		50
/* TAI less UTC since the leap second of 2016, s */
#define TAI_UTC		37
/* Part of the time, in 1/100 %, that another guest may take */
#define STEAL_MOST	10

void finds(struct finding *finding, enum level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	free(finding->text);
	if (vasprintf(&finding->text, format, arguments) < 0)
		fail("out of memory");
	va_end(arguments);
	finding->level = level;
}

static void costs(struct finding *finding, int64_t cycles, const char *of)
{
	finding->cost = cycles;
	finding->cost_of = of;
}

static int64_t ns_to_cycles(double ns)
{
	unsigned long khz = patient.readable ? module_tsc_khz() : 0;
	double cycles = ns * (khz ? (double)khz : (double)native.khz) / 1e6;

	/* The content of a file may be anything. */
	return cycles > -1e18 && cycles < 1e18 ? (int64_t)cycles : 0;
}

/* Get by how much one time is longer than the other, if it is */
static int64_t difference(int64_t longer, int64_t shorter)
{
	return longer > shorter && shorter >= 0 ? longer - shorter : 0;
}

static bool virtual_machine(void)
{
	return patient.measured && *native.hypervisor;
}

static void look_module(struct finding *f)
{
	f->read = MODULE_DIR;
	if (!patient.loaded) {
		finds(f, LEVEL_UNKNOWN, "the module is not loaded: only the machine is checked");
		f->remedy = "sudo modprobe apic_timer";
	} else if (!patient.readable) {
		finds(f, LEVEL_UNKNOWN, "the module's files in debugfs can't be read");
		f->remedy = "run it as root, with debugfs mounted";
	} else if (module_other_version()) {
		finds(f, LEVEL_WARN,
		      "version mismatch: the module is %s, this program %s", module_other_version(),
		      APIC_TIMER_VERSION);
		f->remedy = "install both from one tree";
	} else {
		finds(f, LEVEL_OK,
		      "version " APIC_TIMER_VERSION ", default mode %s", patient.info.mode);
	}
}

/*
 * Get the highest bucket of positive errors: "1024..2047 0 3"; -1: none, as after a reset, or
 * the kernel is locked down and lets no writable file be read.
 */
static int64_t worst_error(void)
{
	char *text = files_read(DEBUG_DIR "/errors"), *line;
	int64_t low, high, worst = -1;

	for (line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
		if (*line != '-' && sscanf(line, "%" SCNd64 "..%" SCNd64, &low, &high) == 2 &&
		    high > worst)
			worst = high;
	free(text);
	return worst;
}

static void look_source(struct finding *f)
{
	int cpu;

	f->read = DEBUG_DIR "/info";
	if (!patient.readable)
		return;
	for (cpu = 0; cpu < patient.info.cpus; cpu++) {
		if (!patient.info.cpu[cpu].serves ||
		    strcmp(patient.info.cpu[cpu].source, "hrtimer"))
			continue;
		finds(f, LEVEL_NOTE, "timers run on hrtimers, and are no more exact than those");
		costs(f, worst_error(), "upper bound of the worst error so far");
		f->remedy = "the kernel log says why there is no better source";
		return;
	}
	finds(f, LEVEL_OK, "timers run on the LAPIC timer");
}

static void look_owner(struct finding *f)
{
	int64_t dead = patient.readable ? module_stat(&patient.stats, STAT_HW_DEAD, -1) : -1;

	f->read = DEBUG_DIR "/stats";
	if (dead < 0)
		return;
	if (!dead) {
		finds(f, LEVEL_OK, "no other code has stopped the LAPIC timer");
		return;
	}
	finds(f, LEVEL_WARN, "other code has stopped the LAPIC timer %s times", commas(dead));
	costs(f, ns_to_cycles(module_parameter(PARAM_WATCHDOG, 100) * 1e6),
	      "maximum time until the watchdog restarts it");
	f->remedy = "find the code that writes the LAPIC timer's registers: docs/DEBUGGING.md";
}

/* Return: true if a list of words contains a word. */
static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	const char *at;

	for (at = words; at && (at = strstr(at, word)); at += length)
		if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

static void look_tsc_unstable(struct finding *f)
{
	char *current = files_read(CLOCK_DIR "/current_clocksource");
	char *available = files_read(CLOCK_DIR "/available_clocksource");
	bool unstable = false;
	int cpu;

	f->read = CLOCK_DIR;
	for (cpu = 0; patient.readable && cpu < patient.info.cpus; cpu++)
		if (patient.info.cpu[cpu].serves && !patient.info.cpu[cpu].stable)
			unstable = true;
	if (unstable || (available && !has_word(available, "tsc"))) {
		finds(f, LEVEL_WARN,
		      "the kernel does not trust the TSC; its clocksource is %s",
		      current ? current : "unknown");
		if (patient.measured && native.clock)
			costs(f, native.clock, "one read of that clocksource");
		f->remedy = "the kernel log says why: dmesg | grep -i tsc";
	} else if (current) {
		finds(f, LEVEL_OK, "the kernel trusts the TSC; its clocksource is %s", current);
	}
	free(current);
	free(available);
}

static void look_tsc_invariant(struct finding *f)
{
	f->read = "CPUID 80000007h";
	if (!patient.measured)
		return;
	if (native.invariant) {
		finds(f, LEVEL_OK, "the TSC is invariant");
		return;
	}
	finds(f, LEVEL_NOTE, "the TSC may change its rate, or stop in deep idle states");
	f->remedy = "keep the CPU's frequency fixed and deep idle states off";
}

#define CLOCK_MODULE	"/sys/module/apic_clock"
#define VERDICT		CLOCK_DEBUG_DIR "/verdict"

/* Return: the rest of the line of a text that begins with a word and a blank, or NULL. */
static char *line_after(const char *text, const char *word)
{
	size_t length = strlen(word);
	const char *at, *end;

	for (at = text; at && *at; at = *end ? end + 1 : NULL) {
		end = at + strcspn(at, "\n");
		if (!strncmp(at, word, length) && at[length] == ' ')
			return format_text("%.*s", (int)(end - at - length - 1), at + length + 1);
	}
	return NULL;
}

/* apic_clock compares the TSCs of all CPUs with each other, which no process can do. */
static void look_tsc_verdict(struct finding *f)
{
	char *text = files_read(VERDICT), *verdict = line_after(text, "verdict");
	char *reason = line_after(text, "reason"), word[16] = "";
	const char *within;
	int64_t cycles = -1;

	f->read = VERDICT;
	if (!files_exist(CLOCK_MODULE)) {
		finds(f, LEVEL_UNKNOWN,
		      "apic_clock is not loaded: the CPUs' TSCs are not compared with each other");
		f->remedy = "sudo modprobe apic_clock";
		goto out;
	}
	if (!verdict || !reason || sscanf(verdict, "%15[a-z]", word) != 1) {
		finds(f, LEVEL_UNKNOWN, "apic_clock's verdict on the TSC can't be read");
		f->remedy = "run it as root, with debugfs mounted";
		goto out;
	}
	within = strstr(verdict, "within ");
	if (within && (sscanf(within, "within %" SCNd64, &cycles) != 1 || cycles < 0))
		cycles = -1;
	if (!strcmp(word, "exact")) {
		finds(f, LEVEL_OK, "the CPUs' TSCs are the same: %s", reason);
	} else if (!strcmp(word, "corrected")) {
		finds(f, LEVEL_NOTE, "the CPUs' TSCs differ: %s", reason);
		f->remedy = "groups correct for it with APIC_CLOCK_GROUP_CORRECT";
	} else if (!strcmp(word, "bounded")) {
		finds(f, LEVEL_NOTE,
		      "the CPUs' TSCs are known as of the last measurement only: %s", reason);
		f->remedy = "none needed where a deadline is used on the CPU that it was taken on";
	} else {
		finds(f, LEVEL_WARN, "a TSC value of one CPU means nothing on another: %s", reason);
		f->remedy = "use deadlines only on the CPU that they were taken on; "
			    "for the reason: dmesg | grep apic_clock";
	}
	costs(f, cycles, "maximum difference between two CPUs' TSCs");
out:
	free(text);
	free(verdict);
	free(reason);
}

/* Check whether all numbers of a list are equal. */
static bool all_equal(const char *list)
{
	size_t length = strcspn(list, ",");
	const char *at;

	for (at = list; (at = strchr(at, ',')); ) {
		at += strlen(", ");
		if (strcspn(at, ",") != length || strncmp(at, list, length))
			return false;
	}
	return true;
}

static void look_tsc_step(struct finding *f)
{
	bool same = all_equal(native.residues);

	f->read = "RDTSC";
	if (!patient.measured)
		return;
	if (native.step < 2) {
		finds(f, LEVEL_OK, "the TSC counts each cycle");
		return;
	}
	finds(f, LEVEL_NOTE,
	      "the TSC counts in steps of %" PRId64 " cycles, %s %.*s %s: no error is known more exactly",
	      native.step, same ? "residue" : "residues",
	      same ? (int)strcspn(native.residues, ",") : -1, native.residues,
	      same ? "on all CPUs" : "by CPU");
	costs(f, native.step, "a step");
	f->remedy = "none: it is a property of the CPU";
}

static void look_tai(struct finding *f)
{
	f->read = "CLOCK_TAI, CLOCK_REALTIME";
	if (!patient.measured)
		return;
	if (native.tai) {
		finds(f, LEVEL_OK, "CLOCK_TAI is %" PRId64 " s ahead of CLOCK_REALTIME",
		      native.tai);
		return;
	}
	finds(f, LEVEL_NOTE,
	      "CLOCK_TAI equals CLOCK_REALTIME: the kernel does not know TAI's offset");
	costs(f, ns_to_cycles(TAI_UTC * 1e9), "difference between TAI and UTC");
	f->remedy = "ptp4l with phc2sys, or chrony with a leap second table, sets it";
}

/*
 * Read the kernel's flag, as the module does, not CPUID: the kernel also sets it for all of AMD's
 * CPUs from family 12h on, of which some do not report it (arch/x86/kernel/cpu/amd.c).
 */
static void look_arat(struct finding *f)
{
	char *text = files_read("/proc/cpuinfo"), *flags = text ? strstr(text, "\nflags") : NULL;

	f->read = "/proc/cpuinfo";
	if (!flags)
		goto out;
	flags++;
	flags[strcspn(flags, "\n")] = '\0';
	if (has_word(flags, "arat")) {
		finds(f, LEVEL_OK,
		      "the LAPIC timer runs in all idle states%s",
		      native.deadline ? ", and has TSC-deadline mode" : "");
		goto out;
	}
	finds(f, LEVEL_NOTE, "the LAPIC timer may stop in deep idle states");
	f->remedy = "boot with intel_idle.max_cstate=1 or processor.max_cstate=1";
out:
	free(text);
}

static void look_steal(struct finding *f)
{
	char *text = files_read("/proc/stat"), *line = text ? strstr(text, "cpu ") : NULL;
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal, sum, part;

	f->read = "/proc/stat";
	if (line && sscanf(line, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64, &user, &nice, &system, &idle,
			   &iowait, &irq, &softirq, &steal) == 8) {
		sum = user + nice + system + idle + iowait + irq + softirq + steal;
		part = sum ? (double)steal * 10000 / sum : 0;
		if (part <= STEAL_MOST) {
			finds(f, LEVEL_OK,
			      "the host took %u.%02u %% of the CPU time", (unsigned int)part / 100,
			      (unsigned int)part % 100);
		} else {
			finds(f, LEVEL_WARN,
			      "the host took %u.%02u %% of the CPU time since boot",
			      (unsigned int)part / 100, (unsigned int)part % 100);
			if (patient.measured)
				costs(f, native.gap, "longest gap during the check");
			f->remedy = "none in the guest: ask for a dedicated host CPU";
		}
	}
	free(text);
}

static void look_virtual(struct finding *f)
{
	f->read = "CPUID 40000000h";
	if (!patient.measured)
		return;
	if (!virtual_machine()) {
		finds(f, LEVEL_OK, "no hypervisor");
		return;
	}
	finds(f, LEVEL_NOTE,
	      "virtual machine of %s: programming the timer, and its interrupt, may cause VM exits",
	      native_hypervisor());
	costs(f, native.wake_awake >= 0 ? native.wake_awake : native.wake,
	      "median time to wake from a sleep");
	f->remedy = "pin the virtual CPU; the host controls idle states and frequency";
}

static void look_gaps(struct finding *f)
{
	int64_t bound = native.khz / 1000 * GAP_US;

	f->read = "RDTSC, for 100 ms per CPU";
	if (!patient.measured)
		return;
	if (native.gap <= bound) {
		finds(f, LEVEL_OK, "no gap longer than %d us", GAP_US);
		costs(f, native.gap, "longest gap");
		return;
	}
	finds(f, virtual_machine() ? LEVEL_NOTE : LEVEL_WARN,
	      "CPU %" PRId64 " stalled for %s cycles while no other task ran: %s",
	      native.gap_cpu, commas(native.gap),
	      virtual_machine() ? "the host took the CPU" :
	      native.smis > 0 ? "an SMI" : "an SMI, or a long interrupt handler");
	costs(f, native.gap, "longest gap");
	f->remedy = virtual_machine() ? "ask for a dedicated host CPU" :
		    "firmware setup, if hwlatdetect shows that it is SMIs";
}

static void look_smi(struct finding *f)
{
	f->read = "MSR 34h";
	if (!patient.measured || native.smis < 0)
		return;
	if (!native.smis) {
		finds(f, LEVEL_OK, "no SMI during the search for gaps");
		return;
	}
	finds(f, LEVEL_WARN, "%s SMIs during the search for gaps", commas(native.smis));
	costs(f, native.gap, "longest gap");
	f->remedy = "firmware setup: legacy USB, power capping, memory scrubbing";
}

/* Get the longest wake-up time of a CPU's enabled idle states, us; -1: no states */
static long deepest(int cpu, char **name)
{
	long latency, most = -1;
	int state;

	for (state = 0; state < 16; state++) {
		latency = files_number(-1, CPU_DIR "/cpu%d/cpuidle/state%d/latency", cpu, state);
		if (latency < 0)
			break;
		if (files_number(0, CPU_DIR "/cpu%d/cpuidle/state%d/disable", cpu, state))
			continue;
		if (latency > most) {
			most = latency;
			free(*name);
			*name = files_read(CPU_DIR "/cpu%d/cpuidle/state%d/name", cpu, state);
		}
	}
	return most;
}

static void look_idle(struct finding *f)
{
	long budget = module_parameter(PARAM_BUDGET, 5000), most = -1, latency;
	char *request = files_read(PARAMETER_DIR "/latency_qos"), *name = NULL, *deep = NULL;
	int cpu;

	f->read = CPU_DIR "/cpu*/cpuidle";
	for (cpu = 0; cpu < CPUS; cpu++) {
		latency = deepest(cpu, &name);
		if (latency > most) {
			most = latency;
			free(deep);
			deep = name;
			name = NULL;
		}
	}
	if (most < 0) {
		finds(f, LEVEL_OK, "no idle states to choose from");
	} else if (most <= budget / 1000) {
		finds(f, LEVEL_OK,
		      "all idle states wake up within the spin budget: %s, %ld us", deep ? deep : "?",
		      most);
	} else if (request && !strcmp(request, "Y")) {
		finds(f, LEVEL_NOTE,
		      "idle state %s takes %ld us to wake from; the module keeps CPUs out of it before exact expiries",
		      deep ? deep : "?", most);
		f->remedy = "none needed for mode exact; --fix for raw and mean";
	} else {
		finds(f, LEVEL_WARN,
		      "idle state %s takes %ld us to wake from, more than the spin budget",
		      deep ? deep : "?", most);
		f->remedy = "set latency_qos=Y, or hold /dev/cpu_dma_latency (--fix does)";
	}
	if (f->level >= LEVEL_NOTE && patient.measured && native.wake_awake >= 0)
		costs(f, difference(native.wake, native.wake_awake),
		      "median delay that it adds to a sleep");
	free(request);
	free(name);
	free(deep);
}

static void look_governor(struct finding *f)
{
	char *governor, *other = NULL;
	int cpu, count = 0;

	f->read = CPU_DIR "/cpu*/cpufreq/scaling_governor";
	for (cpu = 0; cpu < CPUS; cpu++) {
		governor = files_read(CPU_DIR "/cpu%d/cpufreq/scaling_governor", cpu);
		if (!governor)
			continue;
		count++;
		if (strcmp(governor, "performance") && !other)
			other = governor;
		else
			free(governor);
	}
	if (!count) {
		finds(f, LEVEL_OK, "the kernel does not change the CPU's frequency");
	} else if (!other) {
		finds(f, LEVEL_OK, "governor performance");
	} else {
		finds(f, LEVEL_WARN,
		      "governor %s: after idle periods handlers run at a low frequency", other);
		if (patient.measured)
			costs(f, difference(native.core_slept, native.core_busy),
			      "extra time for 1,000 core cycles after a sleep");
		f->remedy = "cpupower frequency-set -g performance (--fix does)";
	}
	free(other);
}

#define PREEMPT	"/sys/kernel/debug/sched/preempt"

/* "none (voluntary) full": the mode in effect is in parentheses. */
static void look_preempt(struct finding *f)
{
	char *text = files_read(PREEMPT), *begin, *end;

	f->read = PREEMPT;
	begin = text ? strchr(text, '(') : NULL;
	end = begin ? strchr(begin, ')') : NULL;
	if (files_exist("/sys/kernel/realtime"))
		finds(f, LEVEL_OK, "woken threads preempt kernel code: PREEMPT_RT");
	if (!end)
		goto out;
	*end = '\0';
	begin++;
	if (strcmp(begin, "none") && strcmp(begin, "voluntary")) {
		finds(f, LEVEL_OK, "woken threads preempt kernel code: preempt=%s",
		      begin);
	} else if (files_exist("/sys/module/apic_timer_dev") ||
		   files_exist("/sys/module/apic_calendar")) {
		finds(f, LEVEL_NOTE,
		      "woken threads wait for other tasks' kernel code: preempt=%s",
		      begin);
		f->remedy = "boot with preempt=full";
	} else {
		finds(f, LEVEL_OK,
		      "preempt=%s delays threads, but not handlers",
		      begin);
	}
out:
	free(text);
}

#define ZONEINFO "/proc/zoneinfo"
/* mm/page_alloc.c: the shortest list of free pages, in batches */
#define BATCHES_MIN	4

/*
 * A CPU keeps a list of free pages for each zone. What is too much is freed to the zone, with
 * interrupts off for all that is freed in one go, and that may be the whole list:
 * mm/page_alloc.c, free_pcppages_bulk(). From 6.7 on, the kernel lengthens and shortens lists
 * unless their length is set.
 */
static void look_pages(struct finding *f)
{
	char *text = files_read(ZONEINFO), *at, *line;
	long fraction = files_number(-1, PAGES_FRACTION), most = 0, most_batch = 0, number;

	f->read = PAGES_FRACTION ", " ZONEINFO;
	if (files_exist("/sys/kernel/realtime")) {
		finds(f, LEVEL_OK, "the kernel frees pages with interrupts on: PREEMPT_RT");
		goto out;
	}
	for (at = text; (line = strsep(&at, "\n")); ) {
		if ((sscanf(line, " high: %ld", &number) == 1 ||
		     sscanf(line, " high_max: %ld", &number) == 1) && number > most)
			most = number;
		if (sscanf(line, " batch: %ld", &number) == 1 && number > most_batch)
			most_batch = number;
	}
	if (fraction < 0 || !most || !most_batch)
		goto out;
	finds(f, LEVEL_OK,
	      "a CPU frees up to %ld pages in one go, with interrupts off, as when a program ends",
	      most);
	if (fraction && most <= BATCHES_MIN * most_batch)
		goto out;
	f->level = LEVEL_NOTE;
	f->remedy = "sudo sysctl vm.percpu_pagelist_high_fraction=" PAGES_FEWEST " (--fix does)";
out:
	free(text);
}

#define MAY_COME "interrupts that may arrive on the timers' CPUs: %d"
#define MOVE "move them by smp_affinity_list (--fix does)"

/*
 * A driver may have a queue per CPU, whose interrupt only serves requests of that CPU. The
 * kernel does not let these be moved, and says so; any other interrupt can be moved.
 */
static void found_fixed(struct finding *f, const struct irq_counts *irqs)
{
	f->remedy = MOVE;
	if (irqs->fixed == irqs->all) {
		finds(f, LEVEL_NOTE, MAY_COME ", none of which can be moved", irqs->all);
		f->remedy = "none for a driver's queue, which serves its own CPU; "
			    "otherwise isolcpus=managed_irq";
	} else if (irqs->fixed) {
		finds(f, LEVEL_WARN, MAY_COME "; %d others can't be moved",
		      irqs->all - irqs->fixed, irqs->fixed);
	} else {
		finds(f, LEVEL_WARN, MAY_COME, irqs->all);
	}
}

/*
 * For a kernel that does not say so: an interrupt without other CPUs may belong to such a
 * queue; only trying to move it shows.
 */
static void found_only(struct finding *f, const struct irq_counts *irqs)
{
	f->remedy = MOVE;
	if (irqs->only == irqs->all) {
		finds(f, LEVEL_NOTE,
		      "interrupts that arrive only on the timers' CPUs: %d; a driver may have pinned them",
		      irqs->only);
		f->remedy = "--fix moves those that can be moved; "
			    "a driver's queue serves its own CPU";
	} else if (irqs->only) {
		finds(f, LEVEL_WARN,
		      MAY_COME "; %d more arrive only there, and a driver may have pinned them",
		      irqs->all - irqs->only, irqs->only);
	} else {
		finds(f, LEVEL_WARN, MAY_COME, irqs->all);
	}
}

static void look_irqs(struct finding *f)
{
	struct irq_counts irqs;

	f->read = "/proc/irq/*/smp_affinity_list";
	if (!patient.some_cpus) {
		finds(f, LEVEL_OK, "no CPUs are isolated; name the timers' CPUs by --cpus LIST");
		return;
	}
	if (!files_exist(CPU_DIR "/online"))
		return;
	if (!fix_count_irqs(&irqs)) {
		finds(f, LEVEL_NOTE, "no CPU is left for interrupts except the timers' CPUs");
		f->remedy = "keep timers off at least one CPU";
		return;
	}
	if (!irqs.all) {
		finds(f, LEVEL_OK, "no device interrupts the timers' CPUs");
		return;
	}
	if (patient.measured)
		costs(f, native.gap, "longest gap");
	if (irqs.known)
		found_fixed(f, &irqs);
	else
		found_only(f, &irqs);
}

static void look_throttled(struct finding *f)
{
	int64_t count = patient.readable ? module_stat(&patient.stats, STAT_THROTTLED, -1) : -1;

	f->read = DEBUG_DIR "/stats";
	if (count < 0)
		return;
	if (!count) {
		finds(f, LEVEL_OK, "handlers were never throttled");
		return;
	}
	finds(f, LEVEL_WARN, "handlers were throttled %s times", commas(count));
	costs(f, ns_to_cycles(module_parameter(PARAM_BUSY, 500) * 1e3),
	      "maximum time of handlers without a break");
	f->remedy = "make handlers shorter, or raise " PARAM_BUSY;
}

static void look_budget(struct finding *f)
{
	int64_t budget = ns_to_cycles(module_parameter(PARAM_BUDGET, 5000));

	f->read = DEBUG_DIR "/lead";
	if (!patient.readable || !patient.lead.exact)
		return;
	if ((int64_t)patient.lead.exact <= budget) {
		finds(f, LEVEL_OK, "the spin budget is larger than the lead");
		costs(f, patient.lead.exact, "the lead");
		return;
	}
	finds(f, LEVEL_WARN,
	      "the spin budget of %s cycles is smaller than the estimated lead",
	      commas(budget));
	costs(f, patient.lead.exact, "the lead");
	f->remedy = "raise " PARAM_BUDGET ", or remove what delays interrupts";
}

static void look_defer(struct finding *f)
{
	int64_t defer = ns_to_cycles(module_parameter(PARAM_DEFER, 20000));

	f->read = DEBUG_DIR "/lead";
	if (!patient.readable || !patient.lead.defer)
		return;
	if ((int64_t)patient.lead.defer <= defer) {
		finds(f, LEVEL_OK, "kernel events take no longer than the maximum deferral");
		costs(f, patient.lead.defer, "a kernel event and the lead");
		return;
	}
	finds(f, LEVEL_WARN,
	      "kernel events take longer than the maximum deferral, %s cycles", commas(defer));
	costs(f, patient.lead.defer, "a kernel event and the lead");
	f->remedy = "raise " PARAM_DEFER;
}

static void look_late(struct finding *f)
{
	int64_t late = patient.readable ? module_stat(&patient.stats, STAT_LATE, -1) : -1;

	f->read = DEBUG_DIR "/errors";
	if (late < 0)
		return;
	if (!late) {
		finds(f, LEVEL_OK, "no handler was late");
		return;
	}
	finds(f, LEVEL_WARN,
	      "%s handlers were late; unless another finding explains it, interrupts were off, or %s",
	      commas(late), virtual_machine() ? "the host ran something else" : "an SMI occurred");
	costs(f, worst_error(), "upper bound of the worst error");
	f->remedy = "apic-timer trace HANDLER --late CYCLES shows where the time was lost";
}

const struct check checks[] = {
	{ "module", FIX_NONE, look_module },
	{ "source.hrtimer", FIX_NONE, look_source },
	{ "owner.lapic", FIX_NONE, look_owner },
	{ "tsc.unstable", FIX_NONE, look_tsc_unstable },
	{ "tsc.invariant", FIX_NONE, look_tsc_invariant },
	{ "tsc.verdict", FIX_NONE, look_tsc_verdict },
	{ "tsc.step", FIX_NONE, look_tsc_step },
	{ "clock.tai", FIX_NONE, look_tai },
	{ "cpu.arat", FIX_NONE, look_arat },
	{ "vm.guest", FIX_NONE, look_virtual },
	{ "vm.steal", FIX_NONE, look_steal },
	{ "gaps.smi_like", FIX_NONE, look_gaps },
	{ "smi.count", FIX_NONE, look_smi },
	{ "idle.deep", FIX_IDLE, look_idle },
	{ "freq.governor", FIX_GOVERNOR, look_governor },
	{ "kernel.preempt", FIX_NONE, look_preempt },
	{ "kernel.pages", FIX_PAGES, look_pages },
	{ "irq.affinity", FIX_IRQS, look_irqs },
	{ "timers.throttled", FIX_NONE, look_throttled },
	{ "budget.small", FIX_NONE, look_budget },
	{ "defer.small", FIX_NONE, look_defer },
	{ "late.irqs_off", FIX_NONE, look_late },
	{}
};
