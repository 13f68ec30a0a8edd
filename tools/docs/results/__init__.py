"""docs/results: results of the demo and the benchmark, and the record of what made them.

    PYTHONPATH=tools python3 -m docs.results [--demo] [--bench] [--user] [--calendar] [--shaper]
        [--idle] [--clocks] [--torture] [--native] [--short] [--only ...]

measures (`make results`) and writes demo.json, bench.json, user.json, calendar.json, shaper.json,
idle.json, clocks.json, torture.json and a native-*.json per CPU; the pages are made from these,
here and by `make docs`.

    made.py      the result files, the record of what made them, and whether that is this tree
    table.py     a Markdown table
    *_page.py    the text of a page each
    measure.py   runs the lab, and keeps its results
    __main__.py  the command line

A file uses only those above it.
"""

from collections.abc import Callable
from pathlib import Path

from ..source import TREE, read
from . import (
    bench_page,
    calendar_page,
    clocks_page,
    demo_page,
    idle_page,
    native_page,
    shaper_page,
    torture_page,
    user_page,
)
from .made import BENCH, CALENDAR, CLOCKS, DEMO, IDLE, NATIVE, SHAPER, TORTURE, USER, header, load

# For each result file: its page's title, and the function that returns the text below the header.
PAGES: dict[Path, tuple[str, Callable[[dict], str]]] = {
    DEMO: ("Results of `make demo`", demo_page.text),
    BENCH: ("Results of `make bench`", bench_page.text),
    USER: ("Results of threads of programs", user_page.text),
    CALENDAR: ("Results of calendars", calendar_page.text),
    SHAPER: ("Results of `make figures`", shaper_page.text),
    IDLE: ("Results of idle states", idle_page.text),
    CLOCKS: ("Results of clocks", clocks_page.text),
    TORTURE: ("Results of torture", torture_page.text),
    **{file: (f"Results of a CPU itself: {load(file)['made']['CPU']}", native_page.text)
       for file in NATIVE},
}  # fmt: skip


def pages() -> dict[str, str]:
    """Return the pages made from the existing results, by file name."""
    made = {}
    for file, (title, text) in PAGES.items():
        if not file.exists():
            continue
        found, name = load(file), file.relative_to(TREE)
        made[str(name.with_suffix(".md"))] = (
            "<!-- Made by `make results`. Don't edit. -->\n"
            f"# {title}\n\n{header(found['made'])}\n{text(found)}"
        )
        if "text" in found:  # the demo's output
            made[str(name.with_suffix(".txt"))] = found["text"]
    return made


def tables() -> list[str]:
    """Write the pages; return those that have changed."""
    changed = []
    for name, text in pages().items():
        if read(name, True) != text:
            (TREE / name).write_text(text)
            changed.append(name)
    return changed


def differing() -> list[str]:
    """List the pages that differ from what the rows make."""
    return [f"{name}: differs from its rows; run make docs"
            for name, text in pages().items() if read(name, True) != text]  # fmt: skip
