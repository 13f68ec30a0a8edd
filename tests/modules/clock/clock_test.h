/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_TEST_H
#define _APIC_CLOCK_TEST_H

#include <linux/types.h>

struct seq_file;

/* Places where a CPU can be held up, see hold.c. */
enum clock_test_hold {
	CLOCK_TEST_HOLD_CALL,		/* the skew is measured */
	CLOCK_TEST_HOLD_LIST,		/* a timer enters the list */
	CLOCK_TEST_HOLD_TO_TSC,		/* its moment is converted */
	CLOCK_TEST_HOLD_MEET,		/* CPU 0 is about to meet the CPU that it measures */
	CLOCK_TEST_HOLD_ARRIVED,	/* as CALL, and it seems to have arrived only now */
};

/* Which CPU of a measurement is held up, see patience.c. */
enum clock_test_patience {
	CLOCK_TEST_PATIENCE_CALLED,
	CLOCK_TEST_PATIENCE_LATE,
	CLOCK_TEST_PATIENCE_ANSWERED,
	CLOCK_TEST_PATIENCES,
};

void clock_test_adjust_init(void);
int clock_test_adjust(unsigned int cpu, s64 cycles);
void clock_test_adjust_by(void *cycles);
void clock_test_adjust_show(struct seq_file *file);
int clock_test_single(unsigned int cpu, unsigned int shots);
void clock_test_single_show(struct seq_file *file);
int clock_test_group(unsigned int cpus, unsigned int flags, unsigned int shots);
int clock_test_group_later(unsigned int n, unsigned int flags, unsigned int ms);
int clock_test_group_again(unsigned int n, unsigned int ms);
int clock_test_group_cancel(unsigned int n);
int clock_test_group_foreign(unsigned int ms);
int clock_test_group_grow(void);
void clock_test_group_free(void);
void clock_test_group_show(struct seq_file *file);
int clock_test_hold(unsigned int symbol, unsigned int ms);
u64 clock_test_hold_end(void);
u64 clock_test_held_until(void);
int clock_test_lost(int cpu);
void clock_test_lost_show(struct seq_file *file);
int clock_test_patience(unsigned int ms, enum clock_test_patience which);
void clock_test_patience_show(struct seq_file *file);
int clock_test_pending(int cpu, unsigned int times);
int clock_test_changed(int cpu);
void clock_test_pending_show(struct seq_file *file);
int clock_test_rearm(int cpu, unsigned int times);
void clock_test_rearm_show(struct seq_file *file);
int clock_test_ring(unsigned int count);
int clock_test_ring_move(unsigned int cpu, int cycles);
void clock_test_ring_exit(void);
void clock_test_ring_show(struct seq_file *file);
int clock_test_steps(unsigned int cpus);
void clock_test_steps_show(struct seq_file *file);
int clock_test_stop(unsigned int naps);
void clock_test_stop_show(struct seq_file *file);
int clock_test_stretch(unsigned int site, int one_in);
int clock_test_bracket(unsigned int site, int times);
void clock_test_stretch_end(void);
void clock_test_stretch_show(struct seq_file *file);
int clock_test_trust(bool linger);
void clock_test_trust_exit(void);
void clock_test_trust_show(struct seq_file *file);
int clock_test_phc(const char *verb, unsigned int n, int clock, long long value);
void clock_test_phc_show(struct seq_file *file);
void clock_test_phc_init(void);
void clock_test_phc_exit(void);

#endif /* _APIC_CLOCK_TEST_H */
