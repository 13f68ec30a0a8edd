/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_CLOCK_PHC_MAP_H
#define _APIC_CLOCK_PHC_MAP_H

/*
 * Arithmetic of the map from a PTP hardware clock to the TSC.
 *
 * The readings of the last two seconds bound a straight line from above and from
 * below. Of all lines between these bounds, the steepest and the flattest bound what
 * the clock will read later, and the middle is what is expected.
 *
 *	TSC ^                    . steepest
 *	    |             |   .    . flattest
 *	    |        |  . :  .
 *	    |    |  :  .|.           each | is a reading: from low to high
 *	    |    : .| .
 *	    |   .|.
 *	    +------------------------> clock, ns
 *
 * Many clocks count in steps: a network card of 25 MHz adds 40 ns each time. Then what is
 * read is up to a step behind the straight line, and readings would contradict each other.
 * No interface says how long a step is. As long as it is whole ns, what was read does, see
 * phc_file.c; of a clock that is steered it is not. So it is the shortest power of two
 * with which the readings agree.
 */
#include <linux/types.h>

#include "map.h"

/* Readings that are kept: two seconds at 50 ms each. */
#define APIC_CLOCK_PHC_READINGS	40

/**
 * struct apic_clock_phc_line - a clock as a straight function of the TSC
 * @ref:	what the clock reads, ns
 * @tsc:	the TSC then
 * @rate:	cycles per ns, times 2^32; 0: nothing is known
 * @error:	cycles that @tsc may be off by
 * @drift:	likewise @rate
 */
struct apic_clock_phc_line {
	s64 ref;
	u64 tsc;
	u64 rate;
	u64 error;
	u64 drift;
};

/**
 * struct apic_clock_phc_span - a reading as of the newest one
 * @age:	ns that it is older
 * @low:	TSC less that of the newest, before which the clock did not read it
 * @high:	likewise, after which it did
 */
struct apic_clock_phc_span {
	s64 age;
	s64 low;
	s64 high;
};

/**
 * struct apic_clock_phc_map - what is known of a clock
 * @readings:	ring; .ref is the clock in ns
 * @first:	oldest of them
 * @count:	how many there are
 * @nominal:	cycles per ns by the TSC's frequency, times 2^32
 * @prior:	bounds of the rate that do not come from the readings
 * @rate:	bounds of the rate that come from all of it
 * @frequency:	what the clock is steered by, ppm times 2^16
 * @step:	ns that it seems to count in, besides what the readings allow for
 * @since:	readings that have agreed since that was changed, or found right
 * @line:	the result
 * @spans:	while it is computed
 */
struct apic_clock_phc_map {
	struct apic_clock_reading readings[APIC_CLOCK_PHC_READINGS];
	unsigned int first;
	unsigned int count;
	u64 nominal;
	struct apic_clock_rate prior;
	struct apic_clock_rate rate;
	s64 frequency;
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
