// SPDX-License-Identifier: GPL-2.0
/*
 * Reports to the socket of a packet.
 */
#include <linux/errqueue.h>
#include <linux/skbuff.h>
#include <net/sock.h>

#include "report.h"

/**
 * shaper_report() - report a packet in the error queue of its socket
 * @skb:	the packet
 * @error:	errno
 * @code:	SO_EE_CODE_TXTIME_*
 *
 * Only sockets with SO_TXTIME that asked for it get a report.
 *
 * Context: Softirqs off, not in hard interrupt.
 */
void shaper_report(struct sk_buff *skb, u32 error, u8 code)
{
	struct sock_exterr_skb *report;
	struct sock *sk = skb->sk;
	struct sk_buff *clone;

	if (!sk || !sk_fullsock(sk) || !sk->sk_txtime_report_errors)
		return;
	clone = skb_clone(skb, GFP_ATOMIC);
	if (!clone)
		return;
	report = SKB_EXT_ERR(clone);
	memset(report, 0, sizeof(*report));
	report->ee.ee_errno = error;
	report->ee.ee_origin = SO_EE_ORIGIN_TXTIME;
	report->ee.ee_code = code;
	report->ee.ee_data = upper_32_bits(ktime_to_ns(skb->tstamp));
	report->ee.ee_info = lower_32_bits(ktime_to_ns(skb->tstamp));
	if (sock_queue_err_skb(sk, clone))
		kfree_skb(clone);
}
