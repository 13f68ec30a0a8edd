// SPDX-License-Identifier: GPL-2.0
/*
 * toggle [PORT [PERIOD_US [COUNT]]] - a square wave on a pin, as with a GPIO.
 *
 * PORT is an I/O port in hexadecimal: 378 is the data of the first parallel port, whose
 * bit 0 is pin 2; 3fc the modem control register of the first serial port, whose bit 1
 * is RTS. Needs CAP_SYS_RAWIO. Watch the pin with an oscilloscope: the edges are at
 * multiples of half the period.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>

#include "apic_timer_user.h"

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 80 };
	unsigned long port = argc > 1 ? strtoul(argv[1], NULL, 16) : 0x378;
	unsigned long period_us = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	unsigned long count = argc > 3 ? strtoul(argv[3], NULL, 10) : 1000;
	unsigned char bit = port == 0x3fc ? 2 : 1, value;
	uint64_t when, half, worst = 0, late;
	unsigned long i;
	struct at at;
	int ret;

	ret = at_open(&at);
	if (ret) {
		fprintf(stderr, "%s: %s\n", AT_DEVICE, strerror(-ret));
		return 1;
	}
	if (ioperm(port, 1, 1)) {
		perror("ioperm");
		return 1;
	}
	if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &priority))
		perror("real time");

	half = at_ns_to_tsc(&at, period_us * 1000ULL) / 2;
	value = inb(port);
	when = at_readtsc() + 2 * half;
	for (i = 0; i < 2 * count; i++, when += half) {
		/* After a signal, the moment is still ahead: wait for it again. */
		do
			ret = at_mdelay(&at, when);
		while (ret == -EINTR);
		if (ret) {
			fprintf(stderr, "sleep: %s\n", strerror(-ret));
			return 1;
		}
		value ^= bit;
		outb(value, port);
		late = at_readtsc() - when;
		if (late > worst)
			worst = late;
	}
	printf("%lu periods on port %lx: the write was complete at most %llu ns after its moment\n",
	       count, port, (unsigned long long)at_tsc_to_ns(&at, worst));
	at_close(&at);
	return 0;
}
