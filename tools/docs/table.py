"""A Markdown table, and the figures that most tables of results have in a row."""

from collections.abc import Iterable

# Names in lab.bench.figures -> column headings.
FIGURES = {"n": "n", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}


def table(heads: Iterable[str], lines: Iterable[Iterable[object]], words: int | None = None) -> str:
    """Return a table: `words` columns of words, by default all, then columns of numbers.

    A cell that is a number gets thousands separators; pass a string for another format.
    """
    heads = list(heads)
    numbers = 0 if words is None else len(heads) - words
    found = f"{_line(heads)}|{' --- |' * (len(heads) - numbers)}{' ---: |' * numbers}\n"
    for line in lines:
        found += _line(f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in line)
    return found


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
