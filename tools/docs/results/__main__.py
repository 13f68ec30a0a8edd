"""Measure for docs/results; `make results` runs this."""

import argparse
import sys
from collections.abc import Callable

from . import measure, tables
from .made import BENCH, CALENDAR, CLOCKS, DEMO, IDLE, SHAPER, TORTURE, USER

# For each option, in the order of measurement: what it measures, and the function that does it.
MEASURED: dict[str, tuple[str, Callable[[argparse.Namespace], None]]] = {
    DEMO.stem: ("the demo", lambda _: measure.measure_demo()),
    BENCH.stem: ("the benchmark",
            lambda how: measure.measure_bench(short=how.short, only=how.only, jobs=how.jobs)),
    USER.stem: ("threads of programs",
           lambda how: measure.measure_user(short=how.short, jobs=how.jobs)),
    CALENDAR.stem: ("calendars", lambda how: measure.measure_calendar(short=how.short)),
    SHAPER.stem: ("the shaper's benchmark",
             lambda how: measure.measure_shaper(short=how.short, jobs=how.jobs)),
    IDLE.stem: ("idle states", lambda how: measure.measure_idle(short=how.short)),
    CLOCKS.stem: ("the tests of clocks", lambda _: measure.measure_clocks()),
    TORTURE.stem: ("torture", lambda how: measure.measure_torture(short=how.short)),
    "native": ("this machine's CPU", lambda _: measure.measure_native()),
}  # fmt: skip


def main() -> int:
    """Measure what the command line selects, by default everything, and write the results."""
    parser = argparse.ArgumentParser(prog="docs.results", description="measure for docs/results")
    for name, (what, _) in MEASURED.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"measure only {what}")
    parser.add_argument("--short", action="store_true", help="run only part of it")
    parser.add_argument("--only", nargs="*", default=[], help="parts to run")
    parser.add_argument("--jobs", type=int, default=2, help="number of guests to run at once")
    arguments = parser.parse_args()
    chosen = [name for name in MEASURED if getattr(arguments, name)]
    for name in chosen or MEASURED:
        MEASURED[name][1](arguments)
    tables()
    return 0


if __name__ == "__main__":
    sys.exit(main())
