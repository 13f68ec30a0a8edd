"""Figures of the instruments in virtual time, with the cycles that the plug-in `caches` adds.

The guest's own figures count instructions. The plug-in records, for each RDTSC, the cycles that its
cache model has added so far; the figures here combine the two. The guest, and so its timers, do not
see the added cycles. Therefore code whose course depends on them is not modelled, with two
exceptions: loops on the TSC, whose end is computed here, and the wait of mode exact, which consists
of such loops.

The rows are those of `apic-timer accuracy ... --json`, for `apic-timer report` to draw.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ..base.errors import LabError
from ..base.progress import say
from ..build import build, plugins, tool
from ..engines import virtual
from ..kernels.kernels import Kernel
from . import series
from .symbols import Symbol, Symbols

MODULES = ("apic_timer", "apic_measure")
ENTRY = "asm_sysvec_apic_timer_interrupt"
AHEAD = 1000  # cycles: the loop's first target, as by default in user/tool/accuracy.c
FIRST = 160  # shots that are drawn, as in that file
DRAWN = 2000  # likewise, points that are drawn
TIMEOUT = 900  # s
PAUSE_REST = 2048  # cycles: APIC_TIMER_SPIN_REST of module/core/hw/spin.h
SAMPLE = 8  # bytes per struct apic_measure_sample
SAMPLES = 8  # per cache line
PAGE_LINES = 64  # lines per page

PREPARE = f"""
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_measure.ko
cat /proc/kallsyms >/tmp/kallsyms
grep '\\[apic_' /tmp/kallsyms | put symbols
set -- $(grep ' {ENTRY}$' /tmp/kallsyms)
rm /tmp/kallsyms
tell watch $1
window() {{
    name=$1 caches=$2
    shift 2
    tell begin $name $caches
    /apic-timer accuracy "$@" --json >/tmp/rows
    tell end
    put $name.json </tmp/rows
}}
"""


@dataclass(frozen=True)
class Loop:
    """A row of loops: a way to wait, and the prior state of the caches."""

    way: str
    caches: str = "on"  # "off": no caches
    more: str = ""  # further options of the command


@dataclass(frozen=True)
class Timer:
    """A periodic timer."""

    period: int  # us
    behind: str
    caches: str = "on"
    more: str = ""
    mode: str = "raw"
    count: int = 0  # 0: the report's number


LOOPS = {
    "loop": (Loop("rdtsc"), Loop("across")),
    "loop-off": (Loop("rdtsc", "off"), Loop("across", "off")),
    "loop-walk": (Loop("rdtsc", more="--walk 512"), Loop("across", more="--walk 512")),
    "loop-flush": (Loop("rdtsc", more="--flush"), Loop("across", more="--flush")),
}
TIMERS = {
    **{f"{period}-{behind}{'-off' * (caches == 'off')}": Timer(period, behind, caches)
       for caches in ("on", "off") for period in (100, 15) for behind in ("nop", "cpuid")},
    "100-nop-walk-l1": Timer(100, "nop", more="--walk 64"),
    "100-nop-walk": Timer(100, "nop", more="--walk 512"),
    "100-nop-walk-l3": Timer(100, "nop", more="--walk 8192"),
    "100-nop-flush": Timer(100, "nop", more="--flush"),
    **{f"{period}-{behind}-exact": Timer(period, behind, mode="exact")
       for period in (100, 15) for behind in ("nop", "cpuid")},
    "100-nop-walk-exact": Timer(100, "nop", more="--walk 512", mode="exact"),
    # Of that many samples, few are still in the first-level cache when they are stored.
    "15-nop-stored": Timer(15, "nop", count=20_000),
    "15-nop-counted": Timer(15, "nop", more="--keep none", count=20_000),
}  # fmt: skip

# The work of each guest: two guests, for two cores.
SLOW = {file: one for file, one in TIMERS.items() if one.count}
PARTS = [(LOOPS, SLOW), ({}, {f: one for f, one in TIMERS.items() if f not in SLOW})]


def size(brief: bool) -> dict[str, int]:
    """Return the numbers of shots and expiries for a report."""
    return {"shots": 640, "expiries": 1000} if brief else {"shots": 2000, "expiries": 2000}


@dataclass(frozen=True)
class Record:
    """A line of the plug-in's output: an RDTSC, or a jump to a watched address."""

    address: int
    executed: int
    added: int

    @property
    def cycles(self) -> int:
        """Its time in the model."""
        return self.executed + self.added


@dataclass
class Window:
    """The plug-in's output for one command."""

    records: list[tuple[str, Record]] = field(default_factory=list)  # "t" or "w"
    hits: list[int] = field(default_factory=list)
    misses: list[int] = field(default_factory=list)


@dataclass
class Written:
    """All of the plug-in's output."""

    geometry: list[dict] = field(default_factory=list)
    windows: dict[str, Window] = field(default_factory=dict)


def parse(text: str) -> Written:
    """Parse the plug-in's output."""
    written, window = Written(), Window()
    for line in text.splitlines():
        kind, *rest = line.split()
        if kind in ("t", "w"):
            address, executed, added, *_ = rest
            window.records.append((kind, Record(int(address, 16), int(executed), int(added))))
        elif kind == "c":
            window.hits.append(int(rest[1]))
            window.misses.append(int(rest[2]))
        elif kind == ":" and rest[0] == "begin":
            window = written.windows[rest[1]] = Window()
        elif kind == "cache":
            written.geometry.append({"of": rest[0], **_pairs(rest[1:])})
        elif kind == "memory":
            written.geometry.append({"of": "memory", **_pairs(rest)})
    return written


def _pairs(words: list[str]) -> dict[str, int]:
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def script(loops: dict, timers: dict, *, shots: int, expiries: int) -> str:
    """Return a guest's script for rows of loops and timers, each with these shots or expiries."""
    lines = [PREPARE]
    for file, pair in loops.items():
        lines += [f"window {file}.{one.way} {one.caches} loop --way {one.way} --count {shots} "
                  f"--ahead {AHEAD} {one.more}" for one in pair]  # fmt: skip
    lines += [f"window {file} {one.caches} periodic --period {one.period} --behind {one.behind} "
              f"--count {one.count or expiries} --mode {one.mode} {one.more}"
              for file, one in timers.items()]  # fmt: skip
    return "\n".join(lines)


def rows(files: Mapping[str, bytes], loops: dict, timers: dict, *, shots: int) -> dict:
    """Return the rows from a guest's files, by the file they are for, including the model's."""
    written = parse(files["caches"].decode())
    symbols = Symbols(files["symbols"].decode())
    found: dict = {"model": {"caches": written.geometry}}
    for file, pair in loops.items():
        found[file] = {"of": "loop", "tsc_step": 1, "caches": caches_text(pair[0]), "rows": [
            loop_row(one, written.windows[f"{file}.{one.way}"], symbols, shots)
            for one in pair]}  # fmt: skip
    for file, one in timers.items():
        found[file] = timer_row(one, written.windows[file], symbols,
                                json.loads(files[f"{file}.json"]))  # fmt: skip
    return found


def measure(kernel: Kernel, loops: dict, timers: dict, *, shots: int, expiries: int) -> dict:
    """Run the instruments in one guest; return the rows."""
    started = time.monotonic()
    say("report", "running instruments with a model of caches")
    built = build.build(kernel)
    result = virtual.run(
        kernel, script(loops, timers, shots=shots, expiries=expiries), timeout=TIMEOUT,
        modules=[build.find_ko(built, name) for name in MODULES],
        files={"apic-timer": tool.tool()}, plugins={"caches": plugins.plugin("caches")},
    ).check()  # fmt: skip
    say("report", f"modelled, done in {time.monotonic() - started:.0f} s")
    return rows(result.files, loops, timers, shots=shots)


def caches_text(one: Loop | Timer) -> str:
    """Return a description of a row's caches."""
    if one.caches == "off":
        return "off"
    option, _, size = one.more.partition(" ")
    return {"--walk": f"after a walk through {size} KiB", "--flush": "flushed"}.get(option, "on")


def waits(window: Window, symbols: Symbols, way: str) -> Iterator[tuple[Record, list[Record]]]:
    """Yield for each shot of a loop the RDTSC from which its target is counted, and its reads.

    The loop's function has two RDTSCs: the loop's own, and one after it.
    """
    function = Symbol(f"wait_{way}", "apic_measure")
    reads: list[Record] = []
    before = None
    for kind, record in window.records:
        if kind != "t":
            continue
        if symbols.find(record.address) != function:
            before = record
        elif not reads or record.address == reads[0].address:
            reads.append(record)
        elif before:
            yield before, reads
            reads = []


def loop_row(one: Loop, window: Window, symbols: Symbols, shots: int) -> dict:
    """Return the row of a loop: the first read at or after the target, minus the target.

    Each shot's target is one cycle further ahead than the previous one, see module/measure/loop.c;
    the first shot is not counted. The guest keeps reading for as many instructions as the target is
    ahead: longer than a CPU that needs more than a cycle per instruction.
    """
    _, *every = waits(window, symbols, one.way)
    if len(every) != shots:
        raise LabError(f"the plug-in recorded {len(every)} of {shots} shots")
    errors, turns = [], []
    for number, (start, reads) in enumerate(every):
        turns += [after.cycles - read.cycles for read, after in pairwise(reads)]
        target = start.cycles + AHEAD + number
        errors.append(next(read.cycles for read in reads if read.cycles >= target) - target)
    most = series.quantile(errors, 99)
    lag, how = series.period(errors, min(200, shots // 4), most)
    return {
        "way": one.way, "n": shots, "min": min(errors), "p1": series.quantile(errors, 1),
        "p50": series.quantile(errors, 50), "p90": series.quantile(errors, 90), "p99": most,
        "max": max(errors), "sd": round(series.deviation(errors, most), 1), "period": lag,
        "repeats": round(how, 2), "turn": series.quantile(turns, 50), "first": errors[:FIRST],
    }  # fmt: skip


@dataclass(frozen=True)
class Expiry:
    """A run of the instrument's handler."""

    entry: Record  # the interrupt's first instruction
    dispatch: tuple[Record, ...]  # the RDTSCs before the handler is called, in one function
    stored: Record  # the RDTSC after the sample was stored

    @property
    def now(self) -> Record:
        """The RDTSC whose value the handler gets."""
        return self.dispatch[-1]

    def added(self, record: Record) -> int:
        """Return the cycles that the model has added since the interrupt."""
        return record.added - self.entry.added


def expiries(window: Window, symbols: Symbols) -> Iterator[Expiry]:
    """Yield the runs of the handler `expired`, which has one RDTSC."""
    entry, dispatch = None, []
    for kind, record in window.records:
        where = symbols.find(record.address)
        if kind == "w":
            entry, dispatch = record, []
        elif where == Symbol("expired", "apic_measure"):
            if not entry or not dispatch:
                raise LabError("a handler ran without an interrupt")
            yield Expiry(entry, tuple(dispatch), record)
            dispatch = []
        elif where == Symbol("apic_timer_dispatch", "apic_timer"):
            dispatch.append(record)


def turn(every: list[Expiry]) -> int:
    """Return the cycles of an iteration of the loop that ends the wait of mode exact."""
    return min((after.executed - read.executed for e in every
                for read, after in pairwise(e.dispatch)
                if read.address == after.address == e.now.address), default=1)  # fmt: skip


def exact_error(e: Expiry, given: int, length: int) -> int:
    """Return a handler's error in mode exact in the model, whose TSC is ahead of the guest's.

    given: the guest's error; length: of an iteration of the last wait loop, see apic_timer_spin()

    The wait ends sooner in the model than in the guest, by the cycles added on the way to it. Its
    end is computed from the records of the PAUSE loop, as far as the model gets there, and of the
    way from it to the last loop, whose iterations all take the same time.
    """

    def error(record: Record) -> int:
        """Return the error if this was the last reading of the TSC."""
        return given - (e.now.executed - record.executed) + e.added(record)

    last = next(n for n, read in enumerate(e.dispatch) if read.address == e.now.address)
    # The first is the reading when everything was ready.
    waits = e.dispatch[1:last]
    if not waits:
        return error(e.now)
    left = next((read for read in waits if error(read) >= -PAUSE_REST), waits[-1])
    there = error(left) + e.dispatch[last].cycles - waits[-1].cycles
    return there + max(0, -(there // length)) * length


def timer_row(one: Timer, window: Window, symbols: Symbols, given: dict) -> dict:
    """Return the row of a timer.

    An error is the guest's error plus the cycles that the model has added since the interrupt's
    first instruction; in mode exact it is what remains of them when the wait ends. A body begins
    with the call of the handler, unlike the guest's. The guest reports its first 2,000 errors, if
    it stores them.
    """
    every = list(expiries(window, symbols))
    if len(every) != given["n"]:
        raise LabError(f"the plug-in recorded {len(every)} of {given['n']} expiries")
    exact = given["mode"] == "exact"
    # Added before the handler could start; in mode exact it waits there.
    added = [e.added(e.dispatch[0] if exact else e.now) for e in every]
    if exact:
        length = turn(every)
        errors = [exact_error(e, error, length)
                  for e, error in zip(every, given.get("first", ()), strict=False)]  # fmt: skip
    else:
        errors = [error + more for error, more in zip(given.get("first", ()), added, strict=False)]
    bodies = [e.stored.cycles - e.now.cycles for e in every]
    # The kernel's tick interrupts now and then.
    lag, how = series.period(bodies, 64, series.quantile(bodies, 99))
    row = {
        "of": "periodic", "mode": given["mode"], "period_us": one.period, "behind": one.behind,
        "caches": caches_text(one), "keep": given["keep"], "n": given["n"],
        "added": series.summary(added), "body": series.summary(bodies),
        "body_min": min(bodies), "body_period": lag, "body_repeats": round(how, 2),
        "first_bodies": bodies[:DRAWN], **stored(bodies, given["keep"]),
    }  # fmt: skip
    if errors:
        row |= {"error": series.summary(errors), "error_min": min(errors),
                "error_sd": round(series.deviation(errors, max(errors)), 1),
                "first": errors[:DRAWN]}  # fmt: skip
    return row


def stored(bodies: list[int], keep: str) -> dict:
    """Return the cost of a sample that begins a cache line or a page, where all are stored.

    The bodies of samples that begin a line are for drawing, except for the few that something else
    interrupted.
    """
    if keep != "all" or len(bodies) < 4 * SAMPLES * PAGE_LINES:
        return {}
    steps = [{"samples": SAMPLES * lines, "bytes": SAMPLES * lines * SAMPLE,
              "cycles": series.step(bodies, SAMPLES * lines, SAMPLES)}
             for lines in (1, PAGE_LINES)]  # fmt: skip
    most = series.quantile(bodies, 50) + 2 * sum(step["cycles"] for step in steps)
    begin = series.slowest(bodies, SAMPLES)
    lines = [[n, bodies[n]] for n in range(begin, len(bodies), SAMPLES)][:DRAWN]
    drawn = [pair for pair in lines if pair[1] <= most]
    return {"steps": steps, "lines": drawn, "lines_most": most,
            "lines_left_out": len(lines) - len(drawn)}  # fmt: skip


def write(found: dict, folder: Path) -> None:
    """Write rows where `apic-timer report` looks for them, replacing those already there."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.json"):
        file.unlink()
    for name, row in found.items():
        (folder / f"{name}.json").write_text(json.dumps(row))
