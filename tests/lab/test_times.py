"""The arithmetic of the tables that say where the time went."""

from types import SimpleNamespace

import times
from lab.base.errors import LostVM
from lab.engines.result import Result
from machines import TABLE, Boot

LOG = """\
[    0.000000] Linux version 6.1
[    2.500000] @begin@ test_one
[    3.000000] apic_timer: source proxy
[   10.500000] @begin@ test_two:case
[   12.000000] apic_timer: unloaded
"""


def test_machines():
    long = Boot(40, Result("ok", "", LOG, ""), None)
    lost = Boot(99, None, LostVM("no verdict", "nothing"))
    assert times.of_machines([(TABLE[0], long), (TABLE[1], lost)]) == [
        "seconds       up  sections  machine",
        f"     99      0.0         0  {TABLE[1].id} (lost): ",
        f"     40      2.5         2  {TABLE[0].id}: test_one 8, test_two:case 2",
    ]
    assert times.of_machines([]) == []


def test_files():
    took = [("a.py::one", 1), ("a.py::one", 2), ("b.py::x[1]", 7), ("a.py::two", 0.4)]
    reports = [SimpleNamespace(nodeid=nodeid, duration=seconds) for nodeid, seconds in took]
    assert [line.split() for line in times.of_files(reports)] == [
        ["seconds", "tests", "file"], ["7", "1", "b.py"], ["3", "2", "a.py"],
    ]  # fmt: skip
    assert times.of_rest({"building": 2, "fetching": 9.6})[0].split() == ["10", "fetching"]


def test_kept_for_the_next_run(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert times.expected() == {}
    times.remember([(TABLE[0], Boot(40.04, Result("ok", "", "", ""), None)),
                    (TABLE[1], Boot(99, None, LostVM("no verdict", "")))])  # fmt: skip
    times.remember([(TABLE[2], Boot(3, Result("ok", "", "", ""), None))])
    assert times.expected() == {TABLE[0].id: 40.0, TABLE[2].id: 3}
