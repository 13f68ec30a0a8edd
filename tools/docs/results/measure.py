"""Run the lab for docs/results, and keep the results in files."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable

from ..source import TREE
from .bench_page import PLOTS, part
from .made import (
    BENCH,
    CALENDAR,
    CLOCKS,
    DEMO,
    IDLE,
    RESULTS,
    SHAPER,
    TORTURE,
    USER,
    load,
    made_by,
    native,
    tree_hash,
    write,
)

USER_SERIES = ("7.2", "6.1-rt")  # in addition to the benchmark's own
USER_SHORT = ("6.1-rt",)
SHAPER_SERIES = ("6.12", "7.2")  # likewise
TORTURED_SERIES, TORTURED_CPUS = "6.1", 4
TORTURE_SECONDS, TORTURE_SHORT = 1800, 120


def measure_demo() -> None:
    """Run the demo and keep its results."""
    from lab.bench import figures
    from lab.kernels import kernels
    from lab.run import demo

    found = demo.measure()
    if found is None:
        raise SystemExit(1)
    rows = [{"timer": name, **figures.summary(errors)} for name, errors in found.samples.items()]
    made = made_by(DEMO, kernels.ensure(demo.SERIES), f"{demo.SHOTS} expiries of each timer")
    log = demo.messages(found.parts["source"]).strip()
    write(DEMO, made, text=demo.text(found, verbose=True), log=log, rows=rows)


def measure_bench(*, short: bool, only: Iterable[str] = (), jobs: int = 2) -> None:
    """Run the benchmark, or parts of it, and keep the results; other parts keep their rows.

    Parts with a different record of what made them are dropped. Programs' threads have a page of
    their own: measure_user().
    """
    from lab.bench import main as bench
    from lab.kernels import kernels

    output = TREE / "build/results"
    only = list(only) or [name for name in bench.BENCHES if name != USER.stem]
    done = bench.main(short=short, only=only, jobs=jobs, output=output)
    if done:
        raise SystemExit(done)
    made = made_by(BENCH, kernels.ensure(bench.SERIES), "short" if short else "full")
    rows = json.loads((output / "bench.json").read_text())
    parts = {part(row) for row in rows}
    if BENCH.exists():
        before = load(BENCH)
        if before["made"] == made:
            rows += [row for row in before["rows"] if part(row) not in parts]
            parts |= {part(row) for row in before["rows"]}
    rows.sort(key=lambda row: list(PLOTS).index(part(row)))
    write(BENCH, made, rows=rows)
    for name in PLOTS:
        drawn, kept = output / f"bench-{name}.svg", RESULTS / f"bench-{name}.svg"
        if drawn.exists():
            kept.write_bytes(drawn.read_bytes())
            drawn.unlink()
        elif name not in parts:
            kept.unlink(missing_ok=True)


def measure_user(*, short: bool, jobs: int = 2) -> None:
    """Run the benchmark of programs' threads, and keep the results.

    Stock kernels are measured in full, and the one for real time in short.
    """
    from lab.bench import main as bench
    from lab.kernels import kernels

    rows = []
    for series in (bench.SERIES, *USER_SERIES):
        output = TREE / "build/results-user" / series
        done = bench.main(short=short or series in USER_SHORT, only=[USER.stem], jobs=jobs,
                          output=output, series=series, plots=False)  # fmt: skip
        if done:
            raise SystemExit(done)
        rows += json.loads((output / "bench.json").read_text())
    made = made_by(USER, kernels.ensure(bench.SERIES), "short" if short else "full")
    write(USER, made, rows=rows)


def measure_calendar(*, short: bool) -> None:
    """Run calendars, and keep the results; all kernels except the first are run in short."""
    from lab.kernels import kernels
    from lab.run import calendar

    rows = calendar.measure(short=short)
    made = made_by(CALENDAR, kernels.ensure(calendar.SERIES[0][0]), "short" if short else "full")
    write(CALENDAR, made, rows=rows)


def measure_idle(*, short: bool) -> None:
    """Run one timer per second on a CPU with idle states, and keep the states it was in."""
    from lab.kernels import kernels
    from lab.run import idle

    rows = idle.measure(short=short)
    write(IDLE, made_by(IDLE, kernels.ensure(idle.SERIES), "short" if short else "full"), rows=rows)


def measure_shaper(*, short: bool, jobs: int = 2) -> None:
    """Run the shaper's benchmark, and keep its results and plots."""
    from lab.build import iproute2
    from lab.kernels import kernels, lock
    from lab.run import shaper

    output = TREE / "build/results"
    shaper.main(short=short, jobs=jobs, output=output)
    rows = json.loads((output / "bench-shaper.json").read_text())
    for series in SHAPER_SERIES:
        shaper.main(short=short, only=["idle"], jobs=jobs, output=output, series=series,
                    plots=False)  # fmt: skip
        rows += json.loads((output / "bench-shaper.json").read_text())
    made = made_by(SHAPER, kernels.ensure(shaper.SERIES), "short" if short else "full")
    found = lock.root("iproute2").version("iproute2")
    others = lock.differing("iproute2", iproute2.root())
    made["tc"] = f"iproute2 {found[1]}" if found and not others else "not as locked"
    write(SHAPER, made, rows=rows)
    for plot in (output / "figures").glob("*.svg"):
        (RESULTS / f"shaper-{plot.name}").write_bytes(plot.read_bytes())


def measure_clocks() -> None:
    """Run the clock tests, and keep their results; failing tests keep nothing."""
    from lab.bench import clock_goals

    for file in clock_goals.KEPT.glob("*.json"):
        file.unlink()
    subprocess.run([sys.executable, "-m", "pytest", *clock_goals.TESTS, "--matrix", "-q",
                    "--no-second-try", "-k", clock_goals.CHOICE], cwd=TREE)  # fmt: skip
    keep_clocks()


def keep_clocks() -> None:
    """Keep the results of the last run of the clock tests."""
    from lab.bench import clock_goals
    from lab.kernels import kernels

    rows = clock_goals.kept()
    if not rows:
        raise SystemExit(f"no test results in {clock_goals.KEPT}")
    rows += _simulated_clocks()
    write(CLOCKS, made_by(CLOCKS, kernels.ensure("6.1"), "full"), rows=rows)


def measure_torture(*, short: bool) -> None:
    """Torture timers, then the shaper, and keep the account; a fault keeps nothing."""
    from lab.bench import shaper_goals
    from lab.kernels import kernels
    from lab.run import torture

    seconds = TORTURE_SHORT if short else TORTURE_SECONDS
    result = torture.run(torture.Torture(TORTURED_SERIES, TORTURED_CPUS, seconds, onoff=1000))
    if not result.ok:
        raise SystemExit(f"{result.verdict}\n{result.output}")
    same = {"kernel": TORTURED_SERIES, "cpus": TORTURED_CPUS}
    rows = [{"bench": "torture/timers", **same, "seconds": seconds,
             "fates": torture.fates(result)}]  # fmt: skip
    shaper_goals.TORTURED.unlink(missing_ok=True)
    packets = "" if short else str(shaper_goals.PACKETS)
    ran = subprocess.run([sys.executable, "-m", "pytest", "tests/guest/test_shaper_torture.py",
                          "--matrix", "-q", "--no-second-try",
                          "-k", f"test_all_arrive and {TORTURED_SERIES}-{TORTURED_CPUS}cpu"],
                         cwd=TREE, env={**os.environ, "PACKETS": packets})  # fmt: skip
    if ran.returncode or not shaper_goals.TORTURED.exists():
        raise SystemExit("the torture of the shaper has failed")
    rows.append(
        {"bench": "torture/shaper", **same, **json.loads(shaper_goals.TORTURED.read_text())}
    )
    made = made_by(TORTURE, kernels.ensure(TORTURED_SERIES), "short" if short else "full")
    write(TORTURE, made, rows=rows)


def measure_native() -> None:
    """Measure in processes on this machine, and keep the results of its CPU."""
    from lab.run import native as measured

    rows = measured.measure()
    file = native(measured.cpu())
    made = {"CPU": measured.cpu(), "tree": tree_hash(file), "compiler": measured.compiler()}
    write(file, made, rows=rows)


def _simulated_clocks() -> list[dict]:
    """Return the results of tests/kunit/map_test.c for the paper's machine."""
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
