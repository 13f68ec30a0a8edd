// SPDX-License-Identifier: GPL-2.0
/*
 * Which devices may be given packets in hard interrupt. netconsole does that as well:
 * with a try at the lock of the device's queue, and interrupts off.
 */
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat.h"
#include "drivers.h"

/*
 * Drivers that were run so on a kernel with lockdep, KASAN and the checks of sleeping in atomic
 * context and of packets freed in hard interrupt: tests/guest/test_shaper_drivers.py. What has
 * to be true of a driver's ndo_start_xmit:
 * - it takes no lock that is taken elsewhere with interrupts on;
 * - it frees packets and calls their destructors only by dev_kfree_skb_any() and the
 *   like.
 *
 * Those without a reason against it are used by mode auto; the others, and all that are not here,
 * by mode hard only, which says the reason.
 */
static const struct {
	const char *name;
	const char *reason;
} drivers[] = {
	{ "e1000e", NULL },
	{ "igb", NULL },
	/* Without a report; but napi_tx=0, or ethtool, has it call skb_orphan(), unseen by us. */
	{ "virtio_net",
	  "virtio_net is fit for mode hard only as long as it was not loaded with napi_tx=0" },
	/* CONFIG_PROVE_RAW_LOCK_NESTING. Nothing was reported after that, nor looked for. */
	{ "vmxnet3",
	  "vmxnet3 is not fit for mode hard: lockdep reports its tx_lock as one that may sleep" },
};

/**
 * shaper_hard_refused() - say why a device cannot be given packets in hard interrupt
 * @dev:	the device
 *
 * Context: Any.
 * Return: the reason, or NULL if it can as far as its flags tell.
 */
const char *shaper_hard_refused(const struct net_device *dev)
{
	/* The lock of a device's queue sleeps there. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return "mode hard is not for PREEMPT_RT; use mode thread";
	if (shaper_lltx(dev))
		return "mode hard is not for devices that do their own locking";
	/* They free packets, with their destructors, where they are. */
	if (!dev->dev.parent)
		return "mode hard is not for virtual devices";
	if (dev->priv_flags & IFF_DISABLE_NETPOLL)
		return "mode hard is not for devices that forbid netpoll";
	return NULL;
}

/**
 * shaper_hard_doubt() - say what is to be said against a device's driver in mode hard
 * @dev:	the device, one that is not refused
 *
 * Context: Any.
 * Return: the reason for mode auto not to use it, or NULL.
 */
const char *shaper_hard_doubt(const struct net_device *dev)
{
	const char *name = dev_driver_string(dev->dev.parent);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++)
		if (!strcmp(name, drivers[i].name))
			return drivers[i].reason;
	return "this driver was not tested with mode hard";
}
