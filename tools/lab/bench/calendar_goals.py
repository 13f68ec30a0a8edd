"""The goals of the calendar, and how to read from rows where each stands: see goals."""

from collections.abc import Callable

from .goals import LONGER, Goal, Standing
from .rows import LOST, Row, lost, select

DISPATCH, TIMEOUT, RESUMED, GAP, STOPPED, TOGETHER = (
    f"calendar/{what}"
    for what in ("dispatch", "timeout", "resumed", "gap", "gap_stopped", "together")
)
THREADS = ("sense", "plan", "act")
GAP_LOADS = ("idle", "syscall")
LOADS = (*GAP_LOADS, "net")
LAST = 50  # cycles
APART = 10  # likewise
SMALLEST_NS = 4_000
PARTS = 1000  # at the smallest gap, at most one window in this many is lost


def _dispatch(load: str, *, units: tuple[str, ...] = THREADS, **limits: int
              ) -> Callable[[list[Row]], Standing | None]:  # fmt: skip
    def stands(rows: list[Row]) -> Standing | None:
        found = [select(rows, bench=f"{DISPATCH}/{unit}", load=load, unit="cycles")
                 for unit in units]  # fmt: skip
        if not all(found):
            return None
        worst = {name: max(row[name] for (row,) in found) for name in limits}
        least = min(row["min"] for (row,) in found)
        text = " / ".join(f"{worst[name]:,}" for name in limits)
        met = least >= 0 and all(worst[name] <= limit for name, limit in limits.items())
        return Standing(f"{text}, min {least:,}", met, min(row["n"] for (row,) in found))

    return stands


def _together(what: str) -> Callable[[list[Row]], Standing | None]:
    def stands(rows: list[Row]) -> Standing | None:
        late, apart = (
            select(rows, bench=f"{TOGETHER}/{what}/{kind}") for kind in ("late", "apart")
        )
        if not late or not apart:
            return None
        row = apart[0]
        text = f"{row['p50']:,} / {row['p99']:,}, min {late[0]['min']:,}"
        return Standing(text, late[0]["min"] >= 0 and row["p99"] <= APART, row["n"])

    return stands


def _timeout(load: str) -> Callable[[list[Row]], Standing | None]:
    def stands(rows: list[Row]) -> Standing | None:
        found = select(rows, bench=TIMEOUT, load=load)
        if not found:
            return None
        return Standing(f"{found[0]['max']:,}", found[0]["max"] <= LAST, found[0]["n"])

    return stands


def smallest(rows: list[Row], load: str, gap: str = GAP) -> int | None:
    """Return the smallest gap, in ns, from which on windows start as exactly as they should.

    gap: GAP, behind a thread that has ended its window, or STOPPED
    """
    found = {}
    for row in rows:
        if row["bench"].startswith(f"{gap}/") and row["load"] == load:
            ns = int(row["bench"].rpartition("/")[2])
            good = lost(row) * PARTS <= row["n"] if row["unit"] == LOST else (
                row["min"] >= 0 and row["p99"] <= 4)  # fmt: skip
            found[ns] = found.get(ns, True) and good
    best = None
    for ns in sorted(found, reverse=True):
        if not found[ns]:
            break
        best = ns
    return best


def _gap(load: str, gap: str) -> Callable[[list[Row]], Standing | None]:
    def stands(rows: list[Row]) -> Standing | None:
        mine = [row for row in rows if row["bench"].startswith(f"{gap}/") and row["load"] == load]
        if not mine:
            return None
        best, shots = smallest(rows, load, gap), min(row["n"] for row in mine)
        if best is None:
            return Standing("more than measured", False, shots)
        return Standing(f"{best:,} ns", best <= SMALLEST_NS, shots)

    return stands


# By whether the previous thread ended its window itself, or was stopped at its end.
WHY_GAP = {
    GAP: LONGER,
    STOPPED: "the wake-up begins when the one before is off the CPU: see the errors above",
}
GOALS = (
    Goal("threads, idle: p99 / p99.9 / max", "4 / 4 / 4, none early",
         _dispatch("idle", p99=4, p999=4, max=4), why=LONGER),
    Goal("threads, syscall: p99.9 / max", "4 / 100, none early",
         _dispatch("syscall", p999=4, max=100), why=LONGER),
    Goal("function, idle: max", "4, none early", _dispatch("idle", units=("pulse",), max=4),
         why="an expiry while interrupts are off waits for their end"),
    Goal("function, syscall: p99.9 / max", "4 / 100, none early",
         _dispatch("syscall", units=("pulse",), p999=4, max=100),
         why="an expiry while interrupts are off waits for their end"),
    Goal("function, net: max", "4, none early", _dispatch("net", units=("pulse",), max=4),
         why="an expiry while interrupts are off waits for their end"),
    Goal("last instruction after the end, idle", "50", _timeout("idle")),
    Goal("last instruction after the end, syscall", "50", _timeout("syscall")),
    *(Goal(f"smallest gap behind a thread that {what}, {load}", f"{SMALLEST_NS:,} ns",
           _gap(load, gap), why=WHY_GAP[gap])
      for gap, what in ((GAP, "has ended"), (STOPPED, "is stopped"))
      for load in GAP_LOADS),
)  # fmt: skip
# Of two CPUs, in Bochs.
PAIRED_GOALS = (
    Goal("functions that start at one TSC value on two CPUs: apart, p50 / p99",
         f"{APART} / {APART}, none early", _together("functions")),
    Goal("threads: apart, p50 / p99", f"{APART} / {APART}, none early", _together("threads"),
         why="Bochs runs its CPUs in turn: some wake-ups take longer than any before them"),
)  # fmt: skip
