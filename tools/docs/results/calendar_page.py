"""docs/results/calendar.md: starts and ends of a calendar's windows, and the smallest gap."""

import re
from collections.abc import Iterable

from ..source import TREE
from ..table import FIGURES, table


def text(found: dict) -> str:
    """Return the page's text: for each kernel, errors and gaps under each load, and the goals."""
    from lab.bench import calendar_goals, goals
    from lab.run import demo_calendar

    page = (
        "The calendar [demo.calendar](../../samples/demo.calendar), in virtual time. An error is\n"
        "the TSC at the first instruction of a window, less the window's start.\n"
        f"`{demo_calendar.OVERRUNS}` does not end in one of {demo_calendar.EVERY} windows: below"
        " the errors is its last instruction,\n"
        "less the window's end, and its next one, less the start of its next window.\n\n"
        "Gaps: the errors of a thread whose window begins so much after that of another one, and\n"
        "how many of its windows it did not get. The other one has ended its window, or was\n"
        "stopped at the end of it. The parameter `gap_ns` of the module is lowered for that, to\n"
        f"the gap: by default, LOAD refuses one of less than {_default_gap_ns():,} ns.\n"
    )
    paired = [row for row in found["rows"] if row["cpus"] > 1]
    single = [row for row in found["rows"] if row not in paired]
    for kernel in dict.fromkeys(row["kernel"] for row in single):
        rows = [row for row in single if row["kernel"] == kernel]
        page += f"\n## {kernel}\n"
        for load in calendar_goals.LOADS:
            if under := [row for row in rows if row["load"] == load]:
                page += _under(load, under)
        page += f"\n```\n{goals.table(rows, calendar_goals.GOALS)}\n```\n"
    return page + _paired(paired) if paired else page


def _paired(rows: list[dict]) -> str:
    """Return the section of windows that begin at the same TSC value on two CPUs."""
    from lab.bench import calendar_goals, goals

    lines = []
    for row in rows:
        what, kind = row["bench"].removeprefix(f"{calendar_goals.TOGETHER}/").split("/")
        lines.append((what, kind, *_figures(row)))
    return (
        f"\n## Two CPUs, in Bochs, {rows[0]['kernel']}\n\n"
        "Two threads, and two functions, whose windows begin at the same TSC value: how late they\n"
        "start, and how far apart. Its TSC counts at 50 MHz.\n\n"
        + table(("unit", "", *FIGURES.values()), lines, words=2)
        + f"\n```\n{goals.table(rows, calendar_goals.PAIRED_GOALS)}\n```\n"
    )


def _default_gap_ns() -> int:
    """Return the default of apic_calendar's parameter gap_ns."""
    header = (TREE / "module/calendar/table.h").read_text()
    return int(re.search(r"^#define CALENDAR_GAP_USER\s+(\d+)$", header, re.MULTILINE)[1])


def _under(load: str, rows: Iterable[dict]) -> str:
    """Return the tables for a load: errors, and one per kind of gap."""
    from lab.bench import calendar_goals
    from lab.bench.rows import LOST, lost
    from lab.run import calendar, demo_calendar

    of = {(row["bench"], row["unit"]): row for row in rows}
    benches = {unit: f"{calendar_goals.DISPATCH}/{unit}" for unit in demo_calendar.UNITS}
    benches |= {"last instruction": calendar_goals.TIMEOUT, "goes on": calendar_goals.RESUMED}
    page = "\n" + table((load, *FIGURES.values()),
                        ((what, *_figures(of[bench, "cycles"]))
                         for what, bench in benches.items()), words=1)  # fmt: skip
    kinds = ((calendar_goals.GAP, "ended"), (calendar_goals.STOPPED, "stopped"))
    for gap, what in kinds if load in calendar_goals.GAP_LOADS else ():
        lines = []
        for ns in calendar.GAPS_NS:
            errors = of.get((f"{gap}/{ns}", "cycles"), {})
            lines.append((f"{ns:,} ns", *_figures(errors), lost(of[f"{gap}/{ns}", LOST])))
        page += "\n" + table((f"{load}, gap, {what}", *FIGURES.values(), "lost"), lines, words=1)
    return page


def _figures(row: dict) -> list:
    return [row[key] if row else "" for key in FIGURES]
