/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_MAP_H
#define _APIC_CLOCK_PHC_MAP_H

/*
 * Arithmetic of the map from a PTP hardware clock to the TSC.
 *
 * The readings of the last two seconds bound a straight line from above and from below. Of
 * all lines between these bounds, the steepest and the flattest bound the clock's future
 * readings, and the middle is the expected one.
 *
 *	TSC ^                    . steepest
 *	    |             |   .    . flattest
 *	    |        |  . :  .
 *	    |    |  :  .|.           each | is a reading: from low to high
 *	    |    : .| .
 *	    |   .|.
 *	    +------------------------> clock, ns
 *
 * Many clocks count in steps: a network card of 25 MHz adds 40 ns each time. A reading is then
 * up to one step behind the straight line, and readings would contradict each other. No
 * interface reports the length of a step. If it is a whole number of ns, it can be derived
 * from the readings, see phc_file.c. A steered clock's step is not a whole number; we take the
 * shortest power of two with which the readings agree.
 */
#include <linux/types.h>

#include "map.h"

/* Number of readings kept: two seconds at 50 ms each. */
#define APIC_CLOCK_PHC_READINGS	40

/**
 * struct apic_clock_phc_line - a clock as a linear function of the TSC
 * @ref:	a time of the clock, ns
 * @tsc:	TSC at that time
 * @rate:	cycles per ns, times 2^32; 0: nothing is known
 * @error:	possible error of @tsc, cycles
 * @drift:	possible error of @rate
 */
struct apic_clock_phc_line {
	s64 ref;
	u64 tsc;
	u64 rate;
	u64 error;
	u64 drift;
};

/**
 * struct apic_clock_phc_span - a reading relative to the newest one
 * @age:	ns by which it is older
 * @low:	lower bound of its TSC, relative to that of the newest
 * @high:	upper bound of its TSC, relative to the lower bound of the newest
 */
struct apic_clock_phc_span {
	s64 age;
	s64 low;
	s64 high;
};

/**
 * struct apic_clock_phc_map - estimate of a clock
 * @readings:	ring of readings; .ref is the clock in ns
 * @first:	index of the oldest reading
 * @count:	number of readings
 * @nominal:	cycles per ns by the TSC's frequency, times 2^32
 * @prior:	bounds of the rate that do not come from the readings
 * @rate:	bounds of the rate that come from all knowledge
 * @frequency:	steering frequency, ppm times 2^16
 * @before:	last reading before @frequency was changed; .reads is 0 if there is none
 * @changed:	by how much the rate differs at most from that before the change
 * @step:	step in which the clock seems to count, in addition to the step that the
 *		readings already allow for, ns
 * @since:	number of readings that have agreed since @step was changed or confirmed
 * @line:	the result
 * @spans:	scratch space to compute @line
 */
struct apic_clock_phc_map {
	struct apic_clock_reading readings[APIC_CLOCK_PHC_READINGS];
	unsigned int first;
	unsigned int count;
	u64 nominal;
	struct apic_clock_rate prior;
	struct apic_clock_rate rate;
	s64 frequency;
	struct apic_clock_reading before;
	u64 changed;
	unsigned int step;
	unsigned int since;
	struct apic_clock_phc_line line;
	struct apic_clock_phc_span spans[APIC_CLOCK_PHC_READINGS];
};

void apic_clock_phc_map_init(struct apic_clock_phc_map *map, u64 nominal);
struct apic_clock_rate apic_clock_phc_map_runs(const struct apic_clock_phc_map *map);
void apic_clock_phc_map_steer(struct apic_clock_phc_map *map, s64 frequency);
bool apic_clock_phc_map_use(struct apic_clock_phc_map *map,
			    const struct apic_clock_reading *reading);
u64 apic_clock_phc_line_tsc(const struct apic_clock_phc_line *line, s64 when, u64 *error);
s64 apic_clock_phc_line_read(const struct apic_clock_phc_line *line, u64 tsc);

#endif /* _APIC_CLOCK_PHC_MAP_H */
