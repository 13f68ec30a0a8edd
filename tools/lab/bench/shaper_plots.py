"""Draw the shaper's figures: those of the paper of 2001, and more.

The same rows give the same bytes. Captions give the paper's measurements, on a PC of 700 MHz with
100 Mbit/s Ethernet.
"""

import csv
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from . import figures, shaper  # noqa: E402
from .plots import LINEAR, _binned, _grid  # noqa: E402
from .rows import NONE, Key, Samples  # noqa: E402

PAPER = {
    "fig2": "Paper: 5 ms by the PC's timer, about 0.1 ms at 5,000 ticks a second, 2 us by its own.",
    "fig3": "Paper: 10 ms at worst by the PC's timer, 0.2 ms at 5,000 ticks a second, 2 us.",
    "fig4": "Paper: clouds by the two coarse timers, a line at 10.3 ms by its own.",
    "fig5": "Paper: clouds by the two coarse timers, a line at 107 us by its own, to about 2 us.",
    "stress": "Paper: held down to 17 us; then packets were not made fast enough.",
    "error": "Not in the paper.",
}


def draw(directory: Path, samples: Samples) -> list[Path]:
    """Draw the figures that have samples, write their data as CSV, and return the drawings."""
    directory.mkdir(parents=True, exist_ok=True)
    plots: dict[str, Callable] = {
        "fig2": _deviation, "fig3": _histograms, "fig4": _spacing, "fig5": _spacing,
        "stress": _stress, "error": _loads,
    }  # fmt: skip
    parts = {"fig2": ("delays",), "fig3": ("delays",), "stress": ("stress", "sender")}
    drawn = []
    for name, plot in plots.items():
        mine = {key: counts for key, counts in samples.items()
                if key.bench.split("/")[1] in parts.get(name, (name,))}  # fmt: skip
        if not mine:
            continue
        with matplotlib.rc_context({"svg.hashsalt": "apic-timer", "font.size": 8}):
            figure = plot(mine, name)
            figure.text(0.01, -0.02, PAPER[name], fontsize=7, va="top")
            path = directory / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)
        _write(path.with_suffix(".csv"), mine)
        drawn.append(path)
    return drawn


def _write(path: Path, samples: Samples) -> None:
    """Write samples, one value a line."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Key._fields, "value", "count"))
        for key in sorted(samples):
            writer.writerows((*key, *found) for found in sorted(samples[key].items()))


def label(key: Key) -> str:
    """Return the name of a qdisc in plots and tables."""
    return key.timer if key.mode in (NONE, "paper") else f"{key.timer} {key.mode}"


def _ordered(samples: Samples, unit: str = "cycles") -> list[Key]:
    """List the keys of a unit in the order of shaper.WAYS; keys of no way follow their timer's."""
    timers = list(dict.fromkeys(way.timer for way in shaper.WAYS))
    ways = [(way.timer, way.mode) for way in shaper.WAYS]

    def place(key: Key) -> tuple:
        way = (key.timer, key.mode)
        return timers.index(key.timer), ways.index(way) if way in ways else len(ways), key

    return sorted((key for key in samples if key.unit == unit), key=place)


def _deviation(samples: Samples, name: str):
    keys = _ordered(samples)
    means = [sum(abs(e) * n for e, n in samples[key].items()) / sum(samples[key].values())
             for key in keys]  # fmt: skip
    figure, (axis,) = _grid(1, 1)
    bars = axis.barh([label(key) for key in keys], means)
    axis.bar_label(bars, [f"{mean:,.0f} ns" for mean in means], padding=3)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlim(right=max(means) * 20)
    axis.set(title="Fig. 2: mean deviation of the departure from the plan",
             xlabel="mean of |departure - plan|, ns; delays 0.02 to 20 ms")  # fmt: skip
    return figure


def _histograms(samples: Samples, name: str):
    keys = _ordered(samples)
    figure, axes = _grid(len(keys), 2, 2)
    for axis, key in zip(axes, keys, strict=False):
        edges, counts = _binned(samples[key])
        axis.stairs(counts, edges, fill=True)
        axis.set_xscale("symlog", linthresh=LINEAR)
        axis.set_xlim(-1e8, 1e8)
        axis.set(title=label(key), ylabel="packets")
    figure.suptitle("Fig. 3: departure - plan, ns; delays 0.02 to 20 ms")
    return figure


def _spacing(samples: Samples, name: str):
    """Draw spacings by packet number, a panel for each qdisc, as the paper does."""
    nominal = shaper.nominal_ns(name)
    rate, size = shaper.FIGURES[name]
    keys = _ordered(samples, "moment")
    figure, axes = _grid(len(keys), 3, 2.2)
    for axis, key in zip(axes, keys, strict=False):
        distances = shaper.spacings(sorted(samples[key]))
        axis.plot([d / 1000 for d in distances[:300]], ".", markersize=2)
        far = figures.summary(Counter(abs(round(d - nominal)) for d in distances))
        axis.set_title(f"{label(key)}: 99.9 % within {far['p999']:,} ns")
        axis.set_ylim(0, 2.2 * nominal / 1000)
        axis.set(ylabel="spacing, us")
        axis.grid(alpha=0.3)
    figure.suptitle(f"Fig. {name[-1]}: {size}-byte packets at {rate / 1e6:g} Mbit/s, nominally "
                    f"{nominal / 1000:,.2f} us apart")  # fmt: skip
    return figure


def _stress(samples: Samples, name: str):
    figure, (axis,) = _grid(1, 1, 4)
    lines: dict[str, list[tuple[float, int]]] = {}
    for key in _ordered(samples):
        _, part, gap = key.bench.split("/")
        text = label(key) + (", sender running" if part == "sender" else "")
        errors: Counter[int] = Counter()
        for e, n in samples[key].items():
            errors[abs(e)] += n
        lines.setdefault(text, []).append((int(gap) / 1000, figures.summary(errors)["p999"]))
    for n, (text, line) in enumerate(lines.items()):
        line.sort()
        axis.plot([x for x, _ in line], [y for _, y in line], "--" if "sender" in text else "-",
                  marker=".", color=f"C{n}", label=text)  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=LINEAR)
    axis.set_ylim(bottom=0)
    axis.invert_xaxis()
    places = [gap / 1000 for gap in shaper.STRESS_NS]
    axis.set_xticks(places, [f"{place:g}" for place in places])
    axis.minorticks_off()
    axis.set(title="Departures at small distances", xlabel="planned spacing, us",
             ylabel="p99.9 of |departure - plan|, ns")  # fmt: skip
    axis.grid(alpha=0.3)
    axis.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _loads(samples: Samples, name: str):
    loads = [load for load in shaper.LOADS if any(key.load == load for key in samples)]
    figure, axes = _grid(len(loads), 2)
    for axis, load in zip(axes, loads, strict=False):
        of_load: Mapping = {key: samples[key] for key in samples if key.load == load}
        for key in _ordered(of_load):
            edges, counts = _binned(of_load[key])
            axis.stairs(counts, edges, label=label(key), linewidth=1)
        axis.set_xscale("symlog", linthresh=LINEAR)
        axis.set_yscale("log")
        axis.set(title=load, xlabel="departure - plan, ns", ylabel="packets")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=6)
    return figure
