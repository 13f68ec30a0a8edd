"""docs/results/bench.md: a table for each part of the benchmark, with its plot."""

from ..table import table
from .made import RESULTS

# For each part of the benchmark, in the order of the page: the title of its plot; and in TABLES,
# below, the columns of its table.
PLOTS = {"error": "Errors", "distance": "Error by distance", "period": "Periods", "cost": "Cost",
         "guest": "What the kernel notices", "spin": "Spin", "clocks": "Clocks",
         "chain": "Chain"}  # fmt: skip
LOADS = ("idle", "user", "syscall", "net", "timers", "irqoff")
TABLES = {
    "error": "Error of each timer under each load, TSC cycles. `irqoff` turns interrupts off for\n"
    "up to 20 µs; `error/beyond` is the error less the time that interrupts were off, and\n"
    "`error/budget_25us` has timers whose budget for spinning is 25 µs.",
    "distance": "Error by distance: `distance/N` are timers N ns ahead.",
    "period": "`period/N` is a periodic timer of N ns: runs, moments lost, overruns, errors,\n"
    "jiffies passed and due, and how late a `timer_list` was, in jiffies.",
    "cost": "Cycles of each operation: `cost/OPERATION/PENDING`.",
    "guest": "What the kernel notices: apic_timer absent, attached and idle, and firing 10,000\n"
    "times a second.",
    "spin": "CPU time spent in spinning, by rate and `lead_quantile`.",
    "clocks": "What reading a clock costs, in the kernel and in a program. In an emulator a read\n"
    "of a device costs an instruction or two: such rows (`hpet`, `acpi_pm`, `rtc`) say nothing of\n"
    "hardware, where one takes about a microsecond.",
    "chain": "From an interrupt to the thread that waits for it, `apic-timer chain`:\n"
    "`chain/ROUTE/entry` is when its handler starts, `chain/ROUTE/user` when the thread runs,\n"
    "less the expiry.",
}


def part(row: dict) -> str:
    """Return the part of the benchmark that a row belongs to."""
    return str(row["bench"]).split("/")[0]


def text(found: dict) -> str:
    """Return the page's text: errors under loads and goals, then each part."""
    rows, parts = found["rows"], []
    for name, what in TABLES.items():
        mine = [row for row in rows if part(row) == name]
        if not mine:
            continue
        plot = RESULTS / f"bench-{name}.svg"
        shown = f"![{PLOTS[name]}]({plot.name})\n\n" if plot.exists() else ""
        more = ""
        if name == "clocks":
            more = _paper_of_clocks(mine)
        if name == "chain":
            more = threads_of_chain(mine)
        parts.append(f"## {name.capitalize()}\n\n{what}\n\n{shown}{_rows(mine)}{more}")
    return _summary(rows) + "\n".join(parts)


def _rows(rows: list[dict]) -> str:
    """Return everything that the benchmark reports for some rows."""
    names = ("bench", "timer", "mode", "source", "load", "unit")
    numbers, means = ("n", "min", "p50", "p99", "p999", "max"), ("mean", "sd")
    return table((*names, *numbers, *means),
                 ((*(row[n] for n in (*names, *numbers)), *(f"{row[n]:,.1f}" for n in means))
                  for row in rows), words=len(names))  # fmt: skip


def _paper_of_clocks(rows: list[dict]) -> str:
    """Return the time of 100,000,000 calls of gettimeofday(), here and in the paper of 2009."""
    from lab.bench import clocks

    return (
        "\n100,000,000 calls of `gettimeofday()`, seconds, by clocksource: computed from some\n"
        "thousands, of which each takes the same. Here an instruction takes a nanosecond; the\n"
        "paper's machine had a TSC of 1.66 GHz.\n\n"
        + table(("clocksource", "emulated, 1 GHz", "the paper"),
                ((clocksource, f"{row['p50'] / 1000:.1f}", seconds)
                 for clocksource, seconds in clocks.PAPER_S.items()
                 for row in rows if row["bench"] == clocks.paper(clocksource)), words=1)
    )  # fmt: skip


def threads_of_chain(rows: list[dict]) -> str:
    """Return when the thread runs, by route: after our interrupts and an hrtimer's."""
    from lab.bench import chain

    found = {(r["bench"], r["timer"], r["load"]): r for r in rows}
    cells = ("p50", "p99")
    loads = [load for load in chain.LOADS if load in {r["load"] for r in rows}]
    heads = [f"{load}: {timer} {cell}" for load in loads for timer in chain.TRIGGERS.values()
             for cell in cells]  # fmt: skip
    lines = []
    for route in (*chain.ROUTES, chain.DEVICE):
        line = [route]
        for load in loads:
            for timer in chain.TRIGGERS.values():
                row = found.get((chain.bench(route, "user"), timer, load))
                line += [row[cell] if row else "" for cell in cells]
        lines.append(line)
    return (
        "\nThread - expiry, TSC cycles. The paper of 1997 had 10,000 interrupts a series, and\n"
        "98 % of its threads within 200 µs. `device` is no interrupt's route: the thread\n"
        f"sleeps by `/dev/apic_timer`.\n\n{table(('route', *heads), lines, words=1)}"
    )


def _summary(rows: list[dict]) -> str:
    """Return the errors of three timers under each load, and where the goals stand."""
    from lab.bench import goals

    page = ""
    timers = (
        ("apic_timer", "exact", "proxy"),
        ("hrtimer_hard", "-", "-"),
        ("cyclictest", "-", "-"),
    )
    errors = [row for row in rows if row["bench"] == "error" and row["unit"] == "cycles"]
    loads = sorted({row["load"] for row in errors}, key=LOADS.index)
    if errors:
        cells = {"p50": "p50", "p999": "p99.9", "max": "max"}
        lines = []
        for load in loads:
            line = [load]
            for timer, mode, source in timers:
                match = [r for r in errors if (r["timer"], r["mode"], r["load"]) ==
                         (timer, mode, load) and r["source"] in (source, "-")]  # fmt: skip
                line += [match[0][c] for c in cells] if match else [""] * len(cells)
            lines.append(line)
        heads = [f"{timer} {head}" for timer, _, _ in timers for head in cells.values()]
        page = f"## Errors under loads\n\n{table(('load', *heads), lines, words=1)}\n"
    return page + f"## Goals\n\n```\n{goals.table(rows, goals.HANDLERS + goals.CHAIN)}\n```\n\n"
