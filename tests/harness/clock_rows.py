"""Measurements of the clock tests, for docs/results/clocks.md: see lab/bench/clock_goals.py."""

import json

from lab.bench import clock_goals


def keep(bench: str, **numbers: int) -> None:
    """Keep and print a row of a test."""
    print(f"{bench}: {' '.join(f'{name} {number:,}' for name, number in numbers.items())}")
    clock_goals.KEPT.mkdir(parents=True, exist_ok=True)
    file = clock_goals.KEPT / f"{bench.replace('/', '-')}.json"
    file.write_text(json.dumps({"bench": bench, **numbers}) + "\n")
