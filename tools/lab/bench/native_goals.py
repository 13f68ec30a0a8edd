"""The goals that only a real CPU can show, and how to read from a run's rows where each stands."""

from .goals import Goal, Standing
from .rows import Row, select

SPREAD_CYCLES, SPREAD_MEMORY = 0.1, 1.0  # per cent, of 10 runs
OFF_NS = 5_000  # interrupts off, with cold caches
# The operation that moves all timers, once after a sleep, when nothing else runs.
APART = "shift"
ENOUGH = 100  # samples: of fewer, the 99th percentile is the maximum


def _never_early(rows: list[Row]) -> Standing | None:
    found = select(rows, bench="spin")
    return Standing(f"{found[0]['early']}", not found[0]["early"]) if found else None


def _program_never_early(rows: list[Row]) -> Standing | None:
    found = select(rows, bench="until")
    return Standing(f"{found[0]['early']}", not found[0]["early"]) if found else None


def _queue(rows: list[Row]) -> Standing | None:
    found = [row for row in select(rows, bench="queue/time")
             if row["operation"] != APART and row["n"] >= ENOUGH]  # fmt: skip
    if not found:
        return None
    worst = max(found, key=lambda row: row["p99"])
    where = f"{worst['operation']}, {worst['pending']:,} pending, {worst['order']}"
    return Standing(f"{worst['p99']:,} ns: {where}", worst["p99"] <= OFF_NS)


def _widest(rows: list[Row], name: str, limit: float) -> Standing | None:
    if not rows:
        return None
    spreads = sorted(float(row["spread_percent"]) for row in rows)
    good = sum(spread <= limit for spread in spreads)
    widest = max(rows, key=lambda row: float(row["spread_percent"]))
    return Standing(f"{good} of {len(rows)} rows; widest {spreads[-1]} %: {widest[name]}",
                    good == len(rows))  # fmt: skip


def _cycles(rows: list[Row]) -> Standing | None:
    return _widest(select(rows, bench="cycles/rows"), "loop", SPREAD_CYCLES)


def _memory(rows: list[Row]) -> Standing | None:
    """Judge the rings that fit into one of the first two caches with as much room left.

    A ring that only just fits into the first is in both, in parts that depend on its other users.
    """
    caches = select(rows, bench="caches")
    if not caches or "l2" not in caches[0]:
        return None
    l1, l2 = int(caches[0]["l1"]), int(caches[0]["l2"])
    rings = [{**row, "ring": f"{row['kib']} KiB"} for row in select(rows, bench="memory/by_size")
             if 2 * int(row["kib"]) <= l1 or l1 < int(row["kib"]) <= l2 // 2]  # fmt: skip
    return _widest(rings, "ring", SPREAD_MEMORY)


SHARED = "a core's caches may be shared with another thread, a guest's also with other guests"
GUEST = "the core is shared with other work, for longer than the tool waits for it to end"
GOALS = (
    Goal("mode exact: handlers that start early", "0", _never_early, holds=True),
    Goal("the library's wait: programs that go on early", "0", _program_never_early, holds=True),
    Goal("interrupts off for the queue, cold caches: p99", f"{OFF_NS:,} ns", _queue,
         why="cache misses, one after the other: 40 at most in 99 of 100"),
    Goal("cycles: spread of 10 runs", f"{SPREAD_CYCLES} % in each row", _cycles, why=GUEST),
    Goal("memory: spread of 10 runs in the first two caches", f"{SPREAD_MEMORY} % in each row",
         _memory, why=SHARED),
)  # fmt: skip
