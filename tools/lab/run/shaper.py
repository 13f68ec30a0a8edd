"""The shaper's benchmark: tables, goals, and the figures of the paper of 2001.

All output comes from runs in virtual time, which repeat to the byte.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ..base.background import Background
from ..base.errors import LabError
from ..base.progress import say
from ..bench import goals, kept, shaper, shaper_goals
from ..bench import rows as bench_rows
from ..bench.rows import Row, Samples
from ..bench.script import Script
from ..build import build, network, plugins
from ..engines import virtual
from ..engines.result import Result
from ..kernels import kernels, patched

SERIES = "6.1"
MEMORY = 1024  # MiB
TIMEOUT = 7200  # s of wall time per script
OUTPUT = build.TREE / "build"


def main(*, short: bool = False, only: Iterable[str] = (), jobs: int = 2, output: Path = OUTPUT,
         series: str = SERIES, again: bool = False, plots: bool = True) -> int:  # fmt: skip
    """Measure, `jobs` guests at a time, and print the tables; return 0. May raise LabError.

    only:  parts by name; all if empty
    again: repeat earlier measurements, see kept
    plots: draw the figures, too
    """
    started = time.monotonic()
    kernel = patched.find(series)
    samples = measure(kernel, plan(short, only), jobs, again=again)
    rows = found_rows(kernel, samples)
    bench_rows.write(output / "bench-shaper.json", rows)
    print(report(kernel, rows))
    if plots:
        from ..bench import shaper_plots

        drawn = shaper_plots.draw(output / "figures", samples)
        print(f"\nFigures: {', '.join(str(path) for path in drawn)}")
    say("shaper", f"done in {time.monotonic() - started:.0f} s")
    return 0


def plan(short: bool, only: Iterable[str] = ()) -> list[Script]:
    """List the scripts to run; LabError for an unknown part."""
    parts = tuple(only)
    if unknown := [name for name in parts if name not in shaper.PARTS]:
        raise LabError(f"unknown part {', '.join(unknown)}; available: {', '.join(shaper.PARTS)}")
    return shaper.scripts(shaper.SHORT if short else shaper.FULL, parts)


def measure(kernel: kernels.Kernel, scripts: list[Script], jobs: int = 2, *,
            again: bool = False) -> Samples:  # fmt: skip
    """Run scripts, or use their earlier results: see kept. LabError if one fails."""
    run, taken = runner(kernel)
    if not again:
        run = kept.kept(run, kernel, taken, "shaper")
    # Start the longest ones first, so that none of them is left at the end.
    scripts = sorted(scripts, key=lambda script: -script.weight)
    with Background(max_workers=jobs) as pool:
        return bench_rows.merge(pool.map(run, scripts))


def guest(kernel: kernels.Kernel) -> tuple[Callable[[Script], Result], list[Path | bytes]]:
    """Return a function that runs a script in a guest with a network, and the guest's contents."""
    built = build.build(kernel)
    modules = [build.find_ko(built, name) for name in shaper.MODULES]
    own = network.own_modules(kernel, shaper.OWN_MODULES)
    drivers = network.own_modules(kernel, ["virtio_pci", *shaper.CARDS])
    files = {**network.files(kernel), **own}
    names = " ".join(Path(name).stem for name in own)
    spies = {name: plugins.plugin(name) for name in (shaper.DOORBELLS,)}

    def run(script: Script) -> Result:
        head, cards = f"OWN='{names}'\n", {}
        if script.devices:
            cards = drivers
            head += f"DRIVERS='{' '.join(Path(name).stem for name in drivers)}'\n"
        return virtual.run(
            kernel, head + script.text(), modules=modules, files={**files, **cards},
            seed=script.seed, memory=MEMORY, timeout=TIMEOUT, devices=script.devices,
            plugins={name: spies[name] for name in script.plugins},
        )  # fmt: skip

    taken = [*modules, *files.values(), *drivers.values(), *spies.values(), Path(__file__)]
    return run, taken


def runner(kernel: kernels.Kernel) -> tuple[Callable[[Script], Samples], list[Path | bytes]]:
    """Return a function that measures by a script, and everything its result depends on.

    The function raises LabError if the script fails.
    """
    boot, taken = guest(kernel)

    def run(script: Script) -> Samples:
        started = time.monotonic()
        result = boot(script)
        if not result.ok:
            raise LabError(f"{script.name}: {result.verdict}\n{result.output[-3000:]}\n"
                           f"{result.kernel_log[-3000:]}")  # fmt: skip
        say("shaper", f"{script.name}, seed {script.seed}: {time.monotonic() - started:.0f} s")
        return script.samples(result.files)

    return run, taken


def found_rows(kernel: kernels.Kernel, samples: Samples) -> list[dict]:
    """Sum up samples, without moments, which are only for plots."""
    shown = {key: counts for key, counts in samples.items() if key.unit != "moment"}
    return bench_rows.rows(shown, kernel=kernel.release, engine="qemu-icount", cpus=1)


def report(kernel: kernels.Kernel, rows: list[Row]) -> str:
    """Return the tables, and the state of the goals."""
    return (
        f"The shaper on {kernel.release}: one cycle is one instruction and one nanosecond.\n"
        "shaper/error, stress, delays, cost: TSC at the driver's first instruction - the planned\n"
        "moment. shaper/fig4, fig5: spacing of neighbours - the nominal one.\n\n"
        + bench_rows.table(rows)
        + "\n\n"
        + goals.table(rows, shaper_goals.GOALS)
    )
