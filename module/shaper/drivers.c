// SPDX-License-Identifier: GPL-2.0
/*
 * Decide which devices may get packets in hard interrupt, and which with interrupts off. netconsole
 * does the same, with a trylock of the device's queue and interrupts off.
 */
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat.h"
#include "drivers.h"

/*
 * Drivers that were tested in this way on a kernel with lockdep, KASAN and the checks for
 * sleeping in atomic context and for packets freed in hard interrupt:
 * tests/guest/test_shaper_drivers.py. A driver's ndo_start_xmit must meet these conditions:
 * - it takes no lock that is taken elsewhere with interrupts on;
 * - it frees packets and calls their destructors only by dev_kfree_skb_any() and the
 *   like.
 *
 * Mode auto sends in hard interrupt with drivers that have no reason against it here. With the
 * others, and with all drivers not listed, only mode hard does, and it reports the reason.
 *
 * In the other modes interrupts are off as well while a driver gets a packet, so that none makes
 * the packet late. netconsole does this with every driver, so it needs no test; @irqs_on is for
 * those that do something else then.
 */
static const struct driver {
	const char *name;
	const char *reason;
	bool irqs_on;
} drivers[] = {
	{ "e1000e", NULL },
	{ "igb", NULL },
	/* netpoll_tx_running(): it does not give what comes with interrupts off to its VF. */
	{ "hv_netvsc", "hv_netvsc does not use its virtual function (VF) in mode hard", true },
	/* No report; but with napi_tx=0, or by ethtool, it calls skb_orphan(), unseen by us. */
	{ "virtio_net",
	  "virtio_net is safe in mode hard only if it was not loaded with napi_tx=0" },
	/* CONFIG_PROVE_RAW_LOCK_NESTING; lockdep reports nothing after its first report. */
	{ "vmxnet3",
	  "vmxnet3 is not safe in mode hard: lockdep reports that its tx_lock may sleep" },
};

/* Return: the driver of a device that has a parent; NULL if it is not listed. */
static const struct driver *listed(const struct net_device *dev)
{
	const char *name = dev_driver_string(dev->dev.parent);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++)
		if (!strcmp(name, drivers[i].name))
			return &drivers[i];
	return NULL;
}

/**
 * shaper_hard_refused() - check whether a device cannot get packets in hard interrupt
 * @dev:	the device
 *
 * Context: Any.
 * Return: the reason, or NULL if it can, as far as its flags show.
 */
const char *shaper_hard_refused(const struct net_device *dev)
{
	/* On PREEMPT_RT the lock of a device's queue sleeps. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return "mode hard is not supported on PREEMPT_RT; use mode thread";
	if (shaper_lltx(dev))
		return "mode hard is not supported on devices that do their own locking";
	/* Virtual devices free packets in the caller's context, with their destructors. */
	if (!dev->dev.parent)
		return "mode hard is not supported on virtual devices";
	if (dev->priv_flags & IFF_DISABLE_NETPOLL)
		return "mode hard is not supported on devices that forbid netpoll";
	return NULL;
}

/**
 * shaper_hard_doubt() - check for a reason against a device's driver in mode hard
 * @dev:	the device, which shaper_hard_refused() accepts
 *
 * Context: Any.
 * Return: the reason for mode auto not to use it, or NULL.
 */
const char *shaper_hard_doubt(const struct net_device *dev)
{
	const struct driver *driver = listed(dev);

	return driver ? driver->reason : "this driver has not been tested with mode hard";
}

/**
 * shaper_irqs_on() - check whether a device's driver needs interrupts on, in modes soft and thread
 * @dev:	the device
 *
 * Context: Any.
 * Return: true for devices that shaper_hard_refused() refuses, too.
 */
bool shaper_irqs_on(const struct net_device *dev)
{
	const struct driver *driver;

	if (shaper_hard_refused(dev))
		return true;
	driver = listed(dev);
	return driver && driver->irqs_on;
}
