"""The benchmark: ours compared with the rivals, as tables, rows in build/bench.json, and plots.

In the lab, figures repeat to the byte, because a guest's time consists of its instructions. Output
that may differ (progress, wall time) goes to standard error.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ..base.background import Background
from ..base.errors import LabError
from ..base.progress import say
from ..build import build, tool
from ..build import user as programs
from ..engines import virtual
from ..engines.result import Result
from ..kernels import kernels, patched
from . import chain, clocks, cost, distance, error, goals, kept, period, spin, user
from . import guest as bench_guest
from . import rows as bench_rows
from .rows import Row, Samples
from .script import LAPIC, Script
from .size import FULL, SHORT, Size

SERIES = "6.1"
MODULES = ("apic_timer", "apic_timer_bench", "apic_timer_bench_ours", "apic_timer_busy")
MEMORY = 1024  # MiB: a million timers
TIMEOUT = 7200  # seconds of wall time for a script
OUTPUT = build.TREE / "build"
BENCHES = {
    "error": error.scripts,
    "distance": distance.scripts,
    "period": period.scripts,
    "cost": cost.scripts,
    "guest": bench_guest.scripts,
    "spin": spin.scripts,
    "user": user.scripts,
    "clocks": clocks.scripts,
    "chain": chain.scripts,
}
LAB_ONLY = (user.UserScript, clocks.ClocksScript, chain.ChainScript)


def main(*, short: bool = False, only: Iterable[str] = (), jobs: int = 2,
         output: Path = OUTPUT, plots: bool = True, series: str = SERIES, source: str = LAPIC,
         append: str = "", again: bool = False) -> int:  # fmt: skip
    """Run the benchmark in the lab, `jobs` guests at a time. May raise LabError.

    again:  measure everything, even where samples are in the cache: see kept
    series: kernel, as for patched.find()
    source, append: as for in_virtual_time()

    Return 0 when all of it was measured.
    """
    started = time.monotonic()
    kernel = patched.find(series)
    scripts = plan(SHORT if short else FULL, only)
    run = in_virtual_time(kernel, source, append)
    if not again:
        modules = [build.find_ko(build.build(kernel), name) for name in MODULES]
        options = f"{source} {append}"
        by_kind = {
            kind: kept.kept(run, kernel, [*modules, *along(kernel, kind).values()], options)
            for kind in (Script, *LAB_ONLY)
        }
        run = lambda script: by_kind[type(script)](script)  # noqa: E731
    # The longest first, so that none of them starts when the others are done.
    scripts.sort(key=lambda script: -script.weight)
    with Background(max_workers=jobs) as pool:
        samples = bench_rows.merge(pool.map(run, scripts))
    rows = bench_rows.rows(samples, kernel=kernel.release, engine="qemu-icount", cpus=1)
    bench_rows.write(output / "bench.json", rows)
    report(rows, samples, output if plots else None)
    say("bench", f"done in {time.monotonic() - started:.0f} s")
    return 0


def plan(size: Size, only: Iterable[str] = ()) -> list[Script]:
    """List the scripts of all benchmarks, or of those named."""
    names = list(only) or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        raise LabError(f"unknown benchmark {', '.join(unknown)}; available: {', '.join(BENCHES)}")
    return [script for name in names for script in BENCHES[name](size)]


def in_virtual_time(kernel: kernels.Kernel, source: str = LAPIC, append: str = ""
                    ) -> Callable[[Script], Samples]:  # fmt: skip
    """Return a function that runs a script in virtual time; LabError if that fails.

    source: the source that attaches the LAPIC timer
    append: further kernel parameters
    """

    def run(script: Script, modules: list[Path]) -> Result:
        more = along(kernel, type(script))
        modules = [*modules, *(file for file in more.values() if file.suffix == ".ko")]
        files = {f"usr/bin/{name}": file for name, file in more.items() if file.suffix != ".ko"}
        return virtual.run(kernel, f"SOURCE={source}\n{script.text()}", modules=modules,
                           files=files, cpus=script.cpus, seed=script.seed, memory=MEMORY,
                           append=append, timeout=TIMEOUT)  # fmt: skip

    measure = runner(kernel, run)

    def measure_source(script: Script) -> Samples:
        return {key._replace(source=source) if key.source == LAPIC else key: counts
                for key, counts in measure(script).items()}  # fmt: skip

    return measure_source


def for_lab(script: Script) -> bool:
    """Tell whether a script needs programs that are built for the lab's guests."""
    return isinstance(script, LAB_ONLY)


def along(kernel: kernels.Kernel, kind: type[Script]) -> dict[str, Path]:
    """Return the modules and programs that scripts of a kind need, by name, along with MODULES."""
    if issubclass(kind, user.UserScript):
        module = build.find_ko(build.build(kernel), user.MODULE)
        return {user.MODULE: module, user.PROGRAM: programs.program(kernel, user.PROGRAM)}
    if issubclass(kind, clocks.ClocksScript):
        return {clocks.PROGRAM: programs.program(kernel, clocks.PROGRAM)}
    if issubclass(kind, chain.ChainScript):
        built = build.build(kernel)
        return {chain.PROGRAM: tool.tool(),
                **{name: build.find_ko(built, name) for name in chain.MODULES}}  # fmt: skip
    return {}


def runner(
    kernel: kernels.Kernel, guest: Callable[[Script, list[Path]], Result]
) -> Callable[[Script], Samples]:
    """Return a function that runs a script in a guest; LabError if that fails.

    guest: called with the script and the modules that it needs
    """
    built = build.build(kernel)
    modules = [build.find_ko(built, name) for name in MODULES]

    def run(script: Script) -> Samples:
        started = time.monotonic()
        result = guest(script, modules)
        if not result.ok:
            raise LabError(f"bench {script.name}: {result.verdict}\n{result.output[-3000:]}\n"
                           f"{result.kernel_log[-3000:]}")  # fmt: skip
        say("bench", f"{script.name}, seed {script.seed}: {time.monotonic() - started:.0f} s")
        return script.samples(result.files)

    return run


def report(rows: list[Row], samples: Samples, plots: Path | None) -> None:
    """Print the tables, draw the plots into a directory, and print where the goals stand."""
    unit = "one cycle is one instruction and one nanosecond" if rows[0]["engine"] != "host" else (
        "one cycle is one cycle of the TSC")  # fmt: skip
    print(f"apic-timer's benchmark on {rows[0]['kernel']}, {rows[0]['cpus']} CPUs: {unit}.\n"
          "An error is the TSC at the handler's first instruction - the moment wanted.\n"
          "Distances of `error`: 20 to 1,020 us when idle, 20 to 120 us under loads, uniform;\n"
          "cyclictest's interval is their mean.\n")  # fmt: skip
    print(bench_rows.table(rows))
    print(f"\nPeriods with nothing lost and the kernel's tick alive\n{period.table(rows)}")
    if plots:
        from . import plots as bench_plots

        drawn = bench_plots.draw(plots, rows, samples)
        print(f"\nPlots: {', '.join(f'{plots.name}/{p.name}' for p in drawn)}")
    print()
    usual = [row | {"source": LAPIC} if row["source"] == "hook" else row for row in rows]
    print(goals.table(usual))
