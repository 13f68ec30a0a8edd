/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FAKE_PHC_H
#define FAKE_PHC_H

#include <linux/types.h>

#define FAKE_PHCS	2

s64 fake_phc_reads(unsigned int n, u64 tsc);
int fake_phc_index(unsigned int n);

#endif
