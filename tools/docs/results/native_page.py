"""docs/results/native-*.md: measurements on a real CPU, from the rows of lab.run.native."""

from collections.abc import Iterable

from ..table import table

Row = dict  # of lab.run.native


def text(found: dict) -> str:
    """Return the page's text: the goals, and a table for each kind of row."""
    from lab.bench import goals, native_goals

    rows = found["rows"]
    return "\n".join((
        "In processes on this machine, without the module: not in virtual time, and other figures\n"
        "in each run. What others do on the machine is in the last columns.\n\n"
        f"## Goals\n\n```\n{goals.table(rows, native_goals.GOALS)}\n```\n",
        _dispatch(rows), _wait(rows), _queue(rows), _touched(rows), _clocks(rows), _loops(rows),
        _loads(rows),
    ))  # fmt: skip


def _of(rows: list[Row], bench: str) -> list[Row]:
    return [row for row in rows if row["bench"] == bench]


def _dispatch(rows: list[Row]) -> str:
    whole = _of(rows, "spin")[0]
    mine = [row for row in rows if row["bench"].startswith("spin/")]
    return (
        "## Dispatch\n\n"
        f"`make spin`: the TSC counts in steps of {whole['step']}; from the last look at it to\n"
        f"the handler {whole['call']} cycles at least, of which {whole['taken_off']} are\n"
        "taken off. TSC cycles after the expiry:\n\n"
        + table(("caches", "what", "min", "p50", "p99", "max"),
                [(*row["bench"].split("/", 2)[1:], *(row[n] for n in ("min", "p50", "p99", "max")))
                 for row in mine], words=2)
    )  # fmt: skip


def _wait(rows: list[Row]) -> str:
    whole = _of(rows, "until")[0]
    return (
        "## Wait of a program\n\n"
        "The library's `at_until()`, as `make spin` measures it: the next instruction after a\n"
        f"moment so far ahead. {whole['taken_off']} cycles are taken off for the way to it. TSC\n"
        "cycles after the moment:\n\n"
        + table(("wait by", "cycles ahead", "min", "p50", "p99", "max"),
                [(row["wait"], row["ahead"], *(row[n] for n in ("min", "p50", "p99", "max")))
                 for row in _of(rows, "until/wait")], words=1)
    )  # fmt: skip


def _by_pending(rows: list[Row], bench: str, names: Iterable[str]) -> str:
    """Return a table: a line per operation, and a column per number of pending timers.

    names: the figures of a cell, each for the order in which it is worst
    """
    mine = _of(rows, bench)
    numbers = sorted({row["pending"] for row in mine})
    lines = []
    for operation in dict.fromkeys(row["operation"] for row in mine):
        cells = []
        for pending in numbers:
            of = [r for r in mine if (r["operation"], r["pending"]) == (operation, pending)]
            cells.append(" / ".join(f"{max(row[name] for row in of):,}" for name in names))
        lines.append((operation, *cells))
    return table(("operation", *(f"{pending:,} pending" for pending in numbers)), lines, words=1)


def _queue(rows: list[Row]) -> str:
    repeats = _of(rows, "queue/time")[0].get("repeats", 1)
    least = "\n" if repeats == 1 else (
        " Each operation was repeated from the\n"
        f"same state, and the least of its {repeats} times counts: what else runs can only add.\n"
    )  # fmt: skip
    return (
        "## Queue\n\n"
        "`make queue`: how long interrupts are off for an operation, with all timers thrown out\n"
        "of the caches before it. ns, p50 / p99, each of that order of expiries of four in which\n"
        f"it is worst.{least}\n"
        + _by_pending(rows, "queue/time", ("p50", "p99"))
    )  # fmt: skip


def _touched(rows: list[Row]) -> str:
    return (
        "## Timers touched\n\n"
        "The same operations, counted: how many timers each comes to, p99 / most, in the worst\n"
        "order. These are the same on any machine.\n\n"
        + _by_pending(rows, "queue/count", ("p99", "max"))
    )  # fmt: skip


def _clocks(rows: list[Row]) -> str:
    return (
        "## Clocks\n\n`apic-timer clocks`: TSC cycles of a read.\n\n"
        + table(("clock", "p50", "p99"),
                [(row["name"], row["cycles_p50"], row["cycles_p99"])
                 for row in _of(rows, "clocks/clocks")], words=1)
    )  # fmt: skip


def _runs(rows: list[Row]) -> list[tuple]:
    return [tuple(row[name] for name in ("cycles", "lowest", "highest", "spread_percent"))
            for row in rows]  # fmt: skip


RUNS = ("core cycles", "lowest", "highest", "spread %")


def _loops(rows: list[Row]) -> str:
    mine = _of(rows, "cycles/rows")
    lines = [(row["loop"], *cells) for row, cells in zip(mine, _runs(mine), strict=True)]
    return f"## Loops\n\n`apic-timer cycles`: 10 runs.\n\n{table(('loop', *RUNS), lines, words=1)}"


def _loads(rows: list[Row]) -> str:
    mine = _of(rows, "memory/by_size")
    lines = [(row["kib"], *cells) for row, cells in zip(mine, _runs(mine), strict=True)]
    sizes = ", ".join(f"{name.upper()} {kib:,} KiB" for name, kib in _of(rows, "caches")[0].items()
                      if name != "bench")  # fmt: skip
    return (
        f"## Loads\n\n`apic-timer memory`: 10 runs; caches of data: {sizes}.\n\n"
        + table(("ring, KiB", *RUNS), lines, words=1)
    )  # fmt: skip
