// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plug-in that makes PAUSE as cheap for the host as other instructions, for a guest with
 * one CPU. The plug-in does not affect the guest.
 *
 * At each PAUSE, QEMU gives the other CPUs a turn: it leaves the loop that executes translated
 * code, accounts for the executed instructions, and takes two mutexes. This takes more than a
 * microsecond. A booting kernel executes 12 million PAUSE instructions, most while it calibrates
 * its LAPIC timer, and an idle CPU in the POLL state executes nothing else. A single CPU need not
 * wait for others. The plug-in interface has no way to express this, so this plug-in overwrites
 * the function that translated code calls.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "plugin.h"

/* The function that translated code calls; a test uses another name for it. */
#ifndef HELPER
#define HELPER	"helper_pause"
#endif

#define PAGE	4096

struct cpu;

/* From QEMU, as in 10.0: a list that begins with its first member, and a return to its loop */
static struct cpu **cpus;
static void (*cpu_loop_exit_noexc)(struct cpu *cpu);

/* PAUSE is the last instruction of its translated block: the whole block has been executed. */
static void go_on(void *registers)
{
	(void)registers;
	cpu_loop_exit_noexc(*cpus);	/* does not return */
}

PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int count,
			       char **argument)
{
	unsigned char jump[] = {
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,	/* mov $go_on, %rax */
		0xff, 0xe0,				/* jmp *%rax */
	};
	unsigned char *code = dlsym(RTLD_DEFAULT, HELPER);
	void (*to)(void *registers) = go_on;
	unsigned char *page;

	(void)id;
	(void)count;
	(void)argument;
	if (!info->system || info->of_system.cpus != 1) {
		fprintf(stderr, "pause: only machines with one CPU are supported\n");
		return 1;
	}
	cpus = dlsym(RTLD_DEFAULT, "cpus_queue");
	cpu_loop_exit_noexc = dlsym(RTLD_DEFAULT, "cpu_loop_exit_noexc");
	if (!code || !cpus || !cpu_loop_exit_noexc) {
		fprintf(stderr, "pause: this QEMU lacks the functions it needs\n");
		return 1;
	}
	memcpy(jump + 2, &to, sizeof(to));
	page = code - (uintptr_t)code % PAGE;
	if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		perror("pause");
		return 1;
	}
	memcpy(code, jump, sizeof(jump));
	mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
	return 0;
}
