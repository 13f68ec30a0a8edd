"""docs/results/shaper.md: the benchmark of the qdisc "apic", with its plots."""

from ..table import FIGURES, table
from .made import RESULTS, TORTURE, load

SHAPED = (
    ("shaper/error", "Errors under loads", "Packets at random distances, each with its time by "
     "`SO_TXTIME`: departure - plan."),
    ("shaper/idle", "Other kernels", "The same on an idle CPU, by kernel."),
    ("shaper/fig5", "Figure 5", "A burst of 667-byte packets at 50 Mbit/s: spacing - 106,720."),
    ("shaper/lasting", "Figure 5 for ten seconds", "The same; the next burst is "
     "queued before the last one's end."),
    ("shaper/fig4", "Figure 4", "A burst of 1,292-byte packets at 1 Mbit/s: spacing - 10,336,000."),
    ("shaper/delays", "Figures 2 and 3", "Packets at random distances of 0.02 to 20 ms: departure "
     "- plan."),
    ("shaper/stress", "Small distances", "Packets at distances in ns, all queued before: departure "
     "- plan."),
    ("shaper/sender", "With the sender running", "The same while they are still being queued."),
    ("shaper/cost", "CPU time", "Cycles that a packet takes from the rest of the CPU, by distance "
     "in ns."),
    ("shaper/doorbell", "Doorbells", "From a packet's moment to the write by which the driver of a "
     "network card starts it; *set*: with `doorbell` of the qdisc at {doorbells}, which is less "
     "than the least of the other row, so that no card is started early."),
)  # fmt: skip
# The field in which the rows of a table differ, in addition to the qdisc.
SHAPED_BY = {"shaper/error": "load", "shaper/idle": "kernel", "shaper/stress": "distance",
             "shaper/sender": "distance", "shaper/doorbell": "driver"}  # fmt: skip


def text(found: dict) -> str:
    """Return the page's text: a table for each entry of SHAPED, the goals and the plots."""
    from lab.bench import goals, shaper, shaper_goals

    rows = found["rows"]
    doorbells = ", ".join(f"{ns} ns" for _, ns in shaper.CARDS.values())
    page = ("Each table is of one boot in virtual time: one cycle is one instruction and one\n"
            "nanosecond. A departure is the first instruction of the driver.\n")  # fmt: skip
    for name, title, what in SHAPED:
        mine = [row for row in rows if row["bench"] == name or row["bench"].startswith(f"{name}/")]
        if shown := _table(name, mine):
            page += f"\n## {title}\n\n{what.format(doorbells=doorbells)}\n\n{shown}"
    drawn = sorted(path.name for path in RESULTS.glob("shaper-*.svg"))
    tortured = load(TORTURE)["rows"] if TORTURE.exists() else []
    standing = goals.table([*rows, *tortured], shaper_goals.GOALS)
    page += f"\n## Goals\n\n```\n{standing}\n```\n\n## Plots\n\n"
    return page + "\n\n".join(f"![{name.removesuffix('.svg')}]({name})" for name in drawn) + "\n"


def _table(name: str, rows: list[dict]) -> str:
    """Return the table of an entry of SHAPED; "" if nothing has been measured."""
    if name == "shaper/cost":
        unit, names, numbers = "packet_cycles", ("distance", "qdisc"), {"mean": "cycles"}
    else:
        by = (SHAPED_BY[name],) if name in SHAPED_BY else ()
        unit, names, numbers = "cycles", (*by, "qdisc"), FIGURES
    lines = []
    for row in sorted((row for row in rows if row["unit"] == unit), key=_order):
        qdisc = row["timer"] + (f" {row['mode']}" if row["mode"] not in ("-", "paper") else "")
        _, _, *distance = row["bench"].split("/")
        first = row[names[0]] if names[0] in ("load", "kernel") else " ".join(distance)
        cells = [first, qdisc] if len(names) > 1 else [qdisc]
        lines.append([*cells, *(f"{row[n]:,.0f}" for n in numbers)])
    return table((*names, *numbers.values()), lines, words=len(names)) if lines else ""


def _order(row: dict) -> tuple:
    """Order rows by load, then by distance (largest first), then as lab.bench.shaper does."""
    from lab.bench import shaper

    ways = [(way.timer, way.mode) for way in shaper.WAYS]
    distance = str(row["bench"]).split("/")[2:]
    return (shaper.LOADS.index(row["load"]), [-int(ns) for ns in distance if ns.isdigit()],
            [name for name in distance if not name.isdigit()],
            ways.index((row["timer"], row["mode"])))  # fmt: skip
