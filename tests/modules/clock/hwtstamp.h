/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compatibility: operations by which a network device is asked to stamp packets.
 *
 * ndo_hwtstamp_get() and _set(): from 6.6; before, by ndo_eth_ioctl().
 *
 * struct kernel_ethtool_ts_info: from 6.11; before, struct ethtool_ts_info.
 */
#ifndef HWTSTAMP_H
#define HWTSTAMP_H

#include <linux/errno.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define kernel_ethtool_ts_info ethtool_ts_info
#endif

/*
 * DEFINE_HWTSTAMP() - define the functions that HWTSTAMP_OPS() names
 *
 * NAME_hwtstamp_get() and NAME_hwtstamp_set() must be defined before. If the kernel passes no
 * struct netlink_ext_ack, it is NULL.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define kernel_hwtstamp_config hwtstamp_config

#define DEFINE_HWTSTAMP(name)								\
static int name##_ioctl(struct net_device *dev, struct ifreq *request, int command)	\
{											\
	struct hwtstamp_config config;							\
	int ret;									\
											\
	if (command != SIOCSHWTSTAMP && command != SIOCGHWTSTAMP)			\
		return -EOPNOTSUPP;							\
	if (copy_from_user(&config, request->ifr_data, sizeof(config)))			\
		return -EFAULT;								\
	ret = command == SIOCSHWTSTAMP ? name##_hwtstamp_set(dev, &config, NULL) :	\
					 name##_hwtstamp_get(dev, &config);		\
	if (!ret && copy_to_user(request->ifr_data, &config, sizeof(config)))		\
		return -EFAULT;								\
	return ret;									\
}

#define HWTSTAMP_OPS(name) .ndo_eth_ioctl = name##_ioctl
#else
#define DEFINE_HWTSTAMP(name)

#define HWTSTAMP_OPS(name)								\
	.ndo_hwtstamp_get = name##_hwtstamp_get, .ndo_hwtstamp_set = name##_hwtstamp_set
#endif

#endif /* HWTSTAMP_H */
