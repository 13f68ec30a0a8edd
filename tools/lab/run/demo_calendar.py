"""The calendar's demo: three threads and a kernel function run by a table; one of them overruns.

It runs in one boot of a stock kernel in virtual time. Every figure is from the run just made.
"""

import struct
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ..base.progress import say
from ..bench import figures
from ..build import build, user
from ..engines import virtual
from ..kernels import kernels

SERIES = "6.1"
CYCLES = 1000  # of 1 ms: a second
FILE = build.TREE / "samples/demo.calendar"
UNITS = ("sense", "plan", "act", "pulse")  # as in the file
OVERRUNS, EVERY = "plan", 8  # the unit that overruns, and in which cycles
WARM_UP = 20  # cycles in which a unit learns the length of its wake-up
MODULES = ("apic_timer", "apic_calendar", "apic_calendar_pulse")
RESULTS = ("ran", "timed out", "missed", "never ran", "skipped", "stopped", "passed")
RIVAL = """\
A thread that clock_nanosleep() wakes starts some thousand cycles after its moment in the same
guest: `make demo` has its table."""
WHERE_TO_GO_ON = """\
Where to go on:
  docs/tutorial/run-a-calendar.md     the same on your machine
  docs/reference/calendar.md          files, operations, errors, limits
  docs/explanation/calendar.md        how it works, and what outranks a unit"""
# Programs that make system calls, or send to each other through the loopback device.
LOADS = {
    "syscall": "exec hackbench -l 1000000000 -g 1 -f 5",
    "net": "busybox nc -l -p 5801 </dev/zero & sleep 0.2; "
    "exec busybox nc 127.0.0.1 5801 </dev/zero",
}


class Receipt(NamedTuple):
    """struct apic_calendar_receipt."""

    number: int
    start: int
    woken: int
    resumed: int
    began: int
    ended: int
    cycle: int
    entry: int
    unit: int
    cpu: int
    table: int
    result: int
    count: int


class Break(NamedTuple):
    """A window whose end its thread did not wait for, as TSC values."""

    timeout: int
    last: int  # the thread's last read of the TSC
    resumed: int  # the next one
    zero: int


class Found(NamedTuple):
    """Results of one boot."""

    release: str
    receipts: list[Receipt]
    errors: dict[str, Counter[int]]  # first instruction less start, TSC cycles, by unit
    breaks: list[Break]
    left_out: int  # number of initial cycles that `errors` leaves out


def main() -> int:
    """Run the demo. Return 0 only if all of it worked. May raise LabError."""
    started = time.monotonic()
    found = measure(SERIES, CYCLES)
    if found is None:
        return 1
    print(text(found), end="")
    say("demo", f"done in {time.monotonic() - started:.0f} s")
    return 0


class Run(NamedTuple):
    """One run of a calendar."""

    cycles: int
    file: bytes | Path = FILE  # whose units are named by UNITS, in their order
    gap_ns: int = 5000  # parameter of the module
    overruns: str = OVERRUNS
    every: int = EVERY


def measure(
    series: str, cycles: int, load: str = "idle", file: bytes | Path = FILE
) -> Found | None:
    """Boot a guest and run the calendar; None, with the reason on standard error, if it fails.

    load: "idle", or one of LOADS, which runs at the same time
    file: a different calendar, with units named by UNITS too
    """
    found = measure_all(series, [Run(cycles, file)], load)
    return found[0] if found else None


def measure_all(
    series: str, runs: list[Run], load: str = "idle", append: str = ""
) -> list[Found] | None:
    """Do the same with several calendars in turn, in one guest.

    append: further parameters of its kernel
    """
    say("demo", f"kernel: Debian's {series} (downloaded once)")
    kernel = kernels.ensure(series)
    say("demo", f"building the modules for {kernel.release}")
    built = build.build(kernel)
    *others, pulse = MODULES
    script = "".join(f"insmod $MODULES/{name}.ko\n" for name in others)
    if load in LOADS:
        script += f"ip link set lo up\nsetsid sh -c '{LOADS[load]}' >/dev/null 2>&1 &\nsleep 0.5\n"
    for n, run in enumerate(runs):
        script += f"""
            echo {run.gap_ns} >/sys/module/apic_calendar/parameters/gap_ns
            insmod $MODULES/{pulse}.ko
            calendar /{n}.calendar {run.cycles} {run.overruns} {run.every} >/tmp/r 3>/tmp/b 4>/tmp/t
            put receipts-{n} </tmp/r
            put breaks-{n} </tmp/b
            put pulse-{n} </sys/kernel/debug/apic_calendar_pulse/starts
            rmmod {pulse}
        """
    if load in LOADS:
        script += "kill -9 -$! || true\nsleep 0.5\n"
    script += "".join(f"rmmod {name}\n" for name in reversed(others))
    say("demo", "booting it in virtual time: 1 instruction = 1 TSC cycle = 1 ns")
    result = virtual.run(
        kernel, script, modules=[build.find_ko(built, name) for name in MODULES],
        timeout=900 * len(runs), append=append,
        files={"usr/bin/calendar": user.program(kernel, "calendar"),
               **{f"{n}.calendar": run.file for n, run in enumerate(runs)}},
    )  # fmt: skip
    if not result.ok:
        print(f"demo: {result.verdict}\n{result.output}\n{result.kernel_log}", file=sys.stderr)
        return None

    def found(n: int) -> Found:
        receipts = [Receipt(*r) for r in struct.iter_unpack("7Q6I", result.files[f"receipts-{n}"])]
        breaks = [Break(*b) for b in struct.iter_unpack("4Q", result.files[f"breaks-{n}"])]
        pulses = [p for (p,) in struct.iter_unpack("Q", result.files[f"pulse-{n}"])]
        return Found(kernel.release, receipts, _errors(receipts, pulses), breaks, WARM_UP)

    return [found(n) for n in range(len(runs))]


def _errors(receipts: list[Receipt], pulses: list[int]) -> dict[str, Counter[int]]:
    """Return errors by unit; for the function, its own read of the TSC counts."""
    errors: dict[str, Counter[int]] = {name: Counter() for name in UNITS}
    called = iter(pulses)
    for receipt in receipts:
        name = UNITS[receipt.unit]
        began = next(called) if name == "pulse" else receipt.began
        if began and receipt.cycle >= WARM_UP:
            errors[name][began - receipt.start] += 1
    return errors


def text(found: Found) -> str:
    """Return the demo's text."""
    results = Counter((UNITS[r.unit], r.result) for r in found.receipts)
    broken = next(r for r in found.receipts if r.result == RESULTS.index("timed out"))
    last = Counter(b.last - b.timeout for b in found.breaks)
    parts = [
        f"A calendar on Debian's unpatched {found.release}, in virtual time (1 cycle = 1 ns):",
        FILE.read_text().rstrip(),
        f"First instruction of each window less its start, in TSC cycles, from cycle "
        f"{found.left_out} on:\n\n{figures.table(found.errors)}",
        RIVAL,
        "What became of the windows:\n\n" + "\n".join(
            f"  {unit:<10}{RESULTS[result]:<12}{count:>8,}"
            for (unit, result), count in sorted(results.items(), key=lambda i: UNITS.index(i[0][0]))
        ),
        f"{OVERRUNS} does not end in one of {EVERY} windows, and is stopped. Its last instruction "
        f"is {-max(last):,} to\n{-min(last):,} cycles before the end of the window; it goes on in "
        "its next one. The receipt of the first:\n\n" + "\n".join(
            f"  {name:<10}{value}" for name, value in _shown(broken)
        ),
        WHERE_TO_GO_ON,
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _shown(receipt: Receipt) -> list[tuple[str, str]]:
    """Return the fields of a receipt, with moments relative to its start."""
    moments = {name: f"{getattr(receipt, name) - receipt.start:+,}"
               for name in ("woken", "resumed", "ended")}  # fmt: skip
    return [("unit", UNITS[receipt.unit]), ("cycle", f"{receipt.cycle:,}"),
            ("result", RESULTS[receipt.result]), *moments.items()]  # fmt: skip
