"""docs/results/torture.md: random operations on CPUs that go offline, with an account of each."""

from ..table import table


def text(found: dict) -> str:
    """Return the page's text: a table for the timers, and one for the shaper's packets."""
    timers = [row for row in found["rows"] if row["bench"] == "torture/timers"]
    packets = [row for row in found["rows"] if row["bench"] == "torture/shaper"]
    return (
        "On CPUs that are threads of an emulator, while CPUs go offline and come back: races are\n"
        "real, times mean nothing. [Torture](../howto/torture.md) explains both, and runs them\n"
        "anywhere.\n\n"
        "## Timers\n\n"
        "Random calls from threads and handlers; the fate of each expiry is checked. A run with a\n"
        "fault is not kept.\n\n"
        + table(("kernel", "CPUs", "seconds", "fates checked"),
                [(row["kernel"], row["cpus"], row["seconds"], f"{row['fates']:,}")
                 for row in timers], words=1)
        + "\n## Shaper\n\n"
        "Packets with times of two clocks, with a pace and without, while mode, CPU and rate\n"
        "change and the device refuses packets and stops.\n\n"
        + table(("kernel", "CPUs", "packets", "lost", "doubled", "reordered", "early",
                 "changes", "stops", "refusals"),
                [(row["kernel"], row["cpus"],
                  *(f"{row[name]:,}" for name in ("packets", "lost", "doubled", "reordered",
                                                  "early", "rounds", "stops", "refusals")))
                 for row in packets], words=1)
    )  # fmt: skip
