// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in that records when the kernel writes to memory-mapped device registers, such as the one
 * that starts a network card, for a guest with one CPU in virtual time. The plug-in does not affect
 * the guest.
 *
 * The guest's lines (../engines/guest/tell.c) are recorded after a ":". Between "begin ..." and
 * "end" there is a line for each write: TSC, address of the instruction, address that it writes
 * to; the addresses are hexadecimal. The TSC is the value that RDTSC would have returned in place
 * of the write: its last value, plus the number of instructions since.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define KERNEL	(UINT64_C(1) << 63)	/* the kernel's addresses begin here */
#define READERS	1024			/* maximum number of RDTSC instructions of the kernel */

static FILE *output;
static bool on;

/* Called after each RDTSC, with which QEMU ends a block. */
static uint64_t behind[READERS];
static unsigned int readers;

/* The RDTSC executed last, and the last one whose value is known */
static uint64_t executed_then;
static struct {
	uint64_t value, executed;
} tsc;

static void on_write(unsigned int cpu, uint32_t info, uint64_t address, void *instruction)
{
	const struct qemu_plugin_hwaddr *place;

	(void)cpu;
	if (!on)
		return;
	place = qemu_plugin_get_hwaddr(info, address);
	if (place && qemu_plugin_hwaddr_is_io(place))
		fprintf(output, "%" PRIu64 " %" PRIxPTR " %" PRIx64 "\n",
			tsc.value + (plugin_executed() - tsc.executed), (uintptr_t)instruction,
			address);
}

static void on_rdtsc(unsigned int cpu, void *user)
{
	(void)cpu;
	(void)user;
	executed_then = plugin_executed();
}

/* Note the value that RDTSC returned, unless something else was executed in between. */
static void on_behind(unsigned int cpu, void *user)
{
	(void)cpu;
	(void)user;
	if (!on || plugin_executed() != executed_then)
		return;
	tsc.value = plugin_register(PLUGIN_RDX) << 32 | (uint32_t)plugin_register(PLUGIN_RAX);
	tsc.executed = executed_then;
}

static void obey(const char *line)
{
	fprintf(output, ": %s\n", line);
	if (!strncmp(line, "begin ", 6))
		on = true;
	else if (!strcmp(line, "end"))
		on = false;
}

static bool is_behind(uint64_t address)
{
	unsigned int i;

	for (i = 0; i < readers; i++)
		if (behind[i] == address)
			return true;
	return false;
}

static void add_reader(uint64_t after)
{
	if (is_behind(after))
		return;
	if (readers == READERS) {
		fprintf(stderr, "doorbells: the kernel reads the TSC in more than %d places\n",
			READERS);
		exit(1);
	}
	behind[readers++] = after;
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct plugin_insn read;
	struct plugin_port port;

	(void)id;
	if (is_behind(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0))))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_behind, CALLBACK_READS, NULL);
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		const unsigned char *code;

		plugin_count(insn);
		plugin_insn_read(&read, insn);
		if (plugin_port(&read, &port))
			plugin_hear(insn, &port, obey);
		if (address < KERNEL)
			continue;
		qemu_plugin_register_vcpu_mem_cb(insn, on_write, CALLBACK_NO_REGISTERS,
						 MEMORY_WRITE, (void *)(uintptr_t)address);
		code = &read.byte[read.opcode];
		if (read.opcode + 2 == read.size && code[0] == 0x0f && code[1] == 0x31) {
			add_reader(address + read.size);
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_rdtsc,
							       CALLBACK_NO_REGISTERS, NULL);
		}
	}
}

PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int count,
			       char **argument)
{
	output = plugin_install("doorbells", id, info, count, argument, on_translation);
	return !output;
}
