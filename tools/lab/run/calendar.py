"""Measure calendars for docs/results: starts of windows, ends of threads, the smallest gap.

Everything runs in virtual time, as the demo does, and with the demo's units, except what needs two
CPUs: together.py. For the gaps, two threads take turns: in each cycle the first ends one of its
windows itself, and is stopped at the end of the other.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from ..base.progress import say
from ..bench import rows
from ..bench.calendar_goals import DISPATCH, GAP, GAP_LOADS, LOADS, RESUMED, STOPPED, TIMEOUT
from . import demo_calendar, together

# Kernels, and their parameters: those of Debian 12 and 13 preempt kernel code only with this one.
SERIES = (("6.1", ""), ("6.1", "preempt=full"), ("7.2", ""))
CYCLES, GAP_CYCLES = 20_000, 2_000  # of a millisecond each
SHORT, GAP_SHORT = 2_000, 300
GAPS_NS = (2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000)
BUDGET_NS = 50_000
FIRST, SECOND = demo_calendar.UNITS[:2]


def measure(*, short: bool) -> list[dict]:
    """Run everything; return rows. RuntimeError when a guest fails."""
    found = []
    for series, append in SERIES:
        brief = short or series != SERIES[0][0]
        runs = [demo_calendar.Run(SHORT if brief else CYCLES)]
        for gap in GAPS_NS:
            runs.append(demo_calendar.Run(GAP_SHORT if brief else GAP_CYCLES, table(gap), gap,
                                          FIRST, every=1))  # fmt: skip
        samples, release = {}, ""
        for load in LOADS:
            say("calendar", f"{series} {append}, {load}")
            asked = runs if load in GAP_LOADS else runs[:1]
            shown = demo_calendar.measure_all(series, asked, load, append)
            if shown is None:
                raise RuntimeError("the guest failed")
            release = shown[0].release
            samples |= dict(_of_demo(shown[0], load))
            for gap, run in zip(GAPS_NS, shown[1:], strict=load in GAP_LOADS):
                for bench, result in ((GAP, "ran"), (STOPPED, "timed out")):
                    key = rows.Key(f"{bench}/{gap}", SECOND, load=load)
                    errors, lost = behind(run, result)
                    # A window that a thread did not get has no error.
                    samples |= {key: errors} if errors else {}
                    samples[key._replace(unit=rows.LOST)] = lost
        found += rows.rows(samples, kernel=f"{release} {append}".strip(), engine="virtual", cpus=1)
    say("calendar", "two CPUs, in Bochs")
    return found + together.measure()


def table(gap_ns: int) -> bytes:
    """Return a calendar in which two threads take turns, with this gap between them."""
    text, at = [f"unit {FIRST} cpu 0 user", f"unit {SECOND} cpu 0 user", "table gaps major 1ms"], 0
    for unit in (FIRST, SECOND) * 2:
        at += 100_000 if unit == FIRST else gap_ns
        text.append(f"at {at}ns run {unit} for {BUDGET_NS}ns")
        at += BUDGET_NS
    return "\n".join([*text, ""]).encode()


def _of_demo(shown: demo_calendar.Found, load: str) -> Iterator[tuple[rows.Key, Counter[int]]]:
    for unit in demo_calendar.UNITS:
        yield rows.Key(f"{DISPATCH}/{unit}", unit, load=load), shown.errors[unit]
    unit = demo_calendar.OVERRUNS
    yield (rows.Key(TIMEOUT, unit, load=load),
           Counter(broken.last - broken.timeout for broken in shown.breaks))  # fmt: skip
    starts = sorted(r.start for r in shown.receipts if demo_calendar.UNITS[r.unit] == unit)
    # The end of the calendar may have released the last one.
    yield (rows.Key(RESUMED, unit, load=load),
           Counter(broken.resumed - starts[bisect_right(starts, broken.timeout)]
                   for broken in shown.breaks if broken.timeout < starts[-1]))  # fmt: skip


def behind(shown: demo_calendar.Found, result: str) -> tuple[Counter[int], Counter[int]]:
    """Return the second thread's errors, and 1 for each window that it did not get, 0 for others.

    result: how the first thread's previous window ended, one of demo_calendar.RESULTS
    """
    ran = [demo_calendar.RESULTS.index(name) for name in ("ran", "timed out")]
    errors, lost = Counter(), Counter()
    for before, receipt in pairwise(shown.receipts):
        if (receipt.cycle < demo_calendar.WARM_UP or demo_calendar.UNITS[receipt.unit] != SECOND
                or before.result != demo_calendar.RESULTS.index(result)):  # fmt: skip
            continue
        lost[int(receipt.result not in ran)] += 1
        if receipt.result in ran and receipt.began:
            errors[receipt.began - receipt.start] += 1
    return errors, lost
