/* SPDX-License-Identifier: GPL-2.0 */
/* The instruments, one file each. Their callers hold the device's mutex. */
#ifndef _APIC_MEASURE_MEASURE_H
#define _APIC_MEASURE_MEASURE_H

#include <linux/types.h>
#include <uapi/linux/apic_measure.h>

#define MEASURE_COUNT_MAX	1000000

long measure_loop(struct apic_measure_loop *a);
long measure_periodic(struct apic_measure_periodic *a);
long measure_port(struct apic_measure_port *a);
long measure_cost(const struct apic_measure_cost *a);

long measure_chain_set(const struct apic_measure_chain *a);
ssize_t measure_chain_read(char __user *to, size_t size);
void measure_chain_clear(void);

#endif /* _APIC_MEASURE_MEASURE_H */
