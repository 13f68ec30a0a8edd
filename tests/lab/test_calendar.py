"""The arithmetic of calendar results is right on made-up receipts, without booting."""

import re

import pytest
from lab.bench import calendar_goals, goals, rows
from lab.run import calendar, demo_calendar
from lab.run.demo_calendar import UNITS, Break, Found, Receipt

from docs.results import calendar_page

RAN, TIMED_OUT, MISSED = 0, 1, 2


def receipt(start: int, unit: int, result: int = RAN, cycle: int = 100) -> Receipt:
    return Receipt(0, start, start - 5000, start - 900, start + 2, start + 50_000, cycle, entry=0,
                   unit=unit, cpu=0, table=0, result=result, count=1)  # fmt: skip


def found(receipts: list[Receipt], breaks: list[Break]) -> Found:
    return Found("6.1", receipts, {unit: {2: 3, 4: 1} for unit in UNITS}, breaks, 20)


def test_ends_of_a_thread():
    """The last instruction counts from the window's end, the next one from the next window."""
    plan = UNITS.index("plan")
    receipts = [receipt(1000, plan, TIMED_OUT), receipt(3000, plan), receipt(5000, plan, TIMED_OUT)]
    breaks = [Break(2000, 1970, 3112, 0), Break(6000, 5980, 6100, 0)]
    samples = dict(calendar._of_demo(found(receipts, breaks), "idle"))
    of = {key.bench: counts for key, counts in samples.items()}
    assert of[calendar_goals.TIMEOUT] == {-30: 1, -20: 1}
    assert of[calendar_goals.RESUMED] == {112: 1}  # nothing follows the other window
    assert {key.bench for key in samples} >= {f"calendar/dispatch/{unit}" for unit in UNITS}


def test_behind_another_thread():
    """The second thread's windows are distinguished by how the previous window ended."""
    first, second = (UNITS.index(name) for name in (calendar.FIRST, calendar.SECOND))
    receipts = [receipt(0, first), receipt(1, second), receipt(2, first, TIMED_OUT),
                receipt(3, second, MISSED), receipt(4, first, TIMED_OUT), receipt(5, second),
                receipt(6, first, cycle=3), receipt(7, second, MISSED, cycle=3)]  # fmt: skip
    errors, lost = calendar.behind(found(receipts, []), "ran")
    assert lost == {0: 1} and errors.total() == 1
    errors, lost = calendar.behind(found(receipts, []), "timed out")
    assert lost == {0: 1, 1: 1} and errors.total() == 1


@pytest.mark.parametrize("gap", calendar.GAPS_NS)
def test_table(gap):
    """The other thread's windows begin this gap after those of the first."""
    entries = [line.split() for line in calendar.table(gap).decode().splitlines()
               if line.startswith("at ")]  # fmt: skip
    starts = [int(words[1].removesuffix("ns")) for words in entries]
    assert [words[3] for words in entries] == [calendar.FIRST, calendar.SECOND] * 2
    for first, second in (starts[:2], starts[2:]):
        assert second - first == calendar.BUDGET_NS + gap
    assert starts[-1] + calendar.BUDGET_NS < 1_000_000


def gap_rows(gap: int, p99: int, lost: int, of: int = 100) -> list[dict]:
    samples = {
        rows.Key(f"calendar/gap/{gap}", "plan"): {1: 98, p99: 2},
        rows.Key(f"calendar/gap/{gap}", "plan", unit=rows.LOST): {0: of - lost, 1: lost},
    }
    return rows.rows(samples, kernel="6.1", engine="virtual", cpus=1)


def test_smallest_gap():
    """Each larger gap must be good as well; a lost window has no error, and counts."""
    good = [*gap_rows(4000, 4, 0), *gap_rows(5000, 3, 0)]
    assert calendar_goals.smallest(good, "idle") == 4000
    assert calendar_goals.smallest([*good, *gap_rows(3000, 900, 0)], "idle") == 4000
    assert calendar_goals.smallest([*good, *gap_rows(3000, 4, 1)], "idle") == 4000
    assert calendar_goals.smallest([*good, *gap_rows(6000, 5, 0)], "idle") is None
    assert calendar_goals.smallest(good, "syscall") is None


@pytest.mark.parametrize("lost", range(4))
def test_lost_windows_are_counted(lost):
    """They are not rounded to thousandths: one in a thousand is the goal."""
    few = gap_rows(4000, 4, lost, of=1986)
    assert [rows.lost(row) for row in few if row["unit"] == rows.LOST] == [lost]
    assert (calendar_goals.smallest(few, "idle") == 4000) == (lost <= 1)
    page = calendar_page._under("idle", [
        {**row, "bench": bench} for ns in calendar.GAPS_NS for row in gap_rows(ns, 4, lost, of=1986)
        for bench in (row["bench"], row["bench"].replace("/gap/", "/gap_stopped/"))
    ] + errors_of_all())  # fmt: skip
    assert re.findall(r"\| 4,000 ns \|.* (\d+) \|$", page, re.M) == [str(lost)] * 2


def errors_of_all() -> list[dict]:
    benches = [*(f"{calendar_goals.DISPATCH}/{unit}" for unit in UNITS),
               calendar_goals.TIMEOUT, calendar_goals.RESUMED]  # fmt: skip
    return rows.rows({rows.Key(bench, "plan"): {1: 1} for bench in benches}, kernel="6.1",
                     engine="virtual", cpus=1)  # fmt: skip


def test_goals():
    """A goal that was not measured is not reported as met."""
    text = goals.table([], calendar_goals.GOALS)
    assert text.count("not measured") == len(calendar_goals.GOALS)
    text = goals.table(gap_rows(5000, 4, 0), calendar_goals.GOALS)
    assert "not met" in text and "5,000 ns" in text


def test_demo_is_what_is_measured():
    assert {*calendar_goals.THREADS, "pulse"} == set(demo_calendar.UNITS)
