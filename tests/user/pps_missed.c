// SPDX-License-Identifier: GPL-2.0
/*
 * pps_missed - wait for a pulse that /dev/pps-gen0 could not make, and print its report: "event
 * EVENT SEQUENCE", see <linux/pps_gen.h>.
 */
#include "start.h"

/* Older kernels have no such header. */
struct pps_gen_event {
	unsigned int event;
	unsigned int sequence;
};

#define PPS_GEN_FETCHEVENT	0x800870b3UL	/* _IOR('p', 0xb3, struct pps_gen_event *) */

int run(int argc, char **argv)
{
	struct pps_gen_event event = {};
	long ret, fd;

	(void)argc;
	(void)argv;
	fd = sys(AT_NR_OPEN, "/dev/pps-gen0", 2 /* O_RDWR */, 0, 0);
	if (fd < 0)
		return wrong("open", fd);
	ret = sys(AT_NR_IOCTL, fd, PPS_GEN_FETCHEVENT, &event, 0);
	if (ret)
		return wrong("ioctl", ret);
	say("event ");
	say_number(event.event);
	say(" ");
	say_number(event.sequence);
	say("\n");
	return 0;
}
