// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in that counts the instructions executed in each block of code, for a guest with one CPU
 * in virtual time. The plug-in does not affect the guest.
 *
 * The guest's lines (../engines/guest/tell.c) are recorded after a ":". Between "begin ..." and
 * "end" each instruction is counted for its block of translated code, which has a jump only at its
 * end. Before ": end" there is a line for each block: address, instructions executed in it, number
 * of times that it was begun; the address is hexadecimal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define BLOCKS	(1 << 20)	/* a power of two */

struct counts {
	uint64_t executed, begun;
};

struct block {
	bool known;
	uint64_t address;
	struct counts before;	/* when the window began */
};

static FILE *output;
static bool on;
static struct block blocks[BLOCKS];
static unsigned int used;
static struct qemu_plugin_scoreboard *board;	/* struct counts for each block */

static struct qemu_plugin_u64 executed(size_t number)
{
	return (struct qemu_plugin_u64) {
		board, number * sizeof(struct counts) + offsetof(struct counts, executed)
	};
}

static struct qemu_plugin_u64 begun(size_t number)
{
	return (struct qemu_plugin_u64) {
		board, number * sizeof(struct counts) + offsetof(struct counts, begun)
	};
}

static struct counts counts(size_t number)
{
	return (struct counts) { qemu_plugin_u64_get(executed(number), 0),
				 qemu_plugin_u64_get(begun(number), 0) };
}

/* Code that is translated again, or overwritten by other code, uses the same entry. */
static size_t find(uint64_t address)
{
	size_t number = address * 0x9e3779b97f4a7c15 >> 40;

	while (blocks[number %= BLOCKS].known && blocks[number].address != address)
		number++;
	if (!blocks[number].known && ++used == BLOCKS) {
		fprintf(stderr, "profile: the guest has more code than %d blocks\n", BLOCKS - 1);
		exit(1);
	}
	blocks[number].known = true;
	blocks[number].address = address;
	return number;
}

static void begin(void)
{
	size_t i;

	for (i = 0; i < BLOCKS; i++)
		if (blocks[i].known)
			blocks[i].before = counts(i);
	on = true;
}

static void end(void)
{
	struct counts now, before;
	size_t i;

	on = false;
	for (i = 0; i < BLOCKS; i++) {
		if (!blocks[i].known)
			continue;
		now = counts(i);
		before = blocks[i].before;
		if (now.executed != before.executed)
			fprintf(output, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", blocks[i].address,
				now.executed - before.executed, now.begun - before.begun);
	}
}

static void obey(const char *line)
{
	if (!strcmp(line, "end") && on)
		end();
	fprintf(output, ": %s\n", line);
	if (!strncmp(line, "begin ", 6))
		begin();
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, 0);
	size_t number = find(qemu_plugin_insn_vaddr(insn));
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct plugin_insn read;
	struct plugin_port port;

	(void)id;
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, INLINE_ADD, begun(number), 1);
	for (i = 0; i < count; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, INLINE_ADD,
								    executed(number), 1);
		plugin_insn_read(&read, insn);
		if (plugin_port(&read, &port))
			plugin_hear(insn, &port, obey);
	}
}

PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int count,
			       char **argument)
{
	output = plugin_install("profile", id, info, count, argument, on_translation);
	if (output)
		board = qemu_plugin_scoreboard_new(BLOCKS * sizeof(struct counts));
	return !output;
}
