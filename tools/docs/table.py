"""A Markdown table, and the figures of a row that most tables of results have."""

from collections.abc import Iterable

# As lab.bench.figures names them, and as they are called at the head of a column.
FIGURES = {"n": "n", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}


def table(heads: Iterable[str], lines: Iterable[Iterable[object]], words: int | None = None) -> str:
    """Return a table: `words` columns of words, by default all, then columns of numbers.

    A cell that is a number gets its thousands separated; one that is to look otherwise is a string.
    """
    heads = list(heads)
    numbers = 0 if words is None else len(heads) - words
    found = f"{_line(heads)}|{' --- |' * (len(heads) - numbers)}{' ---: |' * numbers}\n"
    for line in lines:
        found += _line(f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in line)
    return found


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
