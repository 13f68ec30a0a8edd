// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the cost of reading a clock in the kernel, in TSC cycles.
 *
 * Write NAME COUNT to "clocks" to take COUNT samples. The time of the same code without a read is
 * subtracted. In an emulator a read of a device costs an instruction or two.
 */
#include <linux/acpi.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/mc146818rtc.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <asm/hpet.h>

#include "bench.h"

static LIST_HEAD(reads);
static void __iomem *hpet;
static u16 pm_port;

static noinline u64 read_nothing(void)
{
	return 0;
}

static noinline u64 read_rdtsc(void)
{
	return rdtsc();
}

static noinline u64 read_fenced(void)
{
	return rdtsc_ordered();
}

static noinline u64 read_rdtscp(void)
{
	u32 low, high, aux;

	asm volatile("rdtscp" : "=a" (low), "=d" (high), "=c" (aux));
	return (u64)high << 32 | low;
}

static noinline u64 read_ktime(void)
{
	return ktime_get();
}

static noinline u64 read_real(void)
{
	return ktime_get_real();
}

static noinline u64 read_raw(void)
{
	return ktime_get_raw();
}

static noinline u64 read_coarse(void)
{
	return ktime_get_coarse();
}

static noinline u64 read_hpet(void)
{
	return readl(hpet + HPET_COUNTER);
}

static noinline u64 read_pm(void)
{
	return inl(pm_port);
}

/* Read a register of the real time clock: its index, then its value. */
static noinline u64 read_rtc(void)
{
	outb(RTC_SECONDS, RTC_PORT(0));
	return inb(RTC_PORT(1));
}

static struct bench_read kernel_reads[] = {
	{ .name = "rdtsc", .read = read_rdtsc },
	{ .name = "lfence_rdtsc", .read = read_fenced },
	{ .name = "rdtscp", .read = read_rdtscp },
	{ .name = "ktime_get", .read = read_ktime },
	{ .name = "ktime_get_real", .read = read_real },
	{ .name = "ktime_get_raw", .read = read_raw },
	{ .name = "ktime_get_coarse", .read = read_coarse },
	{ .name = "hpet", .read = read_hpet },
	{ .name = "acpi_pm", .read = read_pm },
	{ .name = "rtc", .read = read_rtc },
};

static void find_devices(void)
{
	struct acpi_table_header *table;
	struct acpi_generic_address address;

	if (acpi_disabled)
		return;
	pm_port = acpi_gbl_FADT.xpm_timer_block.space_id == ACPI_ADR_SPACE_SYSTEM_IO ?
		  acpi_gbl_FADT.xpm_timer_block.address : acpi_gbl_FADT.pm_timer_block;
	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_HPET, 0, &table)))
		return;
	address = ((struct acpi_table_hpet *)table)->address;
	acpi_put_table(table);
	if (address.space_id == ACPI_ADR_SPACE_SYSTEM_MEMORY && address.address)
		hpet = ioremap(address.address, HPET_COUNTER + 8);
}

/**
 * bench_register_read() - add a clock to "clocks"
 * @read:	the clock
 */
void bench_register_read(struct bench_read *read)
{
	bench_lock();
	list_add_tail(&read->list, &reads);
	bench_unlock();
}
EXPORT_SYMBOL_GPL(bench_register_read);

/**
 * bench_unregister_read() - remove a clock from "clocks"
 * @read:	the clock
 */
void bench_unregister_read(struct bench_read *read)
{
	bench_lock();
	list_del(&read->list);
	bench_unlock();
}
EXPORT_SYMBOL_GPL(bench_unregister_read);

/* Cycles that a read takes, with interrupts off. */
static s64 measure(u64 (*read)(void))
{
	u64 before, after;

	local_irq_disable();
	before = rdtsc_ordered();
	read();
	after = rdtsc_ordered();
	local_irq_enable();
	return after - before;
}

static int clocks_command(const char *text)
{
	u64 (*found)(void) = NULL;
	struct bench_read *read;
	s64 overhead = S64_MAX;
	unsigned int count, i;
	char name[24];

	if (sscanf(text, "%23s %u", name, &count) != 2 || count > BENCH_SHOTS_MAX)
		return -EINVAL;
	list_for_each_entry(read, &reads, list)
		if (!strcmp(read->name, name))
			found = read->read;
	if (!found)
		return -EINVAL;
	if ((found == read_hpet && !hpet) || (found == read_pm && !pm_port))
		return -ENODEV;
	for (i = 0; i < 100; i++)
		overhead = min(overhead, measure(read_nothing));
	bench_samples_reset();
	for (i = 0; i < count; i++)
		bench_sample(measure(found) - overhead);
	return 0;
}

DEFINE_BENCH_FILE(clocks);

/**
 * bench_clocks_init() - find the clocks of this machine
 */
void bench_clocks_init(void)
{
	unsigned int i;

	find_devices();
	for (i = 0; i < ARRAY_SIZE(kernel_reads); i++)
		bench_register_read(&kernel_reads[i]);
}

/**
 * bench_clocks_exit() - undo the mappings
 */
void bench_clocks_exit(void)
{
	if (hpet)
		iounmap(hpet);
}
