/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _SHAPER_DRIVERS_H
#define _SHAPER_DRIVERS_H

#include <linux/netdevice.h>

const char *shaper_hard_refused(const struct net_device *dev);
const char *shaper_hard_doubt(const struct net_device *dev);
bool shaper_irqs_on(const struct net_device *dev);

#endif /* _SHAPER_DRIVERS_H */
