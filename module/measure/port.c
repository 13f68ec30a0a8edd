// SPDX-License-Identifier: GPL-2.0
/*
 * Measure accesses to hardware. Interrupts are off for one access at a time. An access changes
 * nothing except the last POST code, which port 0x80 takes: no register is read that reading
 * clears.
 */
#include <linux/acpi.h>
#include <linux/apic_timer.h>
#include <linux/dmi.h>
#include <linux/io.h>
#include <linux/mc146818rtc.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>
#include <asm/x86_init.h>

#include "hardware.h"
#include "measure.h"

#define HPET_COUNTER	0xf0
#define HPET_SIZE	0x400

/* Resources of an access */
struct place {
	void __iomem *hpet;
	struct pci_dev *bridge;
	u16 pm_timer;
};

/* All are called by address, so that the overhead is the same for each. */
typedef void (*access_fn)(const struct place *place);

static void access_nothing(const struct place *place)
{
}

static void access_cpuid(const struct place *place)
{
	measure_cpuid();
}

static void access_msr_tsc(const struct place *place)
{
	measure_rdmsr_tsc();
}

static void access_out_80(const struct place *place)
{
	outb(0, 0x80);
}

static void access_in_61(const struct place *place)
{
	inb(0x61);
}

static void access_rtc(const struct place *place)
{
	CMOS_READ(RTC_FREQ_SELECT);
}

static void access_pm_timer(const struct place *place)
{
	inl(place->pm_timer);
}

static void access_hpet(const struct place *place)
{
	readl(place->hpet + HPET_COUNTER);
}

static void access_pci_config(const struct place *place)
{
	u16 vendor;

	pci_read_config_word(place->bridge, PCI_VENDOR_ID, &vendor);
}

static const access_fn accesses[APIC_MEASURE_ACCESSES] = {
	[APIC_MEASURE_NOTHING] = access_nothing,
	[APIC_MEASURE_CPUID_LEAF] = access_cpuid,
	[APIC_MEASURE_MSR_TSC] = access_msr_tsc,
	[APIC_MEASURE_OUT_80] = access_out_80,
	[APIC_MEASURE_IN_61] = access_in_61,
	[APIC_MEASURE_RTC] = access_rtc,
	[APIC_MEASURE_PM_TIMER] = access_pm_timer,
	[APIC_MEASURE_HPET] = access_hpet,
	[APIC_MEASURE_PCI_CONFIG] = access_pci_config,
};

static u32 cost(access_fn run, const struct place *place)
{
	unsigned long flags;
	u64 start, end;

	local_irq_save(flags);
	start = rdtsc_ordered();
	run(place);
	end = rdtsc_ordered();
	local_irq_restore(flags);
	return min_t(u64, end - start, U32_MAX);
}

/* On PREEMPT_RT the lock may sleep, so it is not taken within cost(). */
static u32 cost_locked(access_fn run, const struct place *place)
{
	unsigned long flags;
	u32 cycles;

	spin_lock_irqsave(&rtc_lock, flags);
	cycles = cost(run, place);
	spin_unlock_irqrestore(&rtc_lock, flags);
	return cycles;
}

/*
 * Laptops that may hang after a write to port 0x80. arch/x86/kernel/io_delay.c has the same list,
 * to delay by another port; it exports neither the list nor its choice.
 */
static const struct dmi_system_id hang_by_80[] = {
	{ .matches = { DMI_MATCH(DMI_BOARD_VENDOR, "Quanta"), DMI_MATCH(DMI_BOARD_NAME, "30B7") } },
	{ .matches = { DMI_MATCH(DMI_BOARD_VENDOR, "Quanta"), DMI_MATCH(DMI_BOARD_NAME, "30B9") } },
	{ .matches = { DMI_MATCH(DMI_BOARD_VENDOR, "Quanta"), DMI_MATCH(DMI_BOARD_NAME, "30B8") } },
	{ .matches = { DMI_MATCH(DMI_BOARD_VENDOR, "Quanta"), DMI_MATCH(DMI_BOARD_NAME, "30BF") } },
	{ .matches = { DMI_MATCH(DMI_BOARD_VENDOR, "Quanta"), DMI_MATCH(DMI_BOARD_NAME, "30D3") } },
	{}
};

static int find_pm_timer(struct place *place)
{
#ifdef CONFIG_ACPI
	if (!acpi_disabled && acpi_gbl_FADT.xpm_timer_block.address &&
	    acpi_gbl_FADT.xpm_timer_block.space_id == ACPI_ADR_SPACE_SYSTEM_IO &&
	    acpi_gbl_FADT.xpm_timer_block.address <= U16_MAX) {
		place->pm_timer = acpi_gbl_FADT.xpm_timer_block.address;
		return 0;
	}
#endif
	return -ENODEV;
}

static int find_hpet(struct place *place)
{
	int ret = -ENODEV;
#ifdef CONFIG_ACPI
	struct acpi_table_header *table;
	const struct acpi_table_hpet *hpet;

	if (acpi_disabled || ACPI_FAILURE(acpi_get_table(ACPI_SIG_HPET, 0, &table)))
		return -ENODEV;
	hpet = container_of(table, struct acpi_table_hpet, header);
	if (hpet->address.space_id == ACPI_ADR_SPACE_SYSTEM_MEMORY && hpet->address.address) {
		place->hpet = ioremap(hpet->address.address, HPET_SIZE);
		ret = place->hpet ? 0 : -ENOMEM;
	}
	acpi_put_table(table);
#endif
	return ret;
}

static int find(u32 what, struct place *place)
{
	switch (what) {
	case APIC_MEASURE_MSR_TSC:
		return measure_msr_tsc_there() ? 0 : -ENODEV;
	case APIC_MEASURE_OUT_80:
		return dmi_check_system(hang_by_80) ? -ENODEV : 0;
	case APIC_MEASURE_RTC:
		/* Firmware or a hypervisor may deny it: its ports may be anything then. */
		return x86_platform.legacy.rtc ? 0 : -ENODEV;
	case APIC_MEASURE_PM_TIMER:
		return find_pm_timer(place);
	case APIC_MEASURE_HPET:
		return find_hpet(place);
	case APIC_MEASURE_PCI_CONFIG:
		place->bridge = pci_get_domain_bus_and_slot(0, 0, PCI_DEVFN(0, 0));
		return place->bridge ? 0 : -ENODEV;
	default:
		return 0;
	}
}

/**
 * measure_port() - measure the cost of an access to hardware
 * @a:		the user's request
 *
 * Context: Task; the device's mutex. Sleeps.
 * Return: 0, -EINVAL, -ENODEV, -ENOMEM, -EFAULT, -EINTR.
 */
long measure_port(struct apic_measure_port *a)
{
	struct place place = {};
	u32 (*measure)(access_fn run, const struct place *place) =
		a->access == APIC_MEASURE_RTC ? cost_locked : cost;
	u32 *cycles, i;
	long ret;

	if (a->access >= APIC_MEASURE_ACCESSES || !a->count || a->count > MEASURE_COUNT_MAX)
		return -EINVAL;
	ret = find(a->access, &place);
	if (ret)
		return ret;
	ret = -ENOMEM;
	cycles = kvmalloc_array(a->count, sizeof(*cycles), GFP_KERNEL);
	if (!cycles)
		goto put;
	ret = 0;
	for (i = 0; i < a->count && !ret; i++) {
		cycles[i] = measure(accesses[a->access], &place);
		if (signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	if (!ret && copy_to_user(u64_to_user_ptr(a->cycles), cycles, a->count * sizeof(*cycles)))
		ret = -EFAULT;
	kvfree(cycles);
put:
	if (place.hpet)
		iounmap(place.hpet);
	pci_dev_put(place.bridge);
	return ret;
}
