"""The goals of the shaper, and how the rows compare: see goals."""

from collections.abc import Callable
from pathlib import Path

from . import shaper
from .goals import Goal, Standing
from .rows import Row, select

TREE = Path(__file__).resolve().parents[3]
# The account of the last torture, an object: tests/guest/test_shaper_torture.py.
TORTURED = TREE / "build/shaper-torture.json"
PACKETS = 10_000_000  # of a whole torture


def _hard(rows: list[Row], bench: str, *, unit: str = "cycles", load: str = "idle") -> Row | None:
    found = select(rows, bench=bench, timer="apic", mode="hard", unit=unit, load=load)
    return found[0] if found else None


def _error(load: str, bench: str = "shaper/error", **limits: int
           ) -> Callable[[list[Row]], Standing | None]:  # fmt: skip
    def stands(rows: list[Row]) -> Standing | None:
        row = _hard(rows, bench, load=load)
        if row is None:
            return None
        text = " / ".join(f"{row[name]:,}" for name in limits)
        met = row["min"] >= 0 and all(row[name] <= limit for name, limit in limits.items())
        return Standing(f"{text}, min {row['min']:,}", met, row["n"])

    return stands


def _later_kernel(series: str, least: int) -> Callable[[list[Row]], Standing | None]:
    """Judge like _error(), by rows of that kernel with at least that many packets."""

    def stands(rows: list[Row]) -> Standing | None:
        mine = [row for row in rows if str(row["kernel"]).startswith(f"{series}.")]
        row = _hard(mine, "shaper/idle")
        if row is None or row["n"] < least:
            return None
        return _error("idle", "shaper/idle", p50=3, p999=8, max=8)(mine)

    return stands


def _spacing(rows: list[Row]) -> Standing | None:
    """Judge the spacing of the figure's burst, and its rate over ten seconds."""
    row, rate = _hard(rows, "shaper/fig5"), _hard(rows, "shaper/lasting", unit="ppm")
    lasting = _hard(rows, "shaper/lasting")
    if row is None or rate is None or lasting is None:
        return None
    if lasting["n"] * shaper.nominal_ns("fig5") < 10e9:
        return None
    met = -4 <= row["min"] and row["max"] <= 4 and abs(rate["mean"]) <= 1
    text = f"{row['min']:,} to {row['max']:,}, rate {rate['mean']:+g} ppm"
    return Standing(text, met, row["n"])


def _stress(bench: str, limit: int, percentile: str = "p999"
            ) -> Callable[[list[Row]], Standing | None]:  # fmt: skip
    def stands(rows: list[Row]) -> Standing | None:
        row = _hard(rows, bench)
        return row and Standing(f"{row[percentile]:,}", 0 <= row["min"] and
                                row[percentile] <= limit, row["n"])  # fmt: skip

    return stands


def _doorbell(rows: list[Row]) -> Standing | None:
    found = {driver: _hard(rows, f"shaper/doorbell/{driver}/set") for driver in shaper.CARDS}
    known = {driver: row for driver, row in found.items() if row is not None}
    if len(known) < len(found):
        return None
    text = ", ".join(f"{row['min']:,} to {row['max']:,}" for row in known.values())
    met = all(row["min"] >= 0 and row["max"] <= 20 for row in known.values())
    return Standing(text, met, min(row["n"] for row in known.values()))


def _cost(rows: list[Row]) -> Standing | None:
    bench = "shaper/cost/100000"
    cycles, error = _hard(rows, bench, unit="packet_cycles"), _hard(rows, bench)
    if cycles is None or error is None:
        return None
    rival = select(rows, bench=bench, timer="fq_slack1", unit="packet_cycles")
    text = f"{cycles['mean']:,.0f} with errors of {error['max']:,} at most"
    text += f"; fq {rival[0]['mean']:,.0f}" if rival else ""
    return Standing(text, cycles["mean"] < 2400 and error["max"] <= 8, error["n"])


def _closer(rows: list[Row]) -> Standing | None:
    own = _hard(rows, "shaper/error")
    rival = select(rows, bench="shaper/error", timer="fq_slack1", load="idle")
    if own is None or not rival:
        return None
    ratio = rival[0]["p50"] / max(own["p50"], 1)
    return Standing(
        f"{ratio:,.0f} times ({own['p50']:,} against {rival[0]['p50']:,})", ratio >= 100
    )


def _torture(rows: list[Row]) -> Standing | None:
    found = select(rows, bench="torture/shaper")
    if not found or found[0]["packets"] < PACKETS:
        return None
    faults = [found[0][name] for name in ("lost", "doubled", "reordered")]
    text = " / ".join(f"{n:,}" for n in faults)
    return Standing(text, not any(faults), found[0]["packets"])


# No sign announces it.
LONGER = "a packet for which interrupts were disabled for longer than for all before it"
GOALS = (
    *(Goal(f"error, hard, {load}: p50 / p99.9 / max", "3 / 8 / 8, none early",
           _error(load, p50=3, p999=8, max=8), why=LONGER) for load in ("idle", "user", "syscall")),
    Goal("error, hard, net: p50 / p99.9 / max", "3 / 8 / 60, none early",
         _error("net", p50=3, p999=8, max=60), why=LONGER),
    Goal("error, hard against fq at slack 1, idle: p50", "100 times closer", _closer),
    Goal("figure 5: spacing, rate over 10 s", "-4 to 4, 1 ppm", _spacing,
         why="the sender allocates memory, for which the kernel disables interrupts for longer "
             "than any lead"),
    Goal("17 us with the sender running: p99.9", "8", _stress("shaper/sender/17000", 8)),
    Goal("10 us with the sender running: p99.9", "8", _stress("shaper/sender/10000", 8)),
    Goal("3 us, queued before: max", "60", _stress("shaper/stress/3000", 60, "max"),
         why="a packet takes the CPU about as long: what delays one delays those behind it"),
    Goal("CPU a packet at 100 us, hard", "below 2,400 at errors of 8 at most", _cost,
         why="the kernel's share and the core's would leave next to nothing for the qdisc"),
    *(Goal(f"{series}: error, hard, idle: p50 / p99.9 / max", "3 / 8 / 8 of 10,000",
           _later_kernel(series, 10_000),
           why=f"lab shaper --only idle --kernel {series} does")
      for series in ("6.12", "7.2")),
    Goal("doorbell of e1000e, igb, virtio_net: error", "within 20", _doorbell,
         why="lab shaper --only doorbell does"),
    Goal("torture, 4 CPUs: lost / doubled / reordered", f"0 / 0 / 0 of {PACKETS:,}", _torture,
         why="docs.results --torture does"),
)  # fmt: skip
