"""docs/results/clocks.md: the measurements of the clock tests."""

from ..table import table


def text(found: dict) -> str:
    """Return the page's text: the goals, and all rows."""
    from lab.bench import clock_goals, goals

    lines = [(row["bench"], ", ".join(f"{n} {v:,}" for n, v in row.items() if n != "bench"))
             for row in found["rows"]]  # fmt: skip
    return (
        "In TSC cycles, unless stated otherwise, as the tests of clocks have printed them. Skew\n"
        "and groups are measured in Bochs, pulses and costs in virtual time, stops in both Bochs\n"
        "and a simulation of the paper's machine (`tests/kunit/map_test.c`).\n\n"
        f"## Goals\n\n```\n{goals.table(found['rows'], clock_goals.GOALS)}\n```\n\n"
        f"## Rows\n\n{table(('bench', 'measured'), lines, words=2)}"
    )
