/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_REPORT_H
#define _SHAPER_REPORT_H

#include <linux/types.h>

struct sk_buff;

void shaper_report(struct sk_buff *skb, u32 error, u8 code);

#endif /* _SHAPER_REPORT_H */
