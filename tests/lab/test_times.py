"""The tables of where a run spent its time have the right figures."""

from types import SimpleNamespace

import times
from lab.base.errors import LostVM
from lab.engines.result import Result
from machines import TABLE, Boot, some

LOG = """\
[    0.000000] Linux version 6.1
[    2.500000] @begin@ test_one 1.00
[    3.000000] apic_timer: source proxy
[   10.500000] @begin@ test_two:case 8.75
[   12.000000] apic_timer: unloaded
"""
ENDED = LOG + "[   12.500000] @over@ 8.80\n"
(VIRTUAL,) = some(kernel="6.1", engine="virtual", cpus=1, source="proxy", compiler="gcc")


def ended(seconds: float, log: str = "") -> Boot:
    return Boot(seconds, Result("ok", "", log, ""), None)


LOST = Boot(99, None, LostVM("no verdict", "nothing"))


def test_machines():
    """In virtual time idle seconds are not counted."""
    assert times.of_machines([(TABLE[0], ended(40, ENDED)), (TABLE[1], LOST)]) == [
        "seconds       up  sections  machine",
        f"     99      0.0         0  {TABLE[1].id} (lost): ",
        f"     40      2.5         2  {TABLE[0].id}: test_one 8, test_two:case 2",
    ]
    assert times.of_machines([]) == []
    up, every = times.sections(VIRTUAL, ended(40, ENDED))
    assert up == 2.5
    assert [(round(s, 3), name) for s, name in every] == [
        (1.95, "test_two:case"), (0.25, "test_one"),
    ]  # fmt: skip


def test_a_section_that_was_not_ended():
    """The machine was lost in it: it counts up to its last line."""
    _, every = times.sections(VIRTUAL, Boot(9, None, LostVM("no verdict", LOG)))
    assert every == [(1.5, "test_two:case"), (0.25, "test_one")]


def test_files():
    took = [("a.py::one", 1), ("a.py::one", 2), ("b.py::x[1]", 7), ("a.py::two", 0.4)]
    reports = [SimpleNamespace(nodeid=nodeid, duration=seconds) for nodeid, seconds in took]
    assert [line.split() for line in times.of_files(reports)] == [
        ["seconds", "tests", "file"], ["7", "1", "b.py"], ["3", "2", "a.py"],
    ]  # fmt: skip
    assert times.of_rest({"building": 2, "fetching": 9.6})[0].split() == ["10", "fetching"]


def test_kept_for_the_next_run(own_cache):
    """Wall time is kept for all boots of a machine, and sections for machines with several."""
    assert times.expected() == {} and times.took() == {}
    times.remember({TABLE[0]: [ended(40.04, ENDED)], TABLE[1]: [LOST],
                    VIRTUAL: [ended(20), ended(10, ENDED)]})  # fmt: skip
    times.remember({TABLE[2]: [ended(3)], VIRTUAL: [ended(20), LOST]})
    assert times.expected() == {TABLE[0].id: 40.0, TABLE[2].id: 3, VIRTUAL.id: 30}
    assert times.took() == {VIRTUAL.id: {"test_one": 0.25, "test_two:case": 1.95}}
