"""Failed tests get a second try, and lost machines a second boot; nothing is booted here."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import guests
import pytest
import second_try
from lab.base.errors import LabError, LostVM
from lab.engines import smp
from lab.engines.result import Result
from machines import TABLE, Boot, Pool, Section, some

TESTS = Path(__file__).resolve().parents[1]
MACHINE = TABLE[0]
FIRST, SECOND = (Section(MACHINE, name, "true") for name in ("first", "second"))


@pytest.fixture
def pool():
    """Return a pool with two sections for a machine, and the list of what it boots."""
    booted, lost = [], []

    def boot(machine, sections):
        booted.append([section.name for section in sections])
        ended = sections[: len(sections) - len(lost)]
        text = "".join(f"@begin@ {s.name}\n@end@ {s.name} 0\n" for s in ended)
        if lost:
            return Boot(1, None, LostVM(lost.pop(), text))
        return Boot(1, Result("ok", text, "", ""), None)

    pool = Pool(boot, prepare=lambda machines: None)
    pool.plan([FIRST, SECOND], [])
    assert len(pool.shares(MACHINE)) == 1
    yield pool, booted, lost
    pool.close()


def test_only_what_failed_runs_again(pool):
    pool, booted, _ = pool
    pool.start()
    pool.get(pool.share(FIRST))
    assert pool.again(pool.share(SECOND), SECOND).outcome(SECOND).status == 0
    assert booted == [["first", "second"], ["second"]]


def test_all_runs_again_once_after_a_loss(pool):
    pool, booted, lost = pool
    lost.append("no verdict")
    pool.start()
    with pytest.raises(LostVM):
        pool.get(pool.share(FIRST)).outcome(SECOND)
    assert pool.again(pool.share(SECOND), SECOND).outcome(SECOND).status == 0
    assert pool.get(pool.share(FIRST)).outcome(FIRST).status == 0
    assert booted == [["first", "second"]] * 2


def test_a_second_loss_is_final(pool):
    pool, booted, lost = pool
    lost += ["no verdict", "no verdict"]
    pool.start()
    for _ in range(2):
        with pytest.raises(LostVM):
            pool.again(pool.share(SECOND), SECOND).outcome(SECOND)
    assert booted == [["first", "second"]] * 2


@pytest.mark.parametrize("how, whole", [
    ({}, True),
    ({"exitstatus": pytest.ExitCode.TESTS_FAILED}, True),
    ({"exitstatus": pytest.ExitCode.INTERRUPTED}, False),
    ({"shouldfail": "-x"}, False),
    ({"keyword": "something"}, False),
    ({"args": ["tests/lab"]}, False),
])  # fmt: skip
def test_runs_that_are_whole(how, whole):
    """Only whole runs show how often a test needs a second try; Ctrl-C ends one early."""
    option = dict.fromkeys(("keyword", "markexpr", "deselect", "lf", "quick"))
    option |= {name: how[name] for name in how if name in option}
    config = SimpleNamespace(args=how.get("args", ["tests"]), option=SimpleNamespace(**option),
                             invocation_params=SimpleNamespace(dir=TESTS.parent))  # fmt: skip
    ended = {"exitstatus": pytest.ExitCode.OK, "shouldstop": False, "shouldfail": False}
    ended |= {name: how[name] for name in how if name in ended}
    assert guests.is_whole(SimpleNamespace(config=config, **ended)) == whole


def worth_it(engine, error, seen=()):
    """Call worth_it() for a test of a machine with an engine."""
    (machine,) = some(engine=engine, kernel="6.1", cpus=2, source="proxy", append="")
    item = SimpleNamespace(callspec=SimpleNamespace(params={"machine": machine}),
                           stash={second_try.SEEN: list(seen)})  # fmt: skip
    return second_try.worth_it(item, error)


LOST = LostVM("no verdict within 900 s", "booting\n" * 100)


def test_where_time_is_virtual_after_a_loss_only():
    assert worth_it("smp", AssertionError("too late"))
    assert not worth_it("virtual", AssertionError("too late"))
    assert worth_it("smp", LOST) and worth_it("virtual", LOST)


def test_none_without_a_machine():
    """A test that boots no real-time machine would only repeat itself."""
    for module, allowed in ((SimpleNamespace(smp=smp), True), (SimpleNamespace(smp=None), False)):
        item = SimpleNamespace(module=module, stash={})
        assert second_try.worth_it(item, AssertionError("too late")) == allowed
        assert not second_try.worth_it(item, LabError("no such package"))


COMPLAINTS = [
    "WARNING: CPU: 1 PID: 7 at kernel/time/hrtimer.c:1061",
    "BUG: unable to handle page fault",
    "rcu: INFO: rcu_preempt detected stalls",
    "apic_timer_torture: FAIL operations=5000 lost=1",
]


@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_none_after_a_complaint(complaint):
    """Anywhere: in the failure's text, or only in the machine's own log."""
    late = AssertionError("too late")
    assert worth_it("smp", late, ["all is well", ""])
    assert not worth_it("smp", AssertionError(f"VM: exit status 1\n{complaint}\n"))
    assert not worth_it("smp", late, ["output", f"[    3.2] {complaint}\nmore\n"])
    # Further up than the part of a console that is shown
    lost = LostVM("no verdict", f"{complaint}\n" + "calls\n" * 100)
    assert complaint not in str(lost)
    assert not worth_it("smp", lost) and not worth_it("virtual", lost)


def run_with(*second):
    return {"second": [{"test": test} for test in second], "whole": True}


def test_budget():
    budget = second_try.Budget(in_one_run=3, of_one_test=1, runs=5)
    none = run_with()
    assert not budget.exceeded([none])
    assert not budget.exceeded([none, run_with("a", "b", "c")])
    (line,) = budget.exceeded([run_with("a", "b", "c", "d")])
    assert line.startswith("4 tests needed")
    (line,) = budget.exceeded([run_with("a"), none, none, none, run_with("b", "a")])
    assert line.startswith("a needed a second try in 2 of 5 runs")
    # Twice in one run counts once; runs before the last ones, and old tests, are forgotten.
    assert not budget.exceeded([run_with("a", "a")])
    assert not budget.exceeded([run_with("a"), none, none, none, none, run_with("a")])
    assert not budget.exceeded([run_with("a"), run_with("a"), none])


def test_runs_of_parts_push_no_whole_run_out(tmp_path):
    """The budget covers whole runs: single tests may run any number of times in between."""
    file = tmp_path / "build/flaky.json"
    for number in range(second_try.KEPT + 5):
        second_try.record(file, [], tests=number, whole=True)
    for number in range(second_try.KEPT + 7):
        runs = second_try.record(file, [], tests=number, whole=False)
    assert [run["tests"] for run in runs] == list(range(5, second_try.KEPT + 5))
    assert all(run["whole"] for run in runs)
    kept = json.loads(file.read_text())
    assert [run["tests"] for run in kept if not run["whole"]] == [*range(7, second_try.KEPT + 7)]
    assert [run["date"] for run in kept] == sorted(run["date"] for run in kept)


INNER = """
from pathlib import Path

from lab.engines import smp

TRIES = Path(__file__).with_name("tries")


def test_late():
    with TRIES.open("a") as tries:
        tries.write("x")
    assert len(TRIES.read_text()) % 2 == 0, "too late"
"""


@pytest.fixture
def nested(tmp_path):
    """Return a function that runs pytest on a tree with this harness: its status and output."""
    for directory in ("tests", "tests/harness", "tests/lab", "tests/guest"):
        (tmp_path / directory).mkdir()
    shutil.copy(TESTS / "conftest.py", tmp_path / "tests")
    for file in (TESTS / "harness").glob("*.py"):
        shutil.copy(file, tmp_path / "tests/harness")
    directories = (TESTS.parent / "tools", tmp_path / "tests/harness")
    paths = f"pythonpath={shlex.join(map(str, directories))}"

    def run(*options: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "pytest", "--import-mode=importlib", f"--rootdir={tmp_path}",
                "-o", paths, *options]  # fmt: skip
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def test_second_tries_are_counted(nested, tmp_path):
    """A nested pytest shows build/flaky.json, the count at the end, the budget and the option."""
    (tmp_path / "tests/lab/test_inner.py").write_text(INNER)

    def runs() -> list[dict]:
        return json.loads((tmp_path / "build/flaky.json").read_text())

    status, text = nested("tests")
    assert status == 0 and "second tries: 1\n" in text, text
    ((first,),) = [run["second"] for run in runs()]
    assert first["test"] == "tests/lab/test_inner.py::test_late"
    assert first["failed"][0] == "AssertionError: too late"
    assert runs()[0]["tests"] == 1

    status, text = nested("tests", "-k", "late")  # a part of the tests does not count
    assert status == 0 and [run["whole"] for run in runs()] == [True, False], text
    status, text = nested("tests")
    assert status == 1 and "test_late needed a second try in 2 of 2 runs" in text, text

    status, text = nested("tests", "--no-second-try")
    assert status == 1 and "1 failed" in text and "second tries: none" in text, text


BOOTED = """
from pathlib import Path

from lab.engines import smp
from lab.engines.options import Guest
from lab.kernels.kernels import Kernel


def test_boots():
    for room, release in (("kernels", "6.1.0"), ("patched", "6.1.192-patched")):
        kernel = Kernel("6.1", release, Path("/cache", room, release), Path("/none"))
        smp.may_boot_again(kernel, Guest(cpus=2, append="noapic"), "", "no verdict within 240 s")
"""


def test_repeated_boots_are_counted(nested, tmp_path):
    """They are second tries; without these only stock kernels have them, because of QEMU."""
    (tmp_path / "tests/lab/test_inner.py").write_text(BOOTED)
    stock, patched = (
        f"booted again: boot of {release}, 2 CPUs, noapic: no verdict within 240 s\n"
        for release in ("6.1.0", "6.1.192-patched")
    )
    status, text = nested("tests")
    assert status == 0 and stock + patched + "second tries: 2\n" in text, text
    (run,) = json.loads((tmp_path / "build/flaky.json").read_text())
    assert [entry["kernel"] for entry in run["second"]] == ["6.1.0", "6.1.192-patched"]

    status, text = nested("tests", "--no-second-try")
    assert status == 0 and stock + "second tries: none\n" in text and patched not in text, text

    status, text = nested("tests")
    assert status == 1 and "boot of 6.1.0, 2 CPUs, noapic needed a second try in 2 of" in text, text


# Takes each boot's status of all sections, and its kernel log, from a file.
BOOTS = r"""
import json
from pathlib import Path

import guests
from lab.base.errors import LostVM
from lab.engines import splats
from lab.engines.result import Result
from machines import Boot, Pool

FILE = Path(__file__).with_name("boots.json")


def boot(machine, sections):
    (status, log), *rest = json.loads(FILE.read_text())
    FILE.write_text(json.dumps(rest))
    text = "".join(f"@begin@ {s.name}\n@end@ {s.name} {status}\n" for s in sections)
    if "panic" in log:
        return Boot(1, None, LostVM("no verdict", text + log))
    return Boot(1, Result("splat" if splats.find(log) else "ok", text, log, ""), None)


def pytest_collection_modifyitems(config):
    config.stash[guests.POOL] = Pool(boot, prepare=lambda machines: None)
"""
SECTIONS = """
import pytest
from machines import TABLE


@pytest.mark.guest(TABLE[:1], "true")
def test_one(guest):
    guest.ok()


@pytest.mark.guest(TABLE[:1], "true")
def test_other(guest):
    guest.ok()


@pytest.mark.parametrize("machine", TABLE[:1], ids=lambda m: m.id)
def test_whole_machine(boots, machine):
    for boot in boots:
        boot.result().check()
"""
CLEAN, SPLAT, PANIC = "all is well", "WARNING: possible circular locking", "Kernel panic"


@pytest.mark.parametrize("chosen, boots, ended", [
    ("one", [(0, CLEAN)], "1 passed"),
    ("one", [(0, SPLAT)], "1 error"),
    ("one", [(0, PANIC)], "1 error"),
    # One report is enough, and the test of the machine itself has it, if it is among those chosen.
    ("one or other", [(0, SPLAT)], "1 passed, 1 error"),
    ("", [(0, SPLAT)], "1 failed, 2 passed"),
    # A loss without a complaint has a second try, whose boot is judged too.
    ("one", [(0, "panic"), (0, CLEAN)], "1 passed, 1 rerun"),
    ("one", [(0, "panic"), (0, "panic")], "1 error, 1 rerun"),
    ("one or whole", [(1, CLEAN), (0, CLEAN)], "2 passed, 1 rerun"),
    ("one or whole", [(1, CLEAN), (0, SPLAT)], "1 passed, 1 error, 1 rerun"),
    ("one or whole", [(1, CLEAN), (0, PANIC)], "1 passed, 1 error, 1 rerun"),
])  # fmt: skip
def test_each_boot_is_judged(nested, tmp_path, chosen, boots, ended):
    (tmp_path / "tests/guest/conftest.py").write_text(BOOTS)
    (tmp_path / "tests/guest/test_inner.py").write_text(SECTIONS)
    (tmp_path / "tests/guest/boots.json").write_text(json.dumps(boots))
    status, text = nested("tests", "-k", chosen)
    summary = text.rstrip().splitlines()[-1]
    assert f"{ended} in " in re.sub(r", \d+ deselected|, \d+ warnings?", "", summary), text
    assert status == ("failed" in ended or "error" in ended), text
    assert json.loads((tmp_path / "tests/guest/boots.json").read_text()) == []
