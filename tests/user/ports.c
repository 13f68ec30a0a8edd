// SPDX-License-Identifier: GPL-2.0
/*
 * ports - access ports in each possible way, in a sequence that the plug-in must record. At 0x80
 * only the chipset answers, and the accesses do no harm.
 */
#include "start.h"

#define NR_IOPERM	173

int run(int argc, char **argv)
{
	static const char text[] = "abc";
	const char *at = text;
	unsigned long count = sizeof(text) - 1;
	unsigned int value = 0x11223344, read;

	(void)argv;
	if (argc != 1 || sys(NR_IOPERM, 0x80, 8, 1, 0))
		return 1;
	__asm__ volatile("outb %%al, $0x80" : : "a"(value));
	__asm__ volatile("outb %%al, %%dx" : : "a"(value), "d"(0x81));
	__asm__ volatile("outw %%ax, %%dx" : : "a"(value), "d"(0x82));
	__asm__ volatile("outl %%eax, %%dx" : : "a"(value), "d"(0x84));
	__asm__ volatile("outl %%eax, $0x80" : : "a"(value));
	__asm__ volatile("rep outsb" : "+S"(at), "+c"(count) : "d"(0x80) : "memory");
	__asm__ volatile("inb $0x84, %%al" : "=a"(read));
	say_number(read & 0xff);
	say(" ");
	__asm__ volatile("inw %%dx, %%ax" : "=a"(read) : "d"(0x82));
	say_number(read & 0xffff);
	say(" ");
	__asm__ volatile("inl %%dx, %%eax" : "=a"(read) : "d"(0x80));
	say_number(read >> 1);
	say("\n");
	return 0;
}
