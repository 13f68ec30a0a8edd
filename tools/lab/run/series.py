"""Values in time order, summarised as the program apic-timer does: user/tool/series.c."""

import math


def quantile(values: list[int], percent: float) -> int:
    """Return the value that PERCENT percent of the values are below; 0 if there are none."""
    place = int(len(values) * percent / 100)
    return sorted(values)[min(place, len(values) - 1)] if values else 0


def summary(values: list[int]) -> dict[str, int]:
    """Return the quantiles that are in the program's rows."""
    return {"p50": quantile(values, 50), "p99": quantile(values, 99),
            "p999": quantile(values, 99.9), "max": quantile(values, 100)}  # fmt: skip


def deviation(values: list[int], most: int) -> float:
    """Return the standard deviation of the values that are not above `most`."""
    taken = [value for value in values if value <= most]
    mean = sum(taken) / len(taken) if taken else 0.0
    return math.sqrt(sum((v - mean) ** 2 for v in taken) / len(taken)) if taken else 0.0


def period(values: list[int], lags: int, most: int) -> tuple[int, float]:
    """Return the number of values after which they repeat, and their correlation at that lag.

    It is a peak, not the slope that begins at 0; among a lag and its multiples, the first. (0, 0.0)
    means none. Values above `most` count as `most`.
    """
    if len(values) < 4 * lags:
        return 0, 0.0
    limited = [min(value, most) for value in values]
    mean = sum(limited) / len(limited)
    centred = [value - mean for value in limited]
    square = sum(value * value for value in centred)
    if square <= 0:
        return 0, 0.0
    found = [sum(a * b for a, b in zip(centred[lag:], centred, strict=False)) / square
             for lag in range(lags + 1)]  # fmt: skip
    best, at = 0.2, 0
    for lag in range(2, lags):
        if found[lag] > best * 1.1 and found[lag - 1] < found[lag] >= found[lag + 1]:
            best, at = found[lag], lag
    return at, best if at else 0.0


def slowest(values: list[int], each: int) -> int:
    """Return the offset of those EACH-th values whose median is the largest."""
    return max(range(each), key=lambda phase: quantile(values[phase::each], 50))


def step(values: list[int], each: int, within: int) -> int:
    """Return by how much the EACH-th value exceeds the others, by medians.

    The others are those at multiples of `within` from it; all, if `within` equals `each`.
    """
    best = slowest(values, each)
    others = [quantile(values[phase::each], 50) for phase in range(each)
              if phase != best and (within == each or (phase - best) % within == 0)]  # fmt: skip
    return quantile(values[best::each], 50) - quantile(others, 50)
