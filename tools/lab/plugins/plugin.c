// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code shared by the lab's plug-ins: their beginning and end, registers, instructions that access
 * ports, and lines that the guest passes to them.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

PUBLIC int qemu_plugin_version = PLUGIN_VERSION;

static const char * const names[PLUGIN_REGISTERS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
};

static struct qemu_plugin_register *registers[PLUGIN_REGISTERS];
static struct glib_array *bytes;

static struct qemu_plugin_u64 executed;

void plugin_count(struct qemu_plugin_insn *insn)
{
	if (!executed.board)
		executed.board = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, INLINE_ADD, executed, 1);
}

uint64_t plugin_executed(void)
{
	return executed.board ? qemu_plugin_u64_get(executed, 0) : 0;
}

/* From here on, the registers of the one CPU can be read. */
static void on_cpu(uint64_t id, unsigned int cpu)
{
	struct glib_array *found = qemu_plugin_get_registers();
	const struct register_name *name = found->data;
	unsigned int i, j;

	(void)id;
	(void)cpu;
	for (i = 0; i < found->length; i++)
		for (j = 0; j < PLUGIN_REGISTERS; j++)
			if (!strcmp(name[i].name, names[j]))
				registers[j] = name[i].handle;
	bytes = g_byte_array_new();
}

static void at_exit(uint64_t id, void *output)
{
	(void)id;
	fclose(output);
}

FILE *plugin_install(const char *name, uint64_t id, const struct qemu_info *info, int count,
		     char **argument, translation_fn on_translation)
{
	static const char option[] = "out=";
	FILE *file;

	if (!info->system || info->of_system.cpus != 1) {
		fprintf(stderr, "%s: only machines with one CPU are supported\n", name);
		return NULL;
	}
	if (count != 1 || strncmp(argument[0], option, strlen(option))) {
		fprintf(stderr, "%s: the only argument is out=FILE\n", name);
		return NULL;
	}
	file = fopen(argument[0] + strlen(option), "w");
	if (!file) {
		perror(argument[0] + strlen(option));
		return NULL;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, at_exit, file);
	return file;
}

/* 32 bits of it, outside long mode */
uint64_t plugin_register(enum plugin_register which)
{
	uint64_t value = 0;

	g_byte_array_set_size(bytes, 0);
	qemu_plugin_read_register(registers[which], bytes);
	memcpy(&value, bytes->data, bytes->length < sizeof(value) ? bytes->length : sizeof(value));
	return value;
}

void plugin_insn_read(struct plugin_insn *insn, const struct qemu_plugin_insn *from)
{
	unsigned char byte;

	memset(insn, 0, sizeof(*insn));
	insn->size = qemu_plugin_insn_data(from, insn->byte, sizeof(insn->byte));
	for (; insn->opcode + 1 < insn->size; insn->opcode++) {
		byte = insn->byte[insn->opcode];
		if (byte == 0x66)
			insn->operand_16 = true;
		else if (byte == 0xf2 || byte == 0xf3)
			insn->repeated = true;
		else if (byte != 0x67 && byte != 0x3e)
			break;
	}
	/* A prefix only in 64-bit code of the guest; elsewhere it is INC or DEC. */
	byte = insn->byte[insn->opcode];
	if (byte >= 0x40 && byte < 0x50 && insn->opcode + 1 < insn->size) {
		insn->rex = byte;
		insn->opcode++;
	}
}

bool plugin_port(const struct plugin_insn *insn, struct plugin_port *port)
{
	unsigned char code = insn->byte[insn->opcode];

	if (code >= 0x6c && code <= 0x6f) {		/* INS, OUTS */
		port->string = true;
		port->in_dx = true;
		port->out = code >= 0x6e;
	} else if (code >= 0xe4 && code <= 0xe7) {	/* IN, OUT; the port is in the code */
		port->string = false;
		port->in_dx = false;
		port->out = code >= 0xe6;
		port->number = insn->byte[insn->size - 1];
	} else if (code >= 0xec && code <= 0xef) {	/* IN, OUT; the port is in DX */
		port->string = false;
		port->in_dx = true;
		port->out = code >= 0xee;
	} else {
		return false;
	}
	port->size = !(code & 1) ? 1 : insn->operand_16 ? 2 : 4;
	return true;
}

unsigned int plugin_port_number(const struct plugin_port *port)
{
	return port->in_dx ? plugin_register(PLUGIN_RDX) & 0xffff : port->number;
}

unsigned int plugin_port_value(const struct plugin_port *port)
{
	uint64_t value = plugin_register(PLUGIN_RAX);

	return port->size == 1 ? value & 0xff : port->size == 2 ? value & 0xffff : value;
}

#define TELL		0xe9	/* the port of "tell" */
#define LINE		128	/* bytes */

static void (*heard)(const char *line);

static void on_port(unsigned int cpu, void *port)
{
	static char line[LINE];
	static unsigned int length;
	char character;

	(void)cpu;
	if (plugin_port_number(port) != TELL)
		return;
	character = plugin_port_value(port);
	if (character != '\n') {
		if (length < sizeof(line) - 1)
			line[length++] = character;
		return;
	}
	line[length] = '\0';
	length = 0;
	heard(line);
}

void plugin_hear(struct qemu_plugin_insn *insn, const struct plugin_port *port,
		 void (*on_line)(const char *line))
{
	struct plugin_port *kept;

	if (!port->out || port->string || port->size > 1)
		return;
	kept = malloc(sizeof(*kept));	/* for as long as QEMU runs */
	if (!kept)
		abort();
	*kept = *port;
	heard = on_line;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_port, CALLBACK_READS, kept);
}
