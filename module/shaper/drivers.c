// SPDX-License-Identifier: GPL-2.0
/*
 * Which devices may be given packets in hard interrupt. netconsole does that as well:
 * with a try at the lock of the device's queue, and interrupts off.
 */
#include <linux/device.h>
#include <linux/string.h>

#include "compat.h"
#include "drivers.h"

/*
 * Drivers that mode auto sends to from hard interrupt. Each of them has been run so
 * on a kernel with lockdep, KASAN and the checks of sleeping in atomic context and of
 * packets freed in hard interrupt, without a report: tests/guest/test_shaper_drivers.py.
 * What has to be true of a driver's ndo_start_xmit:
 * - it takes no lock that is taken elsewhere with interrupts on;
 * - it frees packets and calls their destructors only by dev_kfree_skb_any() and the
 *   like.
 *
 * Others are for mode hard only. virtio_net was run without a report, but loaded with
 * napi_tx=0, or switched to that by ethtool, it calls skb_orphan(), and nobody outside can
 * see that. vmxnet3 takes its tx_lock with interrupts off, which lockdep reports as a lock
 * that may sleep (CONFIG_PROVE_RAW_LOCK_NESTING), and it reports nothing after that.
 */
static const char *const tested[] = {
	"e1000e",
	NULL
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
 * shaper_hard_tested() - check whether a device's driver was tested with mode hard
 * @dev:	the device, one that is not refused
 *
 * Context: Any.
 * Return: whether mode auto may use it.
 */
bool shaper_hard_tested(const struct net_device *dev)
{
	return match_string(tested, -1,
			    dev_driver_string(dev->dev.parent)) >= 0;
}
