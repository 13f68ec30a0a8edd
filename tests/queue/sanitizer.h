/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that a compiler calls with -fsanitize=thread: before each access to memory, at the
 * start and the end of each function, and once at startup.
 */
#ifndef _APIC_TIMER_QUEUE_SANITIZER_H
#define _APIC_TIMER_QUEUE_SANITIZER_H

void __tsan_read1(void *address);
void __tsan_read2(void *address);
void __tsan_read4(void *address);
void __tsan_read8(void *address);
void __tsan_read16(void *address);
void __tsan_write1(void *address);
void __tsan_write2(void *address);
void __tsan_write4(void *address);
void __tsan_write8(void *address);
void __tsan_write16(void *address);
void __tsan_read_range(void *address, long size);
void __tsan_write_range(void *address, long size);
void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);

#endif /* _APIC_TIMER_QUEUE_SANITIZER_H */
