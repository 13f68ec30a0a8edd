"""docs/results: what the demo and the benchmark found, and what they were made by.

    PYTHONPATH=tools python3 -m docs.results [--demo] [--bench] [--user] [--calendar] [--shaper]
        [--idle] [--clocks] [--native] [--short] [--only ...]

measures (`make results`) and writes demo.json, bench.json, user.json, calendar.json, shaper.json,
idle.json, clocks.json and native.json; the tables are made from these, here and by `make docs`.
Each file begins with what it was made by: see `made_by`.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from . import native
from .source import TREE, read, tracked

RESULTS = TREE / "docs/results"
FILES = [RESULTS / f"{name}.json" for name in ("demo", "bench", "user", "calendar", "shaper",
                                                    "idle", "clocks", "native")]  # fmt: skip
DEMO, BENCH, USER, CALENDAR, SHAPER, IDLE, CLOCKS, NATIVE = FILES
PLOTS = {"error": "Errors", "distance": "Error by distance", "period": "Periods", "cost": "Cost",
         "guest": "What the kernel notices", "spin": "Spin", "clocks": "Clocks",
         "chain": "Chain"}  # fmt: skip
MADE = ("kernel", "tree", "compiler", "QEMU", "CPU", "busybox", "rt-tests", "trace-cmd",
        "inputs", "size")  # fmt: skip


def tree_hash() -> str:
    """Return a hash of what apic_timer.ko is built from, comments and blanks left out."""
    key = hashlib.sha256()
    for file in (*tracked(r"(module|include)/.*\.[ch]"), *tracked(r"module/.*Kbuild")):
        text = read(file)
        if file.endswith((".c", ".h")):
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        else:
            text = re.sub(r"^#.*$", "", text, flags=re.M)
        key.update(" ".join(text.split()).encode() + b"\0")
    return key.hexdigest()[:16]


def made_by(kernel, size: str) -> dict[str, str]:  # kernel: lab.kernels.Kernel
    """Return what decides about a figure: kernel, this tree, and every program in the guest."""
    from lab.build import userland
    from lab.engines import qemu
    from lab.kernels import kernels, lock
    from lab.kernels.chroot import run_in

    def first(pattern: str, *argv: str) -> str:
        done = subprocess.run([*userland.loader(), *argv], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        found = re.search(pattern, done.stdout)
        return found[1] if found else "unknown"

    programs = userland.root() / "usr/bin"
    others = [*lock.differing(kernels.part(kernel.series), kernel.root),
              *lock.differing("userland", userland.root())]  # fmt: skip
    compiler = run_in(kernel.root, ["gcc", "--version"]).stdout.splitlines()[0]
    found = {
        "kernel": kernel.release,
        "tree": tree_hash(),
        "compiler": compiler,
        "QEMU": re.sub(r"^QEMU emulator version ", "", qemu.version()),
        "CPU": qemu.VIRTUAL_CPU,
        "busybox": first(r"BusyBox v(\S+ \(\S+ [^)]*\)|\S+)", f"{programs}/busybox", "--help"),
        "rt-tests": first(r"V ([\d.]+)", f"{programs}/cyclictest", "--help"),
        "trace-cmd": first(r"version ([\d.]+\S*)", f"{programs}/trace-cmd", "--version"),
        "inputs": f"not as locked: {', '.join(others)}" if others else "as locked",
        "size": size,
    }
    return {name: found[name] for name in MADE}


def _write(file: Path, made: dict[str, str], **rest) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'"made": {json.dumps(made, indent=1)}']
    for name, value in rest.items():
        rows = ",\n".join(json.dumps(row) for row in value) if isinstance(value, list) else None
        lines.append(f'"{name}": ' + (json.dumps(value) if rows is None else f"[\n{rows}\n]"))
    file.write_text("{" + ",\n".join(lines) + "}\n")


def measure_demo() -> None:
    """Run the demo and keep what it found."""
    from lab.bench import figures
    from lab.kernels import kernels
    from lab.run import demo

    found = demo.measure()
    if found is None:
        raise SystemExit(1)
    rows = [{"timer": name, **figures.summary(errors)} for name, errors in found.samples.items()]
    made = made_by(kernels.ensure(demo.SERIES), f"{demo.SHOTS} expiries of each timer")
    log = demo.messages(found.parts["source"]).strip()
    _write(DEMO, made, text=demo.text(found, verbose=True), log=log, rows=rows)


def measure_bench(*, short: bool, only: Iterable[str] = (), jobs: int = 2) -> None:
    """Run the benchmark, or parts of it, and keep what it found; other parts keep their rows.

    Parts that were made by something else than this run are dropped. Threads of programs have a
    page of their own: measure_user().
    """
    from lab.bench import main as bench
    from lab.kernels import kernels

    output = TREE / "build/results"
    only = list(only) or [name for name in bench.BENCHES if name != USER.stem]
    done = bench.main(short=short, only=only, jobs=jobs, output=output)
    if done:
        raise SystemExit(done)
    made = made_by(kernels.ensure(bench.SERIES), "short" if short else "full")
    rows = json.loads((output / "bench.json").read_text())
    parts = {_part(row) for row in rows}
    if BENCH.exists():
        before = json.loads(BENCH.read_text())
        if before["made"] == made:
            rows += [row for row in before["rows"] if _part(row) not in parts]
            parts |= {_part(row) for row in before["rows"]}
    rows.sort(key=lambda row: list(PLOTS).index(_part(row)))
    _write(BENCH, made, rows=rows)
    for name in PLOTS:
        drawn, kept = output / f"bench-{name}.svg", RESULTS / f"bench-{name}.svg"
        if drawn.exists():
            kept.write_bytes(drawn.read_bytes())
            drawn.unlink()
        elif name not in parts:
            kept.unlink(missing_ok=True)


def measure_user(*, short: bool, jobs: int = 2) -> None:
    """Run the benchmark of threads of programs, and keep what it found.

    The kernels after the first are measured in short.
    """
    from lab.bench import main as bench
    from lab.kernels import kernels

    rows = []
    for series in (bench.SERIES, *USER_SERIES):
        output = TREE / "build/results-user" / series
        done = bench.main(short=short or series != bench.SERIES, only=[USER.stem], jobs=jobs,
                          output=output, series=series, plots=False)  # fmt: skip
        if done:
            raise SystemExit(done)
        rows += json.loads((output / "bench.json").read_text())
    made = made_by(kernels.ensure(bench.SERIES), "short" if short else "full")
    _write(USER, made, rows=rows)


def measure_calendar(*, short: bool) -> None:
    """Run calendars, and keep what became of them; kernels after the first are run in short."""
    from lab.kernels import kernels
    from lab.run import calendar

    rows = calendar.measure(short=short)
    made = made_by(kernels.ensure(calendar.SERIES[0][0]), "short" if short else "full")
    _write(CALENDAR, made, rows=rows)


def measure_idle(*, short: bool) -> None:
    """Run a timer a second on a CPU with idle states, and keep in which ones it was."""
    from lab.kernels import kernels
    from lab.run import idle

    rows = idle.measure(short=short)
    _write(IDLE, made_by(kernels.ensure(idle.SERIES), "short" if short else "full"), rows=rows)


def measure_shaper(*, short: bool, jobs: int = 2) -> None:
    """Run the shaper's benchmark, and keep what it found and drew."""
    from lab.build import iproute2
    from lab.kernels import kernels, lock
    from lab.run import shaper

    output = TREE / "build/results"
    shaper.main(short=short, jobs=jobs, output=output)
    made = made_by(kernels.ensure(shaper.SERIES), "short" if short else "full")
    found = lock.root("iproute2").version("iproute2")
    others = lock.differing("iproute2", iproute2.root())
    made["tc"] = f"iproute2 {found[1]}" if found and not others else "not as locked"
    _write(SHAPER, made, rows=json.loads((output / "bench-shaper.json").read_text()))
    for plot in (output / "figures").glob("*.svg"):
        (RESULTS / f"shaper-{plot.name}").write_bytes(plot.read_bytes())


def measure_clocks() -> None:
    """Run the tests of clocks, and keep what they found; those that fail keep nothing."""
    from lab.bench import clock_goals

    for file in clock_goals.KEPT.glob("*.json"):
        file.unlink()
    subprocess.run([sys.executable, "-m", "pytest", *clock_goals.TESTS, "--matrix", "-q",
                    "--no-second-try", "-k", clock_goals.CHOICE], cwd=TREE)  # fmt: skip
    keep_clocks()


def keep_clocks() -> None:
    """Keep what the tests of clocks found when they last ran."""
    from lab.bench import clock_goals
    from lab.kernels import kernels

    rows = clock_goals.kept()
    if not rows:
        raise SystemExit(f"no test has kept anything in {clock_goals.KEPT}")
    rows += _simulated_clocks()
    _write(CLOCKS, made_by(kernels.ensure("6.1"), "full"), rows=rows)


def measure_native() -> None:
    """Measure in processes on this machine, and keep what that found."""
    from lab.run import native as measured

    rows = measured.measure()
    made = {"CPU": measured.cpu(), "tree": tree_hash(), "compiler": measured.compiler()}
    _write(NATIVE, made, rows=rows)


def _simulated_clocks() -> list[dict]:
    """Return what tests/kunit/map_test.c says of the paper's machine."""
    from lab.bench import clock_goals
    from lab.run import kunit

    log = kunit.run("um", "apic_clock_map").console
    rows = [{"bench": f"resync/{smi}" + f"/{reads}" * (int(reads) != clock_goals.READS),
             "p50": int(p50), "p99": int(p99), "max": int(most), "found_p99": int(found)}
            for reads, smi, p50, p99, most, found in re.findall(
                r"(\d+) reads, SMI in one of (\d+): off by p50 (\d+), p99 (\d+), max (\d+); "
                r"found p50 \d+, p99 (\d+)", log)]  # fmt: skip
    ppb = re.findall(r"rate after 10 s, SMI in one of (\d+): within (\d+) ppb", log)
    return [*rows, {"bench": "rate/10s", **{"smi" if int(smi) else "none": int(within)
                                            for smi, within in ppb}}]  # fmt: skip


def _part(row: dict) -> str:
    return str(row["bench"]).split("/")[0]


def header(made: dict[str, str]) -> str:
    """Return what results were made by, as a table."""
    rows = "".join(f"| {name} | {value} |\n" for name, value in made.items())
    return f"| made by | |\n| --- | --- |\n{rows}"


def _page(title: str, made: dict[str, str], text: str) -> str:
    return f"<!-- Made by `make results`. Don't edit. -->\n# {title}\n\n{header(made)}\n{text}"


def pages() -> dict[str, str]:
    """Return the pages that are made of the rows there are, by file name."""
    found = {}
    if DEMO.exists():
        found["docs/results/demo.md"] = _demo(json.loads(DEMO.read_text()))
        found["docs/results/demo.txt"] = json.loads(DEMO.read_text())["text"]
    if BENCH.exists():
        found["docs/results/bench.md"] = _bench(json.loads(BENCH.read_text()))
    if USER.exists():
        found["docs/results/user.md"] = _user(json.loads(USER.read_text()))
    if CALENDAR.exists():
        found["docs/results/calendar.md"] = _calendar(json.loads(CALENDAR.read_text()))
    if SHAPER.exists():
        found["docs/results/shaper.md"] = _shaper(json.loads(SHAPER.read_text()))
    if IDLE.exists():
        found["docs/results/idle.md"] = _idle(json.loads(IDLE.read_text()))
    if CLOCKS.exists():
        found["docs/results/clocks.md"] = _clocks(json.loads(CLOCKS.read_text()))
    if NATIVE.exists():
        page = json.loads(NATIVE.read_text())
        found["docs/results/native.md"] = _page("Results of a CPU itself", page["made"],
                                                native.text(page["rows"]))  # fmt: skip
    return found


LABELS = {
    "apic_timer_exact": "apic_timer, `exact` (default)",
    "apic_timer_raw": "apic_timer, `raw` (control)",
    "hrtimer_hard": "hrtimer, pinned, hard",
    "apic_timer_dev": "`/dev/apic_timer`",
    "clock_nanosleep": "`clock_nanosleep()`",
}


def _demo(found: dict) -> str:
    from lab.run import demo

    heads = {"n": "expiries", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9",
             "max": "max"}  # fmt: skip
    text = f"| timer | {' | '.join(heads.values())} |\n| --- |{' ---: |' * len(heads)}\n"
    head = threads = text.replace("timer | expiries", "sleeps by | sleeps")
    for row in found["rows"]:
        label = LABELS.get(row["timer"], row["timer"])
        line = f"| {label} | {' | '.join(f'{row[key]:,}' for key in heads)} |\n"
        if row["timer"] in demo.THREADS:
            threads += line
        else:
            text += line
    if threads != head:
        threads = (
            "## Threads of programs\n\n"
            "The TSC at the first instruction of a `SCHED_FIFO` thread after its sleep, less the\n"
            f"wanted one.\n\n{threads}\n"
        )
    else:
        threads = ""
    return _page(
        "Results of `make demo`", found["made"],
        "An error is the TSC at the handler's first instruction - expiry, in TSC cycles, which\n"
        "are nanoseconds here.\n\n"
        f"## Errors\n\n{text}\n"
        f"{threads}## Kernel log\n\n    {found['log']}\n\n"
        f"## Output\n\n[demo.txt](demo.txt) is what `make demo VERBOSE=1` printed.\n",
    )  # fmt: skip


LOADS = ("idle", "user", "syscall", "net", "timers", "irqoff")
TABLES = {
    "error": "Error of each timer under each load, TSC cycles. `irqoff` turns interrupts off for\n"
    "up to 20 µs; `error/beyond` is the error less the time that interrupts were off, and\n"
    "`error/budget_25us` has timers whose budget for spinning is 25 µs.",
    "distance": "Error by distance: `distance/N` are timers N ns ahead.",
    "period": "`period/N` is a periodic timer of N ns: runs, moments lost, overruns, errors,\n"
    "jiffies passed and due, and how late a `timer_list` was, in jiffies.",
    "cost": "Cycles of each operation: `cost/OPERATION/PENDING`.",
    "guest": "What the kernel notices: apic_timer absent, attached and idle, and firing 10,000\n"
    "times a second.",
    "spin": "CPU time spent in spinning, by rate and `lead_quantile`.",
    "clocks": "What reading a clock costs, in the kernel and in a program. In an emulator a read\n"
    "of a device costs an instruction or two: such rows (`hpet`, `acpi_pm`, `rtc`) say nothing of\n"
    "hardware, where one takes about a microsecond.",
    "chain": "From an interrupt to the thread that waits for it, `apic-timer chain`:\n"
    "`chain/ROUTE/entry` is when its handler starts, `chain/ROUTE/user` when the thread runs,\n"
    "less the expiry.",
}


def _bench(found: dict) -> str:
    rows, parts = found["rows"], []
    numbers = ("n", "min", "p50", "p99", "p999", "max", "mean", "sd")
    for name, what in TABLES.items():
        mine = [row for row in rows if _part(row) == name]
        if not mine:
            continue
        plot = RESULTS / f"bench-{name}.svg"
        text = f"## {name.capitalize()}\n\n{what}\n\n"
        if plot.exists():
            text += f"![{PLOTS[name]}]({plot.name})\n\n"
        text += f"| bench | timer | mode | source | load | unit | {' | '.join(numbers)} |\n"
        text += f"|{' --- |' * 6}{' ---: |' * len(numbers)}\n"
        for row in mine:
            names = " | ".join(str(row[n]) for n in ("bench", "timer", "mode", "source", "load",
                                                    "unit"))  # fmt: skip
            values = [f"{row[n]:,}" for n in numbers[:6]] + [f"{row[n]:,.1f}" for n in numbers[6:]]
            text += f"| {names} | {' | '.join(values)} |\n"
        if name == "clocks":
            text += _paper_of_clocks(mine)
        if name == "chain":
            text += threads_of_chain(mine)
        parts.append(text)
    head = _summary(rows)
    return _page("Results of `make bench`", found["made"], head + "\n".join(parts))


def _paper_of_clocks(rows: list[dict]) -> str:
    """Return what 100,000,000 calls of gettimeofday() take, here and in the paper of 2009."""
    from lab.bench import clocks

    text = ("\n100,000,000 calls of `gettimeofday()`, seconds, by clocksource. Here an\n"
            "instruction takes a nanosecond; the paper's machine had a TSC of 1.66 GHz.\n\n"
            "| clocksource | emulated, 1 GHz | the paper |\n| --- | ---: | ---: |\n")  # fmt: skip
    for clocksource, seconds in clocks.PAPER_S.items():
        for row in rows:
            if row["bench"] == clocks.paper(clocksource):
                text += f"| {clocksource} | {row['p50'] / 1000:.1f} | {seconds} |\n"
    return text


def threads_of_chain(rows: list[dict]) -> str:
    """Return when the thread runs, by route: after our interrupts and an hrtimer's."""
    from lab.bench import chain

    found = {(r["bench"], r["timer"], r["load"]): r for r in rows}
    cells = ("p50", "p99")
    loads = [load for load in chain.LOADS if load in {r["load"] for r in rows}]
    heads = [f"{load}: {timer} {cell}" for load in loads for timer in chain.TRIGGERS.values()
             for cell in cells]  # fmt: skip
    text = ("\nThread - expiry, TSC cycles. The paper of 1997 had 10,000 interrupts a series, and\n"
            "98 % of its threads within 200 µs. `device` is no interrupt's route: the thread\n"
            "sleeps by `/dev/apic_timer`.\n\n"
            f"| route | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}\n")  # fmt: skip
    for route in (*chain.ROUTES, chain.DEVICE):
        line = []
        for load in loads:
            for timer in chain.TRIGGERS.values():
                row = found.get((chain.bench(route, "user"), timer, load))
                line += [f"{row[cell]:,}" if row else "" for cell in cells]
        text += f"| {route} | {' | '.join(line)} |\n"
    return text


def _summary(rows: list[dict]) -> str:
    """Return the errors of three timers under each load, and where the goals stand."""
    from lab.bench import goals

    text = ""
    timers = (
        ("apic_timer", "exact", "proxy"),
        ("hrtimer_hard", "-", "-"),
        ("cyclictest", "-", "-"),
    )
    errors = [row for row in rows if row["bench"] == "error" and row["unit"] == "cycles"]
    loads = sorted({row["load"] for row in errors}, key=LOADS.index)
    if errors:
        cells = ("p50", "p999", "max")
        names = " | ".join(f"{t} {c.replace('p999', 'p99.9')}" for t, _, _ in timers for c in cells)
        text += f"## Errors under loads\n\n| load | {names} |\n| --- |{' ---: |' * 9}\n"
        for load in loads:
            line = []
            for timer, mode, source in timers:
                match = [r for r in errors if (r["timer"], r["mode"], r["load"]) ==
                         (timer, mode, load) and r["source"] in (source, "-")]  # fmt: skip
                line += [f"{match[0][c]:,}" for c in cells] if match else [""] * 3
            text += f"| {load} | {' | '.join(line)} |\n"
        text += "\n"
    return text + f"## Goals\n\n```\n{goals.table(rows, goals.HANDLERS + goals.CHAIN)}\n```\n\n"


USER_SERIES = ("7.2", "6.1-rt")  # besides the benchmark's own
SLEEPERS = {
    ("apic_timer", "user"): "device, the library waits for the rest",
    ("apic_timer", "nofence"): "the same without the fence",
    ("apic_timer", "kernel"): "device, the kernel waits for the rest",
    ("nanosleep", "-"): "`clock_nanosleep()`",
    ("timerfd", "-"): "timerfd",
    ("cyclictest", "-"): "`cyclictest`, its own figures",
    ("sleepspin", "-"): "`clock_nanosleep()` until 12 µs before, then a loop",
    ("spin", "-"): "a loop alone",
}


def _user(found: dict) -> str:
    """Make the page of how late threads of programs run."""
    from lab.bench import goals

    numbers = ("n", "min", "p50", "p99", "p999", "max")
    heads = ("n", "min", "p50", "p99", "p99.9", "max", "waited")
    text = (
        "A thread of `SCHED_FIFO` sleeps until a TSC value, in all ways in the same boot, in\n"
        "virtual time. An error is the TSC at its first instruction after the moment, less the\n"
        "moment; waited is what each sleep spends on the TSC after its wake-up, in the mean.\n"
        "[tests/user/latency.c](../../tests/user/latency.c) measures.\n"
    )
    for kernel in dict.fromkeys(row["kernel"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["kernel"] == kernel]
        text += f"\n## {kernel}\n"
        for load in dict.fromkeys(row["load"] for row in rows):
            text += f"\n| {load} | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}\n"
            text += _sleepers([row for row in rows if row["load"] == load], numbers)
        text += f"\n```\n{goals.table(rows, goals.threads(kernel))}\n```\n"
    return _page("Results of threads of programs", found["made"], text)


def _sleepers(rows: list[dict], numbers: Iterable[str]) -> str:
    """Make the lines of a table: a way to sleep each, and what it waited in the mean."""
    from lab.bench import user

    text = ""
    errors, waited = (
        {(row["timer"], row["mode"]): row for row in rows if row["bench"] == bench}
        for bench in (user.NAME, user.WAITED)
    )
    for key, what in SLEEPERS.items():
        if key in errors:
            cells = [f"{errors[key][number]:,}" for number in numbers]
            cells.append(f"{waited[key]['mean']:,.0f}" if key in waited else "")
            text += f"| {what} | {' | '.join(cells)} |\n"
    return text


def _default_gap_ns() -> int:
    """Return what apic_calendar's parameter gap_ns is by default."""
    text = (TREE / "module/calendar/table.h").read_text()
    return int(re.search(r"^#define CALENDAR_GAP_USER\s+(\d+)$", text, re.MULTILINE)[1])


def _idle(found: dict) -> str:
    """Make the page of idle states."""
    from lab.run import idle

    heads = [f"{where}: {state}" for where in ("its CPU", "other CPU") for state in idle.STATES]
    heads.append("latest expiry, cycles")
    text = f"| parameter | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}\n"
    for row in found["rows"]:
        cells = [f"{share:.1f} %" for share in (*row["timers"], *row["other"])]
        text += f"| `{row['setting']}` | {' | '.join(cells)} | {row['error']} |\n"
    return _page(
        "Results of idle states", found["made"],
        "One timer of mode `exact` a second on one of two CPUs: shares of the time in each idle\n"
        f"state, of {idle.SECONDS} s, or {idle.SHORT} s in short. The latest expiry is that of a\n"
        f"machine with one CPU, which takes {idle.WAKING_US} us to wake from the deep state.\n\n"
        f"## Shares of idle states\n\n{text}",
    )  # fmt: skip


def _calendar(found: dict) -> str:
    """Make the page of calendars."""
    from lab.bench import calendar_goals, goals
    from lab.run import calendar, demo_calendar

    heads = {"n": "n", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}

    def table(first: str, lines: Iterable[tuple[str, dict, str]], last: str = "") -> str:
        names = [first, *heads.values(), *([last] if last else [])]
        text = f"\n| {' | '.join(names)} |\n| --- |{' ---: |' * (len(names) - 1)}\n"
        for name, row, more in lines:
            cells = [f"{row[key]:,}" if row else "" for key in heads] + ([more] if last else [])
            text += f"| {name} | {' | '.join(cells)} |\n"
        return text

    text = (
        "The calendar [demo.calendar](../../samples/demo.calendar), in virtual time. An error is\n"
        "the TSC at the first instruction of a window, less the window's start.\n"
        f"`{demo_calendar.OVERRUNS}` does not end in one of {demo_calendar.EVERY} windows: below"
        " the errors is its last instruction,\n"
        "less the window's end, and its next one, less the start of its next window.\n\n"
        "Gaps: the errors of a thread whose window begins so much after that of another one, and\n"
        "how many of its windows it did not get. The other one has ended its window, or was\n"
        "stopped at the end of it. The parameter `gap_ns` of the module is lowered for that, to\n"
        f"the gap: by default, LOAD refuses one of less than {_default_gap_ns():,} ns.\n"
    )
    for kernel in dict.fromkeys(row["kernel"] for row in found["rows"]):
        text += f"\n## {kernel}\n"
        for load in calendar_goals.LOADS:
            mine = [row for row in found["rows"] if (row["kernel"], row["load"]) == (kernel, load)]
            of = {(row["bench"], row["unit"]): row for row in mine}
            lines = [(unit, of[f"{calendar_goals.DISPATCH}/{unit}", "cycles"], "")
                     for unit in demo_calendar.UNITS]  # fmt: skip
            lines += [("last instruction", of[calendar_goals.TIMEOUT, "cycles"], ""),
                      ("goes on", of[calendar_goals.RESUMED, "cycles"], "")]  # fmt: skip
            text += table(load, lines)
            for gap, what in ((calendar_goals.GAP, "ended"), (calendar_goals.STOPPED, "stopped")):
                lines = []
                for ns in calendar.GAPS_NS:
                    errors = of.get((f"{gap}/{ns}", "cycles"), {})
                    lost = of[f"{gap}/{ns}", "lost"]
                    lines.append((f"{ns:,} ns", errors, f"{round(lost['mean'] * lost['n']):,}"))
                text += table(f"{load}, gap, {what}", lines, "lost")
        rows = [row for row in found["rows"] if row["kernel"] == kernel]
        text += f"\n```\n{goals.table(rows, calendar_goals.GOALS)}\n```\n"
    return _page("Results of calendars", found["made"], text)


def _clocks(found: dict) -> str:
    """Make the page of clocks."""
    from lab.bench import clock_goals, goals

    text = (
        "In TSC cycles, unless stated otherwise, as the tests of clocks have printed them. Skew\n"
        "and groups are measured in Bochs, pulses and costs in virtual time, stops in both Bochs\n"
        "and a simulation of the paper's machine (`tests/kunit/map_test.c`).\n\n"
        f"## Goals\n\n```\n{goals.table(found['rows'], clock_goals.GOALS)}\n```\n\n"
        "## Rows\n\n| bench | measured |\n| --- | --- |\n"
    )
    for row in found["rows"]:
        numbers = ", ".join(f"{n} {v:,}" for n, v in row.items() if n != "bench")
        text += f"| {row['bench']} | {numbers} |\n"
    return _page("Results of clocks", found["made"], text)


SHAPED = (
    ("shaper/error", "Errors under loads", "Packets at random distances, each with its time by "
     "`SO_TXTIME`: departure - plan."),
    ("shaper/fig5", "Figure 5", "A burst of 667-byte packets at 50 Mbit/s: spacing - 106,720."),
    ("shaper/fig4", "Figure 4", "A burst of 1,292-byte packets at 1 Mbit/s: spacing - 10,336,000."),
    ("shaper/delays", "Figures 2 and 3", "Packets at random distances of 0.02 to 20 ms: departure "
     "- plan."),
    ("shaper/stress", "Small distances", "Packets at distances in ns, all queued before: departure "
     "- plan."),
    ("shaper/sender", "With the sender running", "The same while they are still being queued."),
    ("shaper/cost", "CPU time", "Cycles that a packet takes from the rest of the CPU, by distance "
     "in ns."),
    ("shaper/doorbell", "Doorbells", "From a packet's moment to the write by which the driver of a "
     "network card starts it; *set*: with `doorbell` of the qdisc as large as the least of the "
     "other row."),
)  # fmt: skip
# What the rows of a table differ in, besides the qdisc.
SHAPED_BY = {"shaper/error": "load", "shaper/stress": "distance", "shaper/sender": "distance",
             "shaper/doorbell": "driver"}  # fmt: skip


def _shaper_order(row: dict) -> tuple:
    """Order rows by load, then by distance, the largest first, then as lab.bench.shaper does."""
    from lab.bench import shaper

    ways = [(way.timer, way.mode) for way in shaper.WAYS]
    distance = str(row["bench"]).split("/")[2:]
    return (shaper.LOADS.index(row["load"]), [-int(ns) for ns in distance if ns.isdigit()],
            [name for name in distance if not name.isdigit()],
            ways.index((row["timer"], row["mode"])))  # fmt: skip


def _shaper(found: dict) -> str:
    """Make the page of the shaper's results."""
    from lab.bench import shaper_goals
    from lab.bench.goals import table

    rows = found["rows"]
    text = ("Each table is of one boot in virtual time: one cycle is one instruction and one\n"
            "nanosecond. A departure is the first instruction of the driver.\n")  # fmt: skip
    for name, title, what in SHAPED:
        mine = [row for row in rows if row["bench"] == name or row["bench"].startswith(f"{name}/")]
        if name == "shaper/cost":
            mine = [row for row in mine if row["unit"] == "packet_cycles"]
            heads, numbers = ("distance", "qdisc"), ("mean",)
        else:
            mine = [row for row in mine if row["unit"] == "cycles"]
            heads = ("qdisc",)
            if name in SHAPED_BY:
                heads = (SHAPED_BY[name], "qdisc")
            numbers = ("n", "min", "p50", "p99", "p999", "max")
        if not mine:
            continue
        mine.sort(key=_shaper_order)
        names = [n.replace("p999", "p99.9").replace("mean", "cycles") for n in numbers]
        text += f"\n## {title}\n\n{what}\n\n| {' | '.join((*heads, *names))} |\n"
        text += f"|{' --- |' * len(heads)}{' ---: |' * len(numbers)}\n"
        for row in mine:
            qdisc = row["timer"] + (f" {row['mode']}" if row["mode"] not in ("-", "paper") else "")
            _, _, *distance = row["bench"].split("/")
            first = row["load"] if heads[0] == "load" else " ".join(distance)
            cells = [first, qdisc] if len(heads) > 1 else [qdisc]
            cells += [f"{row[n]:,.0f}" for n in numbers]
            text += f"| {' | '.join(cells)} |\n"
    drawn = sorted(path.name for path in RESULTS.glob("shaper-*.svg"))
    text += "\n## Goals\n\n```\n" + table(rows, shaper_goals.GOALS) + "\n```\n\n## Plots\n\n"
    text += "\n\n".join(f"![{name.removesuffix('.svg')}]({name})" for name in drawn) + "\n"
    return _page("Results of `make figures`", found["made"], text)


def tables() -> list[str]:
    """Write the pages; return those that have changed."""
    changed = []
    for name, text in pages().items():
        if read(name, True) != text:
            (TREE / name).write_text(text)
            changed.append(name)
    return changed


def differing() -> list[str]:
    """List the pages that are not what the rows make."""
    return [f"{name}: differs from its rows; run make docs"
            for name, text in pages().items() if read(name, True) != text]  # fmt: skip


def stale() -> list[str]:
    """List the results that were made by other sources of the module than this tree has."""
    found, now = [], tree_hash()
    for file in FILES:
        name = file.relative_to(TREE)
        if not file.exists():
            found.append(f"{name} is missing: make results")
        elif (made := json.loads(file.read_text())["made"])["tree"] != now:
            where = made.get("kernel", made.get("CPU"))
            found.append(f"{name} is stale: measured on {where} with other sources of the "
                         f"module ({made['tree']}, now {now}): make results")  # fmt: skip
    return found


def main() -> int:
    """Measure what the command line says, by default all, and write the results."""
    parser = argparse.ArgumentParser(prog="docs.results", description="measure for docs/results")
    parser.add_argument("--demo", action="store_true", help="the demo only")
    parser.add_argument("--bench", action="store_true", help="the benchmark only")
    parser.add_argument("--user", action="store_true", help="threads of programs only")
    parser.add_argument("--calendar", action="store_true", help="calendars only")
    parser.add_argument("--shaper", action="store_true", help="the shaper's benchmark only")
    parser.add_argument("--idle", action="store_true", help="idle states only")
    parser.add_argument("--clocks", action="store_true", help="the tests of clocks only")
    parser.add_argument("--native", action="store_true", help="this machine's CPU only")
    parser.add_argument("--short", action="store_true", help="a few minutes of the benchmark")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the benchmark")
    parser.add_argument("--jobs", type=int, default=2, help="guests at a time")
    arguments = parser.parse_args()
    every = not (arguments.demo or arguments.bench or arguments.user or arguments.calendar
                 or arguments.shaper or arguments.idle or arguments.clocks
                 or arguments.native)  # fmt: skip
    if every or arguments.demo:
        measure_demo()
    if every or arguments.bench:
        measure_bench(short=arguments.short, only=arguments.only, jobs=arguments.jobs)
    if every or arguments.user:
        measure_user(short=arguments.short, jobs=arguments.jobs)
    if every or arguments.calendar:
        measure_calendar(short=arguments.short)
    if every or arguments.idle:
        measure_idle(short=arguments.short)
    if every or arguments.shaper:
        measure_shaper(short=arguments.short, jobs=arguments.jobs)
    if every or arguments.clocks:
        measure_clocks()
    if every or arguments.native:
        measure_native()
    tables()
    return 0


if __name__ == "__main__":
    sys.exit(main())
