"""The benchmark in Bochs: how exact timers are on the TSC deadline, in xAPIC and x2APIC mode.

Errors are in cycles of a 50 MHz TSC, one per instruction. What takes half a microsecond elsewhere
takes 10 us here, including the spin before an exact expiry.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ..base.background import Background
from ..base.errors import LabError
from ..base.progress import say
from ..engines import bochs
from ..engines.result import Result
from ..kernels import kernels
from . import period as bench_period
from . import rows as bench_rows
from .main import SERIES, runner
from .rows import Key, Samples
from .script import Script, ours

ENGINE = "bochs"
TIMEOUT = 3600  # seconds of wall time for a script
MODES = ("exact", "mean", "raw")
DISTANCE_NS = (20_000, 1_020_000)
SPIN_NS = 200_000
PERIODS_NS = (1_000_000, 200_000)
RUN_MS = 500
APICS = {"xapic": False, "x2apic": True}


def main(*, short: bool = False, only: Iterable[str] = (), jobs: int = 2, output: Path) -> int:
    """Run the benchmark in Bochs, `jobs` guests at a time. May raise LabError.

    only: "xapic", "x2apic"; nothing for both. Rows go to bench-bochs.json. Return 0 when all of it
    was measured.
    """
    started = time.monotonic()
    names = list(only) or list(APICS)
    unknown = [name for name in names if name not in APICS]
    if unknown:
        raise LabError(f"no benchmark {', '.join(unknown)} in Bochs; available: {', '.join(APICS)}")
    kernel = kernels.ensure(SERIES)
    with Background(max_workers=jobs) as pool:
        samples = bench_rows.merge(pool.map(lambda name: measure(kernel, name, short), names))
    found = rows(kernel, samples)
    bench_rows.write(output / "bench-bochs.json", found)
    print(f"apic-timer's benchmark on {kernel.release} in Bochs, TSC deadline: one cycle is one "
          f"instruction,\nthe TSC counts {bochs.HZ / 1e6:g} MHz. An error is the TSC at the "
          "handler's first instruction - the moment wanted.\n")  # fmt: skip
    print(bench_rows.table(found))
    say("bench", f"done in {time.monotonic() - started:.0f} s")
    return 0


def measure(kernel: kernels.Kernel, apic: str, short: bool) -> Samples:
    """Run the script for an APIC mode in a guest."""
    return in_bochs(kernel, APICS[apic])(script(apic, 1000 if short else 20_000))


def in_bochs(kernel: kernels.Kernel, x2apic: bool) -> Callable[[Script], Samples]:
    """Return a function that runs a script in a Bochs guest; LabError if that fails."""

    def run(script: Script, modules: list[Path]) -> Result:
        return bochs.run(kernel, script.text(), modules=modules, seed=script.seed, x2apic=x2apic,
                         timeout=TIMEOUT)  # fmt: skip

    return runner(kernel, run)


def script(apic: str, shots: int, seed: int = 1) -> Script:
    """Return the measurements, named after the APIC mode."""
    found = Script(f"bochs-{apic}", seed, weight=0)
    found.do(f"attach source=proxy spin_budget_ns={SPIN_NS}",
             "grep -q 'source proxy, TSC-deadline LAPIC timer' $us/info")  # fmt: skip
    for n, mode in enumerate(MODES):
        found.shots(f"apic_timer_{mode}", ours(f"error/{apic}", mode), shots, DISTANCE_NS,
                    warm_up=shots // 4, seed=10 * n)  # fmt: skip
    for period in PERIODS_NS:
        bench_period.measure(found, f"period/{apic}/{period}", "exact", period, RUN_MS)
    found.shots("hrtimer_hard", Key(f"error/{apic}", "hrtimer_hard"), shots, DISTANCE_NS, seed=100)
    found.do("detach")
    return found


def rows(kernel: kernels.Kernel, samples: Samples) -> list[dict]:
    """Summarise the samples of scripts as rows."""
    return bench_rows.rows(samples, kernel=kernel.release, engine=ENGINE, cpus=1)
