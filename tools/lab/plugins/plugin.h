/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code shared by the lab's plug-ins. */
#ifndef LAB_PLUGIN_H
#define LAB_PLUGIN_H

#include <stdio.h>

#include "abi.h"

/* An instruction has at most 15 bytes. */
#define INSN_SIZE	15

/*
 * Common part of each plug-in's qemu_plugin_install(): check that the machine has one CPU, and
 * parse the only argument, out=FILE. The file is closed, and thereby written, when QEMU ends.
 * Return: the file, or NULL after a message.
 */
FILE *plugin_install(const char *name, uint64_t id, const struct qemu_info *info, int count,
		     char **argument, translation_fn on_translation);

/* Call this for each instruction that is translated. */
void plugin_count(struct qemu_plugin_insn *insn);
/* Return: number of instructions executed so far, including the current one. */
uint64_t plugin_executed(void);

/* Registers of a guest with one CPU, for callbacks with CALLBACK_READS. */
enum plugin_register {
	PLUGIN_RAX, PLUGIN_RCX, PLUGIN_RDX, PLUGIN_RBX,	/* as instructions number them */
	PLUGIN_RSP, PLUGIN_RBP, PLUGIN_RSI, PLUGIN_RDI,
	PLUGIN_R8, PLUGIN_R9, PLUGIN_R10, PLUGIN_R11,
	PLUGIN_R12, PLUGIN_R13, PLUGIN_R14, PLUGIN_R15,
	PLUGIN_REGISTERS,
};

uint64_t plugin_register(enum plugin_register which);

/* Prefixes and opcode of an instruction */
struct plugin_insn {
	unsigned char byte[INSN_SIZE];
	unsigned int size;
	unsigned int opcode;	/* its offset */
	bool operand_16;	/* prefix 66 */
	bool repeated;		/* prefix F2 or F3 */
	unsigned char rex;	/* 0: none */
};

void plugin_insn_read(struct plugin_insn *insn, const struct qemu_plugin_insn *from);

/* An access to a port, as its instruction encodes it */
struct plugin_port {
	bool out, string;
	bool in_dx;		/* the port's number is in DX */
	unsigned char number;	/* the port's number if not @in_dx */
	unsigned char size;	/* bytes: 1, 2, 4 */
};

/* Return: whether the instruction accesses a port. */
bool plugin_port(const struct plugin_insn *insn, struct plugin_port *port);
unsigned int plugin_port_number(const struct plugin_port *port);
/* Return: the value in AL, AX or EAX. */
unsigned int plugin_port_value(const struct plugin_port *port);

/*
 * Call this for each instruction that accesses a port: it has @on_line called with each line that
 * the guest passes (../engines/guest/tell.c). There is one @on_line for all of them.
 */
void plugin_hear(struct qemu_plugin_insn *insn, const struct plugin_port *port,
		 void (*on_line)(const char *line));

#endif
