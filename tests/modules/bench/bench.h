/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_BENCH_H
#define _APIC_TIMER_BENCH_H

#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/types.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#define BENCH_SHOTS_MAX	1048576U	/* samples of a run */

/**
 * struct bench_shots - a kind of timer that arms itself again and again
 * @list:	of all kinds
 * @name:	as written to "run"
 * @spin_ns:	maximum spin of a shot, 0 for the default; ignored by most
 * @start:	prepare, and arm the first shot @ns nanoseconds from now
 * @arm:	arm the next one; called from the timer's own handler
 * @stop:	delete the timer and wait for its handler
 */
struct bench_shots {
	struct list_head list;
	const char *name;
	int (*start)(u64 ns, u64 spin_ns);
	int (*arm)(u64 ns);
	void (*stop)(void);
};

/**
 * struct bench_ops - a kind of timer, of which many can be pending
 * @list:	of all kinds
 * @name:	as written to "cost"
 * @size:	bytes of a timer
 * @init:	initialise one, zeroed, whose handler calls bench_expired()
 * @moment:	argument of the two below, for @ns nanoseconds from now
 * @add:	arm it; returns an error if that fails
 * @modify:	arm it for another moment while it is pending
 * @del:	delete it
 */
struct bench_ops {
	struct list_head list;
	const char *name;
	size_t size;
	void (*init)(void *timer);
	u64 (*moment)(u64 ns);
	int (*add)(void *timer, u64 moment);
	void (*modify)(void *timer, u64 moment);
	void (*del)(void *timer);
};

/**
 * struct bench_read - a clock
 * @list:	of all
 * @name:	as written to "clocks"
 * @read:	read it
 */
struct bench_read {
	struct list_head list;
	const char *name;
	u64 (*read)(void);
};

static inline u64 bench_cycles(u64 ns)
{
	return mul_u64_u64_div_u64(ns, tsc_khz, 1000000);
}

/* main.c */
void bench_register_shots(struct bench_shots *shots);
void bench_unregister_shots(struct bench_shots *shots);
void bench_register_ops(struct bench_ops *ops);
void bench_unregister_ops(struct bench_ops *ops);
void bench_lock(void);
void bench_unlock(void);
struct bench_ops *bench_find_ops(const char *name);
ssize_t bench_command(const char __user *user, size_t size, char *text,
		      size_t room);
ssize_t bench_write(const char __user *user, size_t size,
		    int (*command)(const char *text));
void bench_samples_reset(void);
void bench_sample(s64 sample);

/* shots.c */
void bench_shot(u64 tsc, s64 error);
extern struct list_head bench_shots_list;
extern const struct file_operations bench_run_fops;
extern s64 *bench_excess;
extern u64 bench_elapsed;
extern struct debugfs_blob_wrapper bench_excess_blob;

/* kernel.c */
void bench_kernel_init(void);
void bench_kernel_exit(void);

/* cost.c */
void bench_expired(void);
void bench_cost_end(struct bench_ops *gone);
void bench_cost_exit(void);
extern const struct file_operations bench_cost_fops;

/* clocks.c */
void bench_register_read(struct bench_read *read);
void bench_unregister_read(struct bench_read *read);
void bench_clocks_init(void);
void bench_clocks_exit(void);
extern const struct file_operations bench_clocks_fops;

/* load.c */
u64 bench_load_off(u64 expires, u64 tsc);
void bench_load_exit(void);
extern const struct file_operations bench_load_fops;

extern struct dentry *bench_directory;

/* bench_NAME_fops: a file for commands, which NAME_command() executes. */
#define DEFINE_BENCH_FILE(name)						\
static ssize_t name##_write(struct file *file, const char __user *user,	\
			    size_t size, loff_t *pos)			\
{									\
	return bench_write(user, size, name##_command);			\
}									\
									\
const struct file_operations bench_##name##_fops = {			\
	.owner = THIS_MODULE,						\
	.open = simple_open,						\
	.write = name##_write,						\
}

#endif /* _APIC_TIMER_BENCH_H */
