// SPDX-License-Identifier: GPL-2.0
/*
 * Parameter "validate" of the sink: a process writes the number of a socket of its own. The kernel
 * then calls a function of ours for each packet of that socket that it prepares for a driver, as it
 * does for sockets whose TLS a network card computes. The process must end before the module is
 * unloaded.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/net.h>
#include <net/sock.h>

#include "sink.h"

atomic_t sink_validated;

#ifdef CONFIG_SOCK_VALIDATE_XMIT
static struct sk_buff *validate(struct sock *sk, struct net_device *dev, struct sk_buff *skb)
{
	atomic_inc(&sink_validated);
	return skb;
}
#endif

static int validate_set(const char *text, const struct kernel_param *param)
{
#ifdef CONFIG_SOCK_VALIDATE_XMIT
	struct socket *sock;
	int fd, err;

	err = kstrtoint(text, 0, &fd);
	if (err)
		return err;
	sock = sockfd_lookup(fd, &err);
	if (!sock)
		return err;
	sock->sk->sk_validate_xmit_skb = validate;
	sockfd_put(sock);
	return 0;
#else
	return -EOPNOTSUPP;
#endif
}

static const struct kernel_param_ops validate_ops = { .set = validate_set };

module_param_cb(validate, &validate_ops, NULL, 0200);
MODULE_PARM_DESC(validate, "number of a socket whose packets are validated");
