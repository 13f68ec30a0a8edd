// SPDX-License-Identifier: GPL-2.0
/* apic-timer pio: how much accesses to hardware cost the CPU that makes them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "measure.h"
#include "say.h"
#include "series.h"

static long count = 1000, cpu = -1;

static const struct opt options[] = {
	OPT_NUMBER('n', "count", "N", 1, 1000000, "accesses of each kind (1000)", &count),
	OPT_NUMBER('c', "cpu", "N", 0, 1023, "CPU to measure on (the first)", &cpu),
	{}
};

static const struct {
	unsigned int access;
	const char *name, *what;
} rows[] = {
	{ APIC_MEASURE_CPUID_LEAF, "cpuid", "CPUID, leaf 0: a virtual machine exits to its host" },
	{ APIC_MEASURE_MSR_TSC, "rdmsr", "RDMSR of the TSC" },
	{ APIC_MEASURE_OUT_80, "out_80", "OUT to port 0x80" },
	{ APIC_MEASURE_IN_61, "in_61", "IN from port 0x61" },
	{ APIC_MEASURE_RTC, "rtc", "OUT to 0x70, IN from 0x71: the clock" },
	{ APIC_MEASURE_PM_TIMER, "pm_timer", "IN from the ACPI timer" },
	{ APIC_MEASURE_HPET, "hpet", "read of the HPET's counter" },
	{ APIC_MEASURE_PCI_CONFIG, "pci_config", "PCI configuration, 16 bits" },
};

/* Return: true if this machine has it. */
static bool measure(unsigned int access, struct series *series)
{
	uint32_t *cycles = calloc(count, sizeof(*cycles));
	struct apic_measure_port port = {
		.access = access,
		.count = count,
		.cycles = (uintptr_t)cycles,
	};
	bool there;
	long i;

	if (!cycles)
		fail("out of memory");
	there = !measure_call(APIC_MEASURE_PORT, &port, ENODEV);
	memset(series, 0, sizeof(*series));
	for (i = 0; there && i < count; i++)
		series_add(series, cycles[i]);
	free(cycles);
	return there;
}

static void print_row(const char *name, const char *what, struct series *series, int64_t nothing)
{
	int64_t p50 = series_quantile(series, 50) - nothing;

	if (opt_json) {
		json_object(NULL);
		json_text("access", name);
		json_text("what", what);
		json_number("cycles", p50);
		json_number("p5", series_quantile(series, 5) - nothing);
		json_number("p99", series_quantile(series, 99) - nothing);
		json_number("max", series_quantile(series, 100) - nothing);
		json_end();
		return;
	}
	printf("%-12s %10s %10s %10s %10s  %s\n", name,
	       commas(series_quantile(series, 5) - nothing), commas(p50),
	       commas(series_quantile(series, 99) - nothing),
	       commas(series_quantile(series, 100) - nothing), what);
}

static int run(int operands, char **operand)
{
	struct series series;
	int64_t nothing;
	unsigned int i;

	(void)operands;
	(void)operand;
	measure_begin(cpu);
	measure(APIC_MEASURE_NOTHING, &series);
	nothing = series_quantile(&series, 50);
	series_free(&series);
	if (opt_json) {
		json_object(NULL);
		json_number("cpu", measure_cpu());
		json_number("nothing", nothing);
		json_array("rows");
	} else {
		printf("TSC cycles on CPU %d, minus the %s of the measurement itself\n\n%-12s %10s %10s %10s %10s\n",
		       measure_cpu(), commas(nothing), "access", "p5", "p50", "p99", "max");
	}
	for (i = 0; i < COUNT(rows); i++) {
		progress("%s", rows[i].what);
		if (measure(rows[i].access, &series)) {
			progress_end();
			print_row(rows[i].name, rows[i].what, &series, nothing);
		} else if (!opt_json) {
			progress_end();
			printf("%-12s not on this machine\n", rows[i].name);
		}
		series_free(&series);
	}
	progress_end();
	if (opt_json) {
		json_end();
		json_end();
	}
	measure_end();
	return 0;
}

const struct command pio_command = {
	.name = "pio",
	.summary = "Measure the cost of accesses to ports, MSRs and other hardware",
	.about = "Needs the module apic_measure. Interrupts are disabled only during each access. An\n"
		 "access changes nothing except the last POST code, which port 0x80 takes.",
	.options = options,
	.run = run,
};
