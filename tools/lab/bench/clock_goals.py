"""The goals of clocks, and how the rows kept by their tests compare: see goals."""

import json
from collections.abc import Callable
from pathlib import Path

from .goals import Goal, Standing
from .rows import Row, select

TREE = Path(__file__).resolve().parents[3]
KEPT = TREE / "build/clocks"  # a file for each row: tests/harness/clock_rows.py
# The tests that keep rows, as arguments of pytest.
TESTS = ("tests/guest/test_skew.py", "tests/guest/test_pps_gen.py", "tests/guest/test_clocks.py",
         "tests/guest/test_phc.py")  # fmt: skip
CHOICE = (
    "test_injected or test_converted or test_four or test_stops or test_pins or test_next_to or "
    "(test_clocks and test_follow and virtual or "
    "(test_costs_the_core_nothing or test_prediction or test_phc2sys) and 6.1-1cpu) "
    "and not clang and not cloud"
)

SMIS = (0, 2000, 100)  # an SMI occurs at one of this many accesses; 0: never
READS = 9  # reads of the counter in one comparison
EXACT = 3  # cycles of mode exact itself, in virtual time
OPERATIONS = ("add", "modify", "delete")


def kept() -> list[Row]:
    """Return the rows that tests have kept."""
    return [json.loads(file.read_text()) for file in sorted(KEPT.glob("*.json"))]


def _limits(bench: str, **limits: int) -> Callable[[list[Row]], Standing | None]:
    def stands(found: list[Row]) -> Standing | None:
        mine = select(found, bench=bench)
        if not mine:
            return None
        text = " / ".join(f"{mine[0][name]:,}" for name in limits)
        return Standing(text, all(mine[0][name] <= limit for name, limit in limits.items()))

    return stands


def _follows(found: list[Row]) -> Standing | None:
    mine = [row for row in found if str(row["bench"]).startswith("clock/follow/")]
    if not mine:
        return None
    most = max(row["most"] for row in mine)
    kernels = ", ".join(str(row["bench"]).rpartition("/")[2] for row in mine)
    return Standing(f"{most} on {kernels}", most <= EXACT + 1)


def _costs(found: list[Row]) -> Standing | None:
    mine = select(found, bench="clock/cost")
    if not mine:
        return None
    more = [mine[0][f"{name}_with"] - mine[0][f"{name}_without"] for name in OPERATIONS]
    return Standing(" / ".join(f"{cycles:+,}" for cycles in more), not any(more))


def _next_to(name: str) -> Callable[[list[Row]], Standing | None]:
    """Compare our pulses with those of the kernel's own generator, idle and under net."""

    def stands(found: list[Row]) -> Standing | None:
        pairs = [[select(found, bench=f"pps/{whose}/{load}") for whose in ("ours", "theirs")]
                 for load in ("idle", "net")]  # fmt: skip
        if not all(ours and theirs for ours, theirs in pairs):
            return None
        numbers = [(ours[0][name], theirs[0][name]) for ours, theirs in pairs]
        text = " against ".join(" / ".join(f"{n:,}" for n in side)
                                for side in zip(*numbers, strict=True))  # fmt: skip
        return Standing(text, all(ours < theirs for ours, theirs in numbers))

    return stands


# The lateness of one CPU in the wait loop, while the other CPUs wait as well or have left it.
STEPS = "Bochs alone makes a CPU late when others have left the loop first: row group/{}/steps"
GOALS = (
    Goal("skew against a truth of 0 to 100,000 cycles: error / width of bounds", "3 / 25",
         _limits("skew/injected", error=3, width=25),
         why="Bochs runs its CPUs in turn: all measurements of a boot are 2 to 4 cycles too low"),
    Goal("timer on a CPU that is 1,000 cycles off: p50 / farthest at p99", "5 / 10",
         _limits("skew/converted", p50=5, p99=10)),
    Goal("group of 2 CPUs, 1,000 cycles off, corrected: starts apart, p99", "5",
         _limits("group/2", p99=5), why=STEPS.format(2)),
    Goal("group of 2 CPUs, skew corrected: p99", "4", _limits("group/2", p99=4),
         why=STEPS.format(2)),
    Goal("group of 4 CPUs, skew corrected: p99", "6", _limits("group/4", p99=6),
         why=STEPS.format(4)),
    *(Goal("common time after a stop, " +
           (f"SMI in one of {smi:,} reads: p99" if smi else "no SMIs: p99"),
           "50", _limits(f"resync/{smi}", p99=50))
      for smi in SMIS),
    *(Goal("stop that is found, less the truth, " +
           (f"SMI in one of {smi:,} reads: p99" if smi else "no SMIs: p99"),
           "50", _limits(f"resync/{smi}", found_p99=50))
      for smi in SMIS),
    Goal("1,000 emulated stops: farthest off / times that time went back", "30 / 0",
         _limits("resync/stops", off=30, back=0)),
    Goal("rate within 10 s, ppb, without / with SMIs", "150 / 150",
         _limits("rate/10s", none=150, smi=150)),
    Goal("expiry in the kernel's clocks, set and steered meanwhile: late by", f"{EXACT} + 1",
         _follows),
    Goal("PTP clock, 100 ms ahead, reads of up to 300 cycles more: off / outside the bounds",
         "15 / 0", _limits("phc/ahead", off=15, outside=0)),
    Goal("conversion of a moment of TAI to TSC, instructions", "60",
         _limits("clock/convert", to=60)),
    Goal("more for add / modify / delete", "0", _costs),
    Goal("pulses, strobe and DTR, idle and net: edges within / missing", "5 / 0",
         _limits("pps/pins", spread=5, missed=0)),
    Goal("edges next to those of pps_gen_parport, idle / net: within", "less", _next_to("spread")),
    Goal("the longest interrupt with an edge, likewise", "less", _next_to("off")),
    Goal("pulses that are left on after unloading, of 100", "0", _limits("pps/unloaded", left=0)),
)  # fmt: skip
