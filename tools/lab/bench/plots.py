"""Draw the benchmark's plots: one SVG file each, the same bytes for the same rows."""

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from . import cost, guest  # noqa: E402
from .rows import Row, Samples, select  # noqa: E402

LINEAR = 10  # cycles on either side of 0 within which an axis of errors is linear
STEPS = 12  # bins per factor of ten


def draw(directory: Path, rows: list[Row], samples: Samples) -> list[Path]:
    """Draw the plots for which there are rows. Return the files."""
    plots: dict[str, Callable] = {
        "error": lambda: _error(samples),
        "distance": lambda: _curves(rows, "distance", "distance, s", 1e9),
        "period": lambda: _curves(rows, "period", "period, us", 1e3),
        "cost": lambda: _cost(rows),
        "guest": lambda: _guest(rows),
        "spin": lambda: _spin(rows),
    }
    present = {str(row["bench"]).split("/")[0] for row in rows}
    drawn = []
    for name, plot in plots.items():
        if name not in present:
            continue
        with matplotlib.rc_context({"svg.hashsalt": "apic-timer", "font.size": 8}):
            figure = plot()
            path = directory / f"bench-{name}.svg"
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)
        drawn.append(path)
    return drawn


def _label(row: Mapping | tuple) -> str:
    name, mode, source = (
        (row["timer"], row["mode"], row["source"]) if isinstance(row, Mapping)
        else (row.timer, row.mode, row.source)
    )  # fmt: skip
    return name if mode == "-" else f"{name} {mode}" + (", hrtimer" if source == "hrtimer" else "")


def _grid(count: int, columns: int, height: float = 3):
    lines = -(-count // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(5.5 * columns, height * lines),
                                squeeze=False, layout="constrained")  # fmt: skip
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.axis("off")
    return figure, flat


def _edge(step: int) -> float:
    """Return the lower edge of a bin: linear up to LINEAR, then STEPS per factor of ten."""
    size = abs(step)
    edge = size if size <= LINEAR else LINEAR * 10 ** ((size - LINEAR) / STEPS)
    return edge if step >= 0 else -edge


def _binned(counts: Mapping[int, int]) -> tuple[list[float], list[int]]:
    """Count errors in bins; return the edges, one more than the counts."""
    low = high = 0
    while _edge(low) > min(counts):
        low -= 1
    while _edge(high) <= max(counts):
        high += 1
    edges = [_edge(step) for step in range(low, high + 1)]
    binned = [0] * (len(edges) - 1)
    place = 0
    for error in sorted(counts):
        while edges[place + 1] <= error:
            place += 1
        binned[place] += counts[error]
    return edges, binned


def _error(samples: Samples):
    """Draw histograms of the errors under each load, on logarithmic axes."""
    keys = [key for key in samples if key.bench == "error"]
    loads = list(dict.fromkeys(key.load for key in keys))
    figure, axes = _grid(len(loads), 2)
    for axis, load in zip(axes, loads, strict=False):
        for key in sorted(key for key in keys if key.load == load):
            edges, counts = _binned(samples[key])
            style = {"label": _label(key), "linewidth": 1}
            if key.source == "hrtimer":
                style["linestyle"] = ":"
            axis.stairs(counts, edges, **style)
        axis.set_xscale("symlog", linthresh=LINEAR)
        axis.set_yscale("log")
        axis.set(title=load, xlabel="error, cycles", ylabel="shots")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=6)
    return figure


def _curves(rows: list[Row], bench: str, label: str, unit: float):
    """Draw p50, p99 and max of errors against the number in the benchmark's name."""
    mine = [r for r in rows if str(r["bench"]).startswith(f"{bench}/") and r["unit"] == "cycles"]
    figure, (axis,) = _grid(1, 1, 4)
    for n, name in enumerate(dict.fromkeys(_label(row) for row in mine)):
        line = sorted((int(str(r["bench"]).split("/")[1]) / unit, r) for r in mine
                      if _label(r) == name)  # fmt: skip
        for percentile, style in (("p50", "-"), ("p99", "--"), ("max", ":")):
            axis.plot([x for x, _ in line], [r[percentile] for _, r in line], style, marker=".",
                      color=f"C{n}", label=f"{name}, {percentile}")  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=LINEAR)
    axis.set(xlabel=label, ylabel="error, cycles")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=6)
    return figure


def _cost(rows: list[Row]):
    """Draw the cost of each operation against the number of pending timers."""
    operations = ("fill", *cost.PROBES, "empty")
    figure, axes = _grid(len(operations), 2, 2.5)
    for axis, operation in zip(axes, operations, strict=False):
        mine = [r for r in rows if str(r["bench"]).startswith(f"cost/{operation}/")]
        for timer in dict.fromkeys(str(row["timer"]) for row in mine):
            line = sorted((int(str(r["bench"]).split("/")[2]), r["mean"])
                          for r in select(mine, timer=timer))  # fmt: skip
            axis.plot([n for n, _ in line], [mean for _, mean in line], marker=".", label=timer)
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set(title=operation, xlabel="timers pending", ylabel="cycles, mean")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=6)
    return figure


def _guest(rows: list[Row]):
    """Draw the cost of the kernel's own timers in each state, as bars."""
    shown = (("", "hrtimer_hard", "error of an hrtimer"), ("/event", "hrtimer_hard", "one event"),
             ("", "cyclictest", "cyclictest"), ("/wakeups", "LOC", "wake-ups, idle"))  # fmt: skip
    figure, axes = _grid(len(shown), 2, 2.5)
    for axis, (suffix, timer, title) in zip(axes, shown, strict=False):
        states, bars = [], []
        for state in guest.STATES:
            for row in select(rows, bench=guest.bench(state) + suffix, timer=timer):
                states.append(state)
                bars.append(row)
        for n, percentile in enumerate(("p50", "p99", "max")):
            places = [place + 0.27 * (n - 1) for place in range(len(bars))]
            axis.bar(places, [row[percentile] for row in bars], 0.25, label=percentile)
        axis.set_xticks(range(len(states)), states)
        axis.set(title=title, ylabel=bars[0]["unit"] if bars else "")
        axis.set_yscale("log")
    axes[0].legend(fontsize=6)
    return figure


def _spin(rows: list[Row]):
    """Draw the CPU time spun and the remaining error against the chosen quantile."""
    mine = [row for row in rows if str(row["bench"]).startswith("spin/")]
    figure, axes = _grid(2, 2)
    for axis, unit, value, label in ((axes[0], "ppm_of_cpu", "mean", "spin, ppm of a CPU"),
                                     (axes[1], "cycles", "p99", "error p99, cycles")):  # fmt: skip
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in select(mine, unit=unit):
            _, quantile, rate = str(row["bench"]).split("/")
            point = (1 - int(quantile) / 10_000, row[value])
            lines.setdefault(f"{int(rate):,}/s, {row['load']}", []).append(point)
        for name, line in lines.items():
            line.sort()
            axis.plot([x for x, _ in line], [y for _, y in line], marker=".", label=name)
        axis.set_xscale("log")
        axis.invert_xaxis()
        axis.set_yscale("symlog", linthresh=LINEAR)
        axis.set(xlabel="part of shots that may be late (1 - quantile)", ylabel=label)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=6)
    return figure
