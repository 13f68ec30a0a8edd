// SPDX-License-Identifier: GPL-2.0
/*
 * Derive a verdict from facts about the TSC.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "worth.h"

/**
 * apic_clock_worth_add() - use what was measured of a CPU
 * @verdict:	verdict so far; @within and @quantum are 0 at the beginning
 * @skew:	skew of an online CPU
 * @ret:	return value of apic_clock_get_skew()
 *
 * Context: Any.
 */
void apic_clock_worth_add(struct apic_clock_verdict *verdict, const struct apic_clock_skew *skew,
			  int ret)
{
	if (ret) {
		verdict->unknown++;
		verdict->contradicted += ret == -ESTALE;
		verdict->unmeasured += ret == -ENODATA;
		return;
	}
	verdict->measured++;
	if (skew->low > 0 || skew->high < 0)
		verdict->apart = true;
	/* The difference of two CPUs, each within its bounds against the reference. */
	verdict->within = max(verdict->within, 2 * (u64)max(abs(skew->low), abs(skew->high)));
	if (skew->quantum)
		verdict->quantum = verdict->quantum ? min(verdict->quantum, skew->quantum) :
						      skew->quantum;
}

/**
 * apic_clock_worth_conclude() - reach a verdict
 * @verdict:	all facts, with all CPUs added; @worth and @within are set
 *
 * Context: Any.
 */
void apic_clock_worth_conclude(struct apic_clock_verdict *verdict)
{
	if (!verdict->stable || verdict->kind == APIC_TIMER_TSC_PLAIN || verdict->contradicted ||
	    verdict->rate_moved || verdict->proven) {
		verdict->worth = APIC_CLOCK_UNTRUSTED;
		verdict->within = U64_MAX;
		return;
	}
	if (verdict->unknown)
		verdict->within = U64_MAX;
	if (verdict->unknown || verdict->virtual || verdict->packages ||
	    verdict->stops || verdict->ahead || verdict->kind != APIC_TIMER_TSC_NONSTOP)
		verdict->worth = APIC_CLOCK_BOUNDED;
	else if (verdict->apart || verdict->adjusted)
		verdict->worth = APIC_CLOCK_CORRECTED;
	else
		verdict->worth = APIC_CLOCK_EXACT;
}

static const char *why_untrusted(const struct apic_clock_verdict *verdict)
{
	if (!verdict->stable)
		return "the kernel has marked it unstable";
	if (verdict->kind == APIC_TIMER_TSC_PLAIN)
		return "its rate may change";
	if (verdict->contradicted)
		return "TSCs moved while their skew was measured";
	if (verdict->rate_moved)
		return "another counter shows that its rate changed";
	return "another counter shows that it stopped or was set";
}

static const char *why_bounded(const struct apic_clock_verdict *verdict)
{
	if (verdict->unknown)
		return "the skew of some CPUs could not be measured";
	if (verdict->virtual)
		return "a hypervisor may move CPUs";
	if (verdict->packages)
		return "the CPUs are in several packages";
	if (verdict->stops || verdict->ahead)
		return "another counter suggests that it stopped or was set";
	return "it may stop in idle";
}

/**
 * apic_clock_worth_reason() - say why a verdict is no better
 * @verdict:	the concluded verdict
 *
 * Return: a short phrase, for the fact that weighs most.
 */
const char *apic_clock_worth_reason(const struct apic_clock_verdict *verdict)
{
	switch (verdict->worth) {
	case APIC_CLOCK_EXACT:
		return "no evidence against it";
	case APIC_CLOCK_CORRECTED:
		return verdict->apart ? "the CPUs' TSCs are known to differ" :
					"TSC_ADJUST differs between CPUs";
	case APIC_CLOCK_BOUNDED:
		return why_bounded(verdict);
	default:
		return why_untrusted(verdict);
	}
}

/**
 * apic_clock_worth_name() - name a verdict
 * @worth:	the verdict
 *
 * Return: one word.
 */
const char *apic_clock_worth_name(enum apic_clock_worth worth)
{
	switch (worth) {
	case APIC_CLOCK_EXACT:
		return "exact";
	case APIC_CLOCK_CORRECTED:
		return "corrected";
	case APIC_CLOCK_BOUNDED:
		return "bounded";
	default:
		return "untrusted";
	}
}
