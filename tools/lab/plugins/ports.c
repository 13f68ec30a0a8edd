// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in that records each access to a port in chronological order, for a guest with one CPU
 * in virtual time. The plug-in does not affect the guest.
 *
 * There is a line for each access: instructions executed so far, "in" or "out" ("ins", "outs": of
 * a string, without value), port, bytes, value, address of the instruction. All numbers except
 * the first and the size are hexadecimal. In 16-bit code, which is firmware's, sizes of 2 and 4
 * bytes are swapped. Accesses that the CPU then refuses are recorded as well. While the guest is
 * idle, no instruction is executed: differences are nanoseconds only where it is not.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "plugin.h"

struct access {
	struct plugin_port port;
	bool repeated;		/* REP: repeated RCX times */
	uint64_t address;
};

static FILE *output;

/* An IN whose value the CPU will have at its next instruction */
static const struct access *pending;
static uint64_t pending_at;
static unsigned int pending_port;

static void write_down(const struct access *access, uint64_t at, unsigned int number, bool value)
{
	const struct plugin_port *port = &access->port;

	fprintf(output, "%" PRIu64 " %s%s %04x %u ", at, port->out ? "out" : "in",
		port->string ? "s" : "", number, port->size);
	if (value)
		fprintf(output, "%0*x", 2 * port->size, plugin_port_value(port));
	else
		fputc('-', output);
	fprintf(output, " %" PRIx64 "\n", access->address);
}

static void on_block(unsigned int cpu, void *user)
{
	(void)cpu;
	(void)user;
	if (pending)
		write_down(pending, pending_at, pending_port, true);
	pending = NULL;
}

/*
 * QEMU calls once more after the last iteration of a repeated instruction, and for an iteration
 * whose memory the guest had to make present first. Return: whether this is an iteration.
 */
static bool turns(const struct access *access)
{
	static uint64_t last, last_count;
	uint64_t count = plugin_register(PLUGIN_RCX);
	bool same = access->address == last && count == last_count;

	last = count ? access->address : 0;
	last_count = count;
	return count && !same;
}

/* An access to a port is the last instruction of its block, because instructions are counted. */
static void on_access(unsigned int cpu, void *user)
{
	const struct access *access = user;
	unsigned int number = plugin_port_number(&access->port);

	(void)cpu;
	if (access->repeated && !turns(access))
		return;
	if (access->port.string || access->port.out) {
		write_down(access, plugin_executed(), number, !access->port.string);
		return;
	}
	pending = access;
	pending_at = plugin_executed();
	pending_port = number;
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct plugin_insn insn;
	struct plugin_port port;
	struct access *access;

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, CALLBACK_READS, NULL);
	for (i = 0; i < count; i++) {
		struct qemu_plugin_insn *from = qemu_plugin_tb_get_insn(tb, i);

		plugin_count(from);
		plugin_insn_read(&insn, from);
		if (!plugin_port(&insn, &port))
			continue;
		access = malloc(sizeof(*access));	/* for as long as QEMU runs */
		if (!access)
			abort();
		access->port = port;
		access->repeated = port.string && insn.repeated;
		access->address = qemu_plugin_insn_vaddr(from);
		qemu_plugin_register_vcpu_insn_exec_cb(from, on_access, CALLBACK_READS, access);
	}
}

PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int count,
			       char **argument)
{
	output = plugin_install("ports", id, info, count, argument, on_translation);
	return !output;
}
