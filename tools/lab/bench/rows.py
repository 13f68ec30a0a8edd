"""The benchmark's rows: what is measured, how it is named, and how it is written."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from . import figures

FIELDS = ("bench", "kernel", "engine", "cpus", "source", "mode", "timer", "load", "unit",
          "n", "min", "p50", "p99", "p999", "max", "mean", "sd")  # fmt: skip
LOST = "lost"  # the unit of samples that count what was lost
NONE = "-"  # where a field does not apply: the kernel's timers have no source and no mode of ours

Row = Mapping[str, str | int | float]


class Key(NamedTuple):
    """What the samples measure. Runs that differ only in their random numbers share a key."""

    bench: str  # name of the benchmark, then its parameters after slashes: "period/2000"
    timer: str  # "apic_timer", "hrtimer_hard", ...
    source: str = NONE
    mode: str = NONE
    load: str = "idle"
    unit: str = "cycles"


Samples = dict[Key, Counter[int]]


def merge(parts: Iterable[Mapping[Key, Mapping[int, int]]]) -> Samples:
    """Combine the samples of several runs."""
    merged: Samples = {}
    for part in parts:
        for key, counts in part.items():
            merged.setdefault(key, Counter()).update(counts)
    return merged


def rows(samples: Samples, *, kernel: str, engine: str, cpus: int) -> list[dict]:
    """Summarise samples, one row per key, in the order of the keys. Fractions have 3 digits.

    The mean of what was lost has all digits: three cannot tell one of 2,000 from two.
    """
    found = []
    for key in sorted(samples, key=_order):
        row = {**key._asdict(), "kernel": kernel, "engine": engine, "cpus": cpus,
               **figures.summary(samples[key])}  # fmt: skip
        row["sd"] = round(row["sd"], 3)
        if key.unit != LOST:
            row["mean"] = round(row["mean"], 3)
        found.append({name: row[name] for name in FIELDS})
    return found


def _order(key: Key) -> tuple:
    """Sort names by their parts; compare parts that are numbers as numbers."""
    parts = [(int(p), "") if p.isdigit() else (0, p) for p in key.bench.split("/")]
    return parts, key[1:]


def write(path: Path, found: list[dict], machine: Mapping[str, object] | None = None) -> None:
    """Write rows as a JSON list, one per line; below the machine's data, if given.

    The list of a virtual machine, which is the same everywhere, stands alone.
    """
    lines = ",\n".join(json.dumps(row) for row in found)
    text = f"[\n{lines}\n]\n"
    if machine is not None:
        text = f'{{"machine": {json.dumps(machine, indent=1)},\n"rows": {text}}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def select(found: Iterable[Row], **wanted: str) -> list[Row]:
    """List the rows with these values in these fields."""
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def lost(row: Row) -> int:
    """Return how much was lost in all, from a row with the unit LOST."""
    return round(row["mean"] * row["n"])


def table(found: Iterable[Row]) -> str:
    """Return rows as a table for a terminal, with a block per benchmark."""
    heads = ("bench", "timer", "mode", "source", "load", "unit")
    numbers = ("n", "min", "p50", "p99", "p999", "max", "mean", "sd")
    lines, last = [], None
    for row in found:
        bench = str(row["bench"]).split("/")[0]
        if bench != last:
            head = f"{'bench':<24}{'timer':<14}{'mode':<9}{'source':<8}{'load':<8}{'unit':<12}"
            lines += ["", head + f"{'n':>9}" + "".join(f" {name:>11}" for name in numbers[1:])]
            last = bench
        text = "".join(f"{row[h]:<{w}}" for h, w in zip(heads, (24, 14, 9, 8, 8, 12), strict=True))
        text += f"{row['n']:>9,}" + "".join(f" {row[name]:>11,}" for name in numbers[1:6])
        lines.append(text + "".join(f" {row[name]:>11,.1f}" for name in numbers[6:]))
    return "\n".join(lines[1:])
