// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in that computes how long code would take with caches, for a guest with one CPU in
 * virtual time: each instruction takes a cycle, plus the cycles that a model of caches and memory
 * adds. The plug-in does not affect the guest, whose timers and TSC count instructions. All effects
 * of the added cycles must therefore be derived from the output of the plug-in.
 *
 * The guest chooses what to record by "tell" (../engines/guest/tell.c):
 *
 *	begin NAME [off]	from here, with empty caches, or without any
 *	watch ADDRESS		the target of a jump
 *	end
 *
 * Between "begin" and "end" there is a line for each RDTSC, "t", and for each jump to a watched
 * address, "w": address, instructions executed, cycles that the model has added, L1I misses, L1D
 * misses, all since "begin". Without caches each access is a miss. The guest's own lines are
 * recorded as well, after a ":". The counts of each cache, and of the TLB, "c", precede "end".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "caches_model.h"
#include "plugin.h"

#define WATCHED		8

/* A translated block of code, with a jump only at its end, and the cache lines that it uses. */
struct block {
	uint64_t address, end;
	unsigned int count;
	uint64_t line[];
};

static FILE *output;
static bool on;
static uint64_t begun, added;
static uint64_t watched[WATCHED];
static unsigned int watches;

/* The CPU's position, to distinguish a jump from straight execution. */
static const struct block *last;
static bool interrupted;	/* QEMU left the block after an access to a device */

static void write_record(char kind, uint64_t address)
{
	fprintf(output, "%c %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", kind,
		address, plugin_executed() - begun, added, model_counts(MODEL_L1I)->misses,
		model_counts(MODEL_L1D)->misses);
}

static void charge(unsigned int first, uint64_t line)
{
	added += model_access(first, line, plugin_executed() - begun + added);
}

/*
 * The CPU holds one line of code. It fetches a line when execution continues in another line, and
 * after each jump.
 */
static void on_block(unsigned int cpu, void *user)
{
	const struct block *block = user, *before = last;
	bool follows;
	unsigned int i;

	(void)cpu;
	if (!on)
		return;
	last = block;
	for (i = 0; i < watches; i++)
		if (block->address == watched[i])
			write_record('w', block->address);
	follows = before && (before->end == block->address ||
			     (interrupted && block->address > before->address &&
			      block->address < before->end));
	interrupted = false;
	i = follows && (block->address - 1) / MODEL_LINE == block->line[0];
	for (; i < block->count; i++)
		charge(MODEL_L1I, block->line[i]);
}

static void on_memory(unsigned int cpu, uint32_t info, uint64_t address, void *user)
{
	uint64_t line = address / MODEL_LINE, page = address / MODEL_PAGE, end;
	const struct qemu_plugin_hwaddr *place;

	(void)cpu;
	(void)user;
	if (!on)
		return;
	/* Device registers are not cached, and an access takes no longer than its instruction. */
	if (!model_has(MODEL_L1D, line)) {
		place = qemu_plugin_get_hwaddr(info, address);
		if (place && qemu_plugin_hwaddr_is_io(place)) {
			interrupted = true;
			return;
		}
	}
	address += (1 << qemu_plugin_mem_size_shift(info)) - 1;
	for (end = address / MODEL_PAGE; page <= end; page++)
		added += model_translate(page, plugin_executed() - begun + added);
	for (end = address / MODEL_LINE; line <= end; line++)
		charge(MODEL_L1D, line);
}

static void on_tsc(unsigned int cpu, void *user)
{
	(void)cpu;
	if (on)
		write_record('t', (uintptr_t)user);
}

/* An operand in memory, as it follows the opcode of CLFLUSH */
struct operand {
	bool relative, indexed;
	unsigned char base, index, scale;
	int64_t offset;		/* includes the address of the next instruction if relative */
	bool without_base;
};

static int32_t signed_bytes(const unsigned char *from, unsigned int size)
{
	int32_t value;

	if (size == 1)
		return (signed char)*from;
	memcpy(&value, from, sizeof(value));
	return value;
}

static struct operand *read_operand(const struct plugin_insn *insn, unsigned int at, uint64_t next)
{
	struct operand *operand = calloc(1, sizeof(*operand));	/* for as long as QEMU runs */
	unsigned char modrm = insn->byte[at++], mod = modrm >> 6, base = modrm & 7, sib;

	if (!operand)
		abort();
	if (base == 4) {
		sib = insn->byte[at++];
		operand->index = ((sib >> 3) & 7) | (insn->rex & 2) << 2;
		operand->indexed = operand->index != 4;
		operand->scale = sib >> 6;
		base = sib & 7;
		operand->without_base = base == 5 && !mod;
	} else {
		operand->relative = base == 5 && !mod;
	}
	operand->base = base | (insn->rex & 1) << 3;
	if (mod == 1)
		operand->offset = signed_bytes(insn->byte + at, 1);
	else if (mod == 2 || operand->relative || operand->without_base)
		operand->offset = signed_bytes(insn->byte + at, 4);
	if (operand->relative)
		operand->offset += next;
	return operand;
}

static void on_flush(unsigned int cpu, void *user)
{
	const struct operand *operand = user;
	uint64_t address = operand->offset;

	(void)cpu;
	if (!on)
		return;
	if (!operand->relative && !operand->without_base)
		address += plugin_register(operand->base);
	if (operand->indexed)
		address += plugin_register(operand->index) << operand->scale;
	model_flush(address / MODEL_LINE);
}

static void on_flush_all(unsigned int cpu, void *user)
{
	(void)cpu;
	(void)user;
	model_flush_all();
}

static void begin(bool caches)
{
	model_clear();
	model_enable(caches);
	begun = plugin_executed();
	added = 0;
	last = NULL;
	interrupted = false;
	on = true;
}

static void end(void)
{
	unsigned int i;

	on = false;
	for (i = 0; i < MODEL_CACHES; i++)
		fprintf(output, "c %u %" PRIu64 " %" PRIu64 "\n", i, model_counts(i)->hits,
			model_counts(i)->misses);
}

static void obey(const char *line)
{
	size_t length = strlen(line);

	if (!strncmp(line, "watch ", 6) && watches < WATCHED)
		watched[watches++] = strtoull(line + 6, NULL, 16);
	else if (!strcmp(line, "end") && on)
		end();
	fprintf(output, ": %s\n", line);
	if (!strncmp(line, "begin ", 6))
		begin(length < 4 || strcmp(line + length - 4, " off"));
}

/* Register the callbacks that an instruction needs. */
static void translate(struct qemu_plugin_insn *from)
{
	uint64_t address = qemu_plugin_insn_vaddr(from);
	struct plugin_insn insn;
	struct plugin_port port;
	const unsigned char *code;

	plugin_count(from);
	qemu_plugin_register_vcpu_mem_cb(from, on_memory, CALLBACK_NO_REGISTERS, MEMORY_BOTH, NULL);
	plugin_insn_read(&insn, from);
	code = insn.byte + insn.opcode;
	if (plugin_port(&insn, &port)) {
		plugin_hear(from, &port, obey);
		return;
	}
	if (insn.size < insn.opcode + 2 || code[0] != 0x0f)
		return;
	if (code[1] == 0x31 || (code[1] == 0x01 && code[2] == 0xf9))	/* RDTSC, RDTSCP */
		qemu_plugin_register_vcpu_insn_exec_cb(from, on_tsc, CALLBACK_NO_REGISTERS,
						       (void *)address);
	else if (code[1] == 0x09)					/* WBINVD */
		qemu_plugin_register_vcpu_insn_exec_cb(from, on_flush_all, CALLBACK_NO_REGISTERS,
						       NULL);
	else if (code[1] == 0xae && (code[2] >> 3 & 7) == 7 && code[2] < 0xc0)	/* CLFLUSH(OPT) */
		qemu_plugin_register_vcpu_insn_exec_cb(from, on_flush, CALLBACK_READS,
						       read_operand(&insn, insn.opcode + 2,
								    address + insn.size));
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	/* An instruction spans at most two lines. */
	struct block *block = malloc(sizeof(*block) + 2 * count * sizeof(block->line[0]));
	struct qemu_plugin_insn *insn;
	uint64_t line;

	(void)id;
	if (!block)
		abort();
	block->count = 0;
	for (i = 0; i < count; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		translate(insn);
		line = qemu_plugin_insn_vaddr(insn) / MODEL_LINE;
		block->end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
		if (!i)
			block->address = qemu_plugin_insn_vaddr(insn);
		for (; line <= (block->end - 1) / MODEL_LINE; line++)
			if (!block->count || block->line[block->count - 1] != line)
				block->line[block->count++] = line;
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, CALLBACK_NO_REGISTERS, block);
}

PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int count,
			       char **argument)
{
	output = plugin_install("caches", id, info, count, argument, on_translation);
	if (output)
		model_write_geometry(output);
	return !output;
}
