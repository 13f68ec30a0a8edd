// SPDX-License-Identifier: GPL-2.0
/*
 * The counters that TSCs are compared with: the HPET or the ACPI PM timer. They are only read,
 * never programmed.
 */
#include <linux/acpi.h>
#include <linux/bits.h>
#include <linux/io.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/hpet.h>

#include "reference.h"

/* 3.579545 MHz */
#define PM_PERIOD_FS	279365115ULL
#define PM_BITS		24
/* The slowest HPET that the specification allows has 10 MHz. */
#define HPET_PERIOD_MAX_FS	100000000ULL
/* Size of the registers up to the counter. */
#define HPET_SIZE	(HPET_COUNTER + 8)

static void __iomem *hpet;
static u16 pm_port;
static struct apic_clock_reference reference;

#ifdef CONFIG_ACPI

static bool find_hpet(void)
{
	struct acpi_table_header *table;
	struct acpi_generic_address address;
	u32 period;

	/*
	 * Don't ask the HPET's own register: firmware may have enabled an HPET that the
	 * kernel leaves alone (hpet=disable), for example because it stops in PC10. This
	 * also rejects an HPET without the legacy interrupt, though the kernel may read it.
	 */
	if (!is_hpet_enabled())
		return false;
	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_HPET, 0, &table)))
		return false;
	address = ((struct acpi_table_hpet *)table)->address;
	acpi_put_table(table);
	if (address.space_id != ACPI_ADR_SPACE_SYSTEM_MEMORY || !address.address)
		return false;
	hpet = ioremap(address.address, HPET_SIZE);
	if (!hpet)
		return false;
	period = readl(hpet + HPET_PERIOD);
	if (!period || period > HPET_PERIOD_MAX_FS) {
		iounmap(hpet);
		hpet = NULL;
		return false;
	}
	/* Half of a 64-bit counter is enough, and any machine reads it at once. */
	reference = (struct apic_clock_reference) {
		.name = "hpet", .period_fs = period, .bits = 32,
	};
	return true;
}

static bool find_pm(void)
{
	const struct acpi_table_fadt *fadt = &acpi_gbl_FADT;

	if (acpi_disabled || fadt->pm_timer_length != 4)
		return false;
	if (fadt->xpm_timer_block.space_id == ACPI_ADR_SPACE_SYSTEM_IO)
		pm_port = fadt->xpm_timer_block.address;
	if (!pm_port)
		pm_port = fadt->pm_timer_block;
	if (!pm_port)
		return false;
	reference = (struct apic_clock_reference) {
		.name = "acpi_pm", .period_fs = PM_PERIOD_FS, .bits = PM_BITS,
	};
	return true;
}

#else

static bool find_hpet(void)
{
	return false;
}

static bool find_pm(void)
{
	return false;
}

#endif

/**
 * apic_clock_reference_find() - find a counter that works
 * @wanted:	its name; "auto" for the best one of a real machine
 *
 * A hypervisor computes its counters from a clock of the host, which NTP slews by up to
 * 500 ppm, and which stands still while the guest is paused. The guest's TSC does neither,
 * and would seem to change its rate or to be ahead: auto finds no counter there.
 *
 * Context: Task. The caller must call apic_clock_reference_put() in the end.
 * Return: the counter, or NULL.
 */
const struct apic_clock_reference *apic_clock_reference_find(const char *wanted)
{
	bool any = !strcmp(wanted, "auto") && !boot_cpu_has(X86_FEATURE_HYPERVISOR);

	if ((any || !strcmp(wanted, "hpet")) && find_hpet())
		return &reference;
	if ((any || !strcmp(wanted, "acpi_pm")) && find_pm())
		return &reference;
	return NULL;
}

/**
 * apic_clock_reference_read() - read the counter that was found
 *
 * Context: Any.
 * Return: its value; bits that the counter does not have are 0.
 */
u32 apic_clock_reference_read(void)
{
	if (hpet)
		return readl(hpet + HPET_COUNTER);
	return inl(pm_port) & (BIT(PM_BITS) - 1);
}

/**
 * apic_clock_reference_put() - release the counter
 *
 * Context: Task.
 */
void apic_clock_reference_put(void)
{
	if (hpet)
		iounmap(hpet);
	hpet = NULL;
}
