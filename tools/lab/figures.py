"""Sum up errors of timers, as a table and as histograms for a terminal."""

import math
from collections.abc import Mapping, Sequence

BAR = 20  # characters of a full bar


def summary(errors: Sequence[int]) -> dict[str, float]:
    """Return n, min, p50, p99, p999, max, mean and sd of errors, in their own unit.

    A percentile is the smallest error that so many of them don't exceed. ValueError for none.
    """
    if not errors:
        raise ValueError("no errors to sum up")
    ordered = sorted(errors)
    n = len(ordered)
    mean = sum(ordered) / n

    def percentile(part: float) -> int:
        return ordered[max(math.ceil(part * n) - 1, 0)]

    return {
        "n": n,
        "min": ordered[0],
        "p50": percentile(0.5),
        "p99": percentile(0.99),
        "p999": percentile(0.999),
        "max": ordered[-1],
        "mean": mean,
        "sd": math.sqrt(sum((e - mean) ** 2 for e in ordered) / n),
    }


def table(samples: Mapping[str, Sequence[int]]) -> str:
    """Return a table with one row per timer of `samples` (name -> errors)."""
    heads = {"n": "shots", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
    lines = [f"{'timer':<14}" + "".join(f"{head:>12}" for head in heads.values())]
    for name, errors in samples.items():
        row = summary(errors)
        lines.append(f"{name:<14}" + "".join(f"{row[key]:>12,}" for key in heads))
    return "\n".join(lines)


def histograms(samples: Mapping[str, Sequence[int]]) -> str:
    """Return histograms side by side: a row per power of two, bars by the logarithm of counts."""
    counts = {name: _octaves(errors) for name, errors in samples.items()}
    rows = sorted(set().union(*counts.values()))
    most = max(max(count.values()) for count in counts.values())
    lines = [f"{'error':>24}  " + "".join(f"{name:<{BAR + 8}}" for name in counts)]
    for i, row in enumerate(rows):
        if i and row > rows[i - 1] + 1:
            lines.append(f"{'...':>24}")
        line = f"{_range(row):>24}  "
        for count in counts.values():
            line += f"{_bar(count.get(row, 0), most):<{BAR + 8}}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _octaves(errors: Sequence[int]) -> dict[int, int]:
    """Count errors by signed number of binary digits."""
    count: dict[int, int] = {}
    for error in errors:
        row = error.bit_length() if error >= 0 else -error.bit_length()
        count[row] = count.get(row, 0) + 1
    return count


def _range(row: int) -> str:
    if row == 0:
        return "0"
    low, high = 1 << (abs(row) - 1), (1 << abs(row)) - 1
    return f"{low:,} .. {high:,}" if row > 0 else f"-{high:,} .. -{low:,}"


def _bar(count: int, most: int) -> str:
    if not count:
        return ""
    length = 1 + round((BAR - 1) * math.log(count) / math.log(most)) if most > 1 else BAR
    return "#" * length + f" {count:,}"
