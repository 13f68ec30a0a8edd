/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's plug-in interface that the lab's plug-ins use, in version 4, which is that of
 * QEMU 10.0. Debian has no package with QEMU's own header.
 *
 * Before anything else, QEMU checks qemu_plugin_version against the range that it supports, and
 * refuses to start if the number is outside.
 */
#ifndef LAB_ABI_H
#define LAB_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION	4
#endif

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_register;
struct qemu_plugin_scoreboard;

struct qemu_info {
	const char *target;
	struct {
		int least, most;
	} version;
	bool system;
	struct {
		int cpus, most_cpus;
	} of_system;
};

/* GLib's GArray and GByteArray */
struct glib_array {
	void *data;
	unsigned int length;
};

struct register_name {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
};

/* A callback's access to the CPU's registers */
enum { CALLBACK_NO_REGISTERS, CALLBACK_READS };

/* The memory accesses that a callback is called for */
enum { MEMORY_READ = 1, MEMORY_WRITE, MEMORY_BOTH };

typedef void (*cpu_fn)(uint64_t id, unsigned int cpu);
typedef void (*translation_fn)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*exec_fn)(unsigned int cpu, void *user);
typedef void (*memory_fn)(unsigned int cpu, uint32_t info, uint64_t address, void *user);

void qemu_plugin_register_vcpu_init_cb(uint64_t id, cpu_fn function);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translation_fn function);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn function, int flags,
					  void *user);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn function,
					    int flags, void *user);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, memory_fn function, int flags,
				      int which, void *user);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*function)(uint64_t id, void *user),
				    void *user);

/* A number for each CPU; translated code adds to it without a call */
struct qemu_plugin_u64 {
	struct qemu_plugin_scoreboard *board;
	size_t offset;
};

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
uint64_t qemu_plugin_u64_get(struct qemu_plugin_u64 entry, unsigned int cpu);
enum { INLINE_ADD };
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn,
							 int operation,
							 struct qemu_plugin_u64 entry,
							 uint64_t value);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t number);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t address);
unsigned int qemu_plugin_mem_size_shift(uint32_t info);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);

/* An array of struct register_name */
struct glib_array *qemu_plugin_get_registers(void);
/* Append the register's bytes. Return: their number. */
int qemu_plugin_read_register(struct qemu_plugin_register *handle, struct glib_array *bytes);

/* QEMU provides GLib. */
struct glib_array *g_byte_array_new(void);
struct glib_array *g_byte_array_set_size(struct glib_array *bytes, unsigned int length);

/* Symbols that QEMU looks up in a plug-in */
#define PUBLIC	__attribute__((visibility("default")))
extern PUBLIC int qemu_plugin_version;
PUBLIC int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int count,
			       char **argument);

#endif
