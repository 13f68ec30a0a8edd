"""Values in the order of time, summed up as the program apic-timer does: user/tool/series.c."""

import math


def quantile(values: list[int], percent: float) -> int:
    """Return the value that PERCENT percent are below; 0 where there is none."""
    place = int(len(values) * percent / 100)
    return sorted(values)[min(place, len(values) - 1)] if values else 0


def summary(values: list[int]) -> dict[str, int]:
    """Return the quantiles that the program's rows have."""
    return {"p50": quantile(values, 50), "p99": quantile(values, 99),
            "p999": quantile(values, 99.9), "max": quantile(values, 100)}  # fmt: skip


def deviation(values: list[int], most: int) -> float:
    """Return the standard deviation of the values that are not above `most`."""
    taken = [value for value in values if value <= most]
    mean = sum(taken) / len(taken) if taken else 0.0
    return math.sqrt(sum((v - mean) ** 2 for v in taken) / len(taken)) if taken else 0.0


def period(values: list[int], lags: int, most: int) -> tuple[int, float]:
    """Return after how many values they repeat, and their correlation at that distance.

    That is a peak, not the slope that begins at 0; of twice and three times as far, the first. (0,
    0.0): there is none. Values above `most` count as that.
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
    """Return where the EACH-th values begin that are the largest, by their medians."""
    return max(range(each), key=lambda phase: quantile(values[phase::each], 50))


def step(values: list[int], each: int, within: int) -> int:
    """Return how much larger the EACH-th value is than the others, by medians.

    The others are those that a multiple of `within` lies between; all, where that is `each`.
    """
    best = slowest(values, each)
    others = [quantile(values[phase::each], 50) for phase in range(each)
              if phase != best and (within == each or (phase - best) % within == 0)]  # fmt: skip
    return quantile(values[best::each], 50) - quantile(others, 50)
