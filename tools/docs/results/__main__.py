"""Measure for docs/results; `make results` runs this."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from . import measure, tables
from .made import BENCH, CALENDAR, CLOCKS, DEMO, IDLE, NATIVE, SHAPER, USER

# For each result file, in the order of measurement: its name in the help, and the function that
# measures it.
MEASURED: dict[Path, tuple[str, Callable[[argparse.Namespace], None]]] = {
    DEMO: ("the demo", lambda _: measure.measure_demo()),
    BENCH: ("the benchmark",
            lambda how: measure.measure_bench(short=how.short, only=how.only, jobs=how.jobs)),
    USER: ("threads of programs",
           lambda how: measure.measure_user(short=how.short, jobs=how.jobs)),
    CALENDAR: ("calendars", lambda how: measure.measure_calendar(short=how.short)),
    SHAPER: ("the shaper's benchmark",
             lambda how: measure.measure_shaper(short=how.short, jobs=how.jobs)),
    IDLE: ("idle states", lambda how: measure.measure_idle(short=how.short)),
    CLOCKS: ("the tests of clocks", lambda _: measure.measure_clocks()),
    NATIVE: ("this machine's CPU", lambda _: measure.measure_native()),
}  # fmt: skip


def main() -> int:
    """Measure what the command line selects, by default everything, and write the results."""
    parser = argparse.ArgumentParser(prog="docs.results", description="measure for docs/results")
    for file, (what, _) in MEASURED.items():
        parser.add_argument(f"--{file.stem}", action="store_true", help=f"measure only {what}")
    parser.add_argument("--short", action="store_true", help="run only part of it")
    parser.add_argument("--only", nargs="*", default=[], help="parts to run")
    parser.add_argument("--jobs", type=int, default=2, help="number of guests to run at once")
    arguments = parser.parse_args()
    chosen = [file for file in MEASURED if getattr(arguments, file.stem)]
    for file in chosen or MEASURED:
        MEASURED[file][1](arguments)
    tables()
    return 0


if __name__ == "__main__":
    sys.exit(main())
