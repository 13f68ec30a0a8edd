"""Benchmark `period`: periods that timers lose, and whether the kernel still makes progress."""

from array import array
from collections import Counter
from collections.abc import Iterable

from .rows import NONE, Row, select
from .script import Script, decode_number, ours
from .size import Size

MODES = {"raw": 1, "exact": 3}  # as in include/linux/apic_timer.h
# The fields of a row with that unit: each is one number per run.
COUNTS = ("ran", "lost", "overruns", "jiffies", "jiffies_due", "timer_late")
BINS = 1 << 17  # of errors, as in tests/modules/bench/period.c
TICK_ALIVE = 0.99  # minimum part of the due jiffies that must have passed
TIMER_LATE = 2  # jiffies by which a timer_list may be late


def scripts(size: Size) -> list[Script]:
    """Return a script for each mode and each of up to 2 seeds, with every period."""
    return [_script(size, seed, mode) for mode in MODES for seed in size.seeds[:2]]


def bench(period_ns: int) -> str:
    """Return the name of the benchmark for a period in ns."""
    return f"period/{period_ns}"


def _script(size: Size, seed: int, mode: str) -> Script:
    script = Script(f"period-{mode}", seed, weight=len(size.periods) * size.period_ms / 250)
    script.do("attach source=$source")
    for period in size.periods:
        measure(script, bench(period), mode, period, size.period_ms)
    script.do("detach")
    return script


def measure(script: Script, name: str, mode: str, period_ns: int, run_ms: int) -> None:
    """Add the measurements of a period to a script, as the benchmark `name`."""
    script.do(f"echo {MODES[mode]} {period_ns} {run_ms} >$bench/period")
    for line, unit in enumerate(COUNTS, start=1):
        script.take_output(f"sed -n {line}p $bench/period_result",
                           ours(name, mode, unit=unit), decode_number)  # fmt: skip
    script.do("cat $bench/period_errors $bench/samples >$work/bench.errors")
    script.take("$work/bench.errors", ours(name, mode), decode_errors)


def decode_errors(data: bytes) -> Counter[int]:
    """Decode the module's bins, u32 per error from -BINS / 2 up, and the errors outside."""
    bins, beyond = array("I", data[: 4 * BINS]), array("q", data[4 * BINS :])
    counts = Counter({n - BINS // 2: times for n, times in enumerate(bins) if times})
    counts.update(beyond)
    return counts


def held(rows: Iterable[Row], mode: str) -> dict[int, bool]:
    """Tell for each period (ns) whether every run lost nothing while the kernel ticked."""
    found = {}
    mine = [r for r in rows if str(r["bench"]).startswith("period/") and r["mode"] == mode]
    for row in select(mine, unit="lost"):
        name = str(row["bench"])
        (passed,) = select(mine, bench=name, unit="jiffies")
        (due,) = select(mine, bench=name, unit="jiffies_due")
        (late,) = select(mine, bench=name, unit="timer_late")
        # A run may begin just after a tick and end just before another.
        ticks = passed["min"] >= TICK_ALIVE * due["max"] - 1
        alive = ticks and late["max"] <= TIMER_LATE
        found[int(name.split("/")[1])] = row["max"] == 0 and alive
    return dict(sorted(found.items()))


def smallest_held(rows: Iterable[Row], mode: str) -> int | None:
    """Return the smallest period (ns) that is held along with all longer ones; None if none is."""
    smallest = None
    for period, good in sorted(held(rows, mode).items(), reverse=True):
        if not good:
            break
        smallest = period
    return smallest


def table(rows: Iterable[Row]) -> str:
    """Return the table of the periods held in each mode."""
    rows = list(rows)
    lines = []
    for mode in MODES:
        good = held(rows, mode)
        if good:
            text = ", ".join(f"{p / 1000:g} us {'held' if g else 'lost'}" for p, g in good.items())
            lines.append(f"apic_timer {mode}: {text}")
    return "\n".join(lines) or NONE
