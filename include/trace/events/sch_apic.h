/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sch_apic

#if !defined(_TRACE_SCH_APIC_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SCH_APIC_H

#include <linux/netdevice.h>
#include <linux/tracepoint.h>
#include <uapi/linux/sch_apic.h>

/* Let programs that read the numbers print their names. */
TRACE_DEFINE_ENUM(TC_APIC_MODE_HARD);
TRACE_DEFINE_ENUM(TC_APIC_MODE_SOFT);
TRACE_DEFINE_ENUM(TC_APIC_MODE_THREAD);

/**
 * sch_apic_enqueue - called when a packet is queued
 * @dev:	its device
 * @skb:	the packet
 * @len:	its length, bytes
 * @want:	requested departure, absolute TSC; the rate may delay it
 * @now:	TSC
 * @queued:	number of packets queued, this one included
 */
TRACE_EVENT(sch_apic_enqueue,

	TP_PROTO(const struct net_device *dev, const void *skb, unsigned int len, u64 want,
		 u64 now, u32 queued),

	TP_ARGS(dev, skb, len, want, now, queued),

	TP_STRUCT__entry(
		__array(char,		dev, IFNAMSIZ)
		__field(const void *,	skb)
		__field(u32,		len)
		__field(u32,		queued)
		__field(u64,		want)
		__field(u64,		now)
	),

	TP_fast_assign(
		strscpy(__entry->dev, dev->name, IFNAMSIZ);
		__entry->skb = skb;
		__entry->len = len;
		__entry->queued = queued;
		__entry->want = want;
		__entry->now = now;
	),

	TP_printk("dev=%s skb=%p len=%u want=%llu ahead=%lld queued=%u",
		  __entry->dev, __entry->skb, __entry->len, __entry->want,
		  (s64)(__entry->want - __entry->now), __entry->queued)
);

/**
 * sch_apic_send - called when a packet was handed to the driver
 * @dev:	its device
 * @skb:	the packet; the driver may have freed it
 * @len:	its length, bytes
 * @at:		its moment, absolute TSC
 * @left:	TSC at the driver's first instruction, as far as is known
 * @ready:	TSC when it could have been handed to the driver
 * @mode:	&enum tc_apic_mode: context of the call
 * @rc:		return code of the driver: 0 if it took the packet
 */
TRACE_EVENT(sch_apic_send,

	TP_PROTO(const struct net_device *dev, const void *skb, unsigned int len, u64 at,
		 u64 left, u64 ready, u32 mode, int rc),

	TP_ARGS(dev, skb, len, at, left, ready, mode, rc),

	TP_STRUCT__entry(
		__array(char,		dev, IFNAMSIZ)
		__field(const void *,	skb)
		__field(u32,		len)
		__field(u32,		mode)
		__field(u64,		at)
		__field(u64,		left)
		__field(u64,		ready)
		__field(int,		rc)
	),

	TP_fast_assign(
		strscpy(__entry->dev, dev->name, IFNAMSIZ);
		__entry->skb = skb;
		__entry->len = len;
		__entry->mode = mode;
		__entry->at = at;
		__entry->left = left;
		__entry->ready = ready;
		__entry->rc = rc;
	),

	TP_printk("dev=%s skb=%p len=%u at=%llu error=%lld wait=%lld mode=%s rc=%d",
		  __entry->dev, __entry->skb, __entry->len, __entry->at,
		  (s64)(__entry->left - __entry->at), (s64)(__entry->left - __entry->ready),
		  __print_symbolic(__entry->mode, { TC_APIC_MODE_HARD, "hard" },
				   { TC_APIC_MODE_SOFT, "soft" },
				   { TC_APIC_MODE_THREAD, "thread" }),
		  __entry->rc)
);

#endif /* _TRACE_SCH_APIC_H */

#include <trace/define_trace.h>
