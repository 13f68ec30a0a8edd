"""docs/results/user.md: how late programs' threads run."""

from ..table import FIGURES, table

SLEEPERS = {
    ("apic_timer", "user"): "device, the library waits for the rest",
    ("apic_timer", "nofence"): "the same without the fence",
    ("apic_timer", "kernel"): "device, the kernel waits for the rest",
    ("nanosleep", "-"): "`clock_nanosleep()`",
    ("timerfd", "-"): "timerfd",
    ("cyclictest", "-"): "`cyclictest`, its own figures",
    ("sleepspin", "-"): "`clock_nanosleep()` until 12 µs before, then a loop",
    ("spin", "-"): "a loop alone",
}


def text(found: dict) -> str:
    """Return the page's text: for each kernel, a table per load, and the goals."""
    from lab.bench import goals

    page = (
        "A thread of `SCHED_FIFO` sleeps until a TSC value, in all ways in the same boot, in\n"
        "virtual time. An error is the TSC at its first instruction after the moment, less the\n"
        "moment; waited is what each sleep spends on the TSC after its wake-up, in the mean.\n"
        "[tests/user/latency.c](../../tests/user/latency.c) measures.\n"
    )
    for kernel in dict.fromkeys(row["kernel"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["kernel"] == kernel]
        page += f"\n## {kernel}\n"
        for load in dict.fromkeys(row["load"] for row in rows):
            sleepers = _sleepers([row for row in rows if row["load"] == load])
            page += "\n" + table((load, *FIGURES.values(), "waited"), sleepers, words=1)
        page += f"\n```\n{goals.table(rows, goals.threads(kernel))}\n```\n"
    return page


def _sleepers(rows: list[dict]) -> list[tuple]:
    """Return the lines of a table: one per way to sleep, with its mean wait."""
    from lab.bench import user

    errors, waited = (
        {(row["timer"], row["mode"]): row for row in rows if row["bench"] == bench}
        for bench in (user.NAME, user.WAITED)
    )
    return [
        (what, *(errors[key][number] for number in FIGURES),
         f"{waited[key]['mean']:,.0f}" if key in waited else "")
        for key, what in SLEEPERS.items() if key in errors
    ]  # fmt: skip
