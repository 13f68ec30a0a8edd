"""A Markdown table, and the figures of a row that most tables have."""

from collections.abc import Iterable

# As lab.bench.figures names them, and as they are called at the head of a column.
FIGURES = {"n": "n", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}


def table(heads: Iterable[str], lines: Iterable[Iterable[object]], names: int = 1) -> str:
    """Return a table: `names` columns of words, and columns of numbers, to the right.

    A cell that is a number gets its thousands separated; one that is to look otherwise is a string.
    """
    heads = list(heads)
    found = f"{_line(heads)}|{' --- |' * names}{' ---: |' * (len(heads) - names)}\n"
    for line in lines:
        found += _line(f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in line)
    return found


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
