"""Summarise errors of timers, as a table and as histograms for a terminal."""

import math
from array import array
from collections import Counter
from collections.abc import Mapping

BAR = 16  # characters of a full bar


def decode(data: bytes) -> Counter[int]:
    """Count the samples of a test module: each is an s64, in the module's unit."""
    return Counter(array("q", data))


def summary(errors: Mapping[int, int]) -> dict[str, float]:
    """Return n, min, p50, p99, p999, max, mean and sd of errors, in their unit.

    `errors` has the number of times that each occurred. A percentile is the smallest error that
    this part of them does not exceed. ValueError if there are none.
    """
    n = sum(errors.values())
    if not n:
        raise ValueError("no errors to sum up")
    ordered = sorted(errors)
    mean = sum(e * errors[e] for e in ordered) / n
    # Exactly rounded: the order of addition must not affect the last digit.
    variance = math.fsum((e - mean) ** 2 * errors[e] for e in ordered) / n

    def percentile(per_mille: int) -> int:
        rank = max(-(-per_mille * n // 1000), 1)
        for error in ordered:
            rank -= errors[error]
            if rank <= 0:
                return error
        raise AssertionError("unreachable: ranks go up to n")

    return {
        "n": n,
        "min": ordered[0],
        "p50": percentile(500),
        "p99": percentile(990),
        "p999": percentile(999),
        "max": ordered[-1],
        "mean": mean,
        "sd": math.sqrt(variance),
    }


def table(samples: Mapping[str, Mapping[int, int]]) -> str:
    """Return a table with one row per timer of `samples` (name -> errors)."""
    heads = {"n": "expiries", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9",
             "max": "max"}  # fmt: skip
    lines = [f"{'timer':<18}" + "".join(f"{head:>12}" for head in heads.values())]
    for name, errors in samples.items():
        row = summary(errors)
        lines.append(f"{name:<18}" + "".join(f"{row[key]:>12,}" for key in heads))
    return "\n".join(lines)


def histograms(samples: Mapping[str, Mapping[int, int]]) -> str:
    """Return histograms side by side: a row per power of two, bars by the logarithm of counts."""
    counts = {name: _octaves(errors) for name, errors in samples.items()}
    rows = sorted(set().union(*counts.values()))
    most = max(max(count.values()) for count in counts.values())
    lines = [f"{'error':>24}  " + "".join(f"{name:<{BAR + 8}}" for name in counts).rstrip()]
    for i, row in enumerate(rows):
        if i and row > rows[i - 1] + 1:
            lines.append(f"{'...':>24}")
        line = f"{_range(row):>24}  "
        for count in counts.values():
            line += f"{_bar(count.get(row, 0), most):<{BAR + 8}}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _octaves(errors: Mapping[int, int]) -> dict[int, int]:
    """Count errors by their signed number of binary digits."""
    count: dict[int, int] = {}
    for error, times in errors.items():
        row = error.bit_length() if error >= 0 else -error.bit_length()
        count[row] = count.get(row, 0) + times
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
