"""A second try for tests that fail in real time, on a machine booted for it.

In real time, CPUs are threads of a busy machine, which can delay one for longer than any limit that
a test might set. In virtual time a guest behaves the same each time, so a second try is only for a
machine that was lost: its guest repeats itself, but its emulator's fault need not recur. There is
no second try after a splat in the kernel log, after a torture that found a wrong shot, or if
something could not be fetched or built.

A race that shows in one boot of three passes two times of three. Second tries are therefore
counted: the failures of first tries are reported at the end and appended to build/flaky.json, a
list of runs with

    date, host (kernel release), tests (how many were run), whole (no test was left out by hand),
    second (a list of: test, kernel (release of the guest's, if it had one of the table's
    machines), failed (first lines of the first try's failure))

and a run fails if its second tries exceed the budget, see `Budget`. With --no-second-try there are
none.

A guest whose kernel does not come up is started again by its engine, before anything of ours is
loaded: see smp.py. That counts as a second try of the test "boot of RELEASE". With --no-second-try
only stock kernels have it, because QEMU's threads hang now and then; the end of a run names them.
"""

import datetime
import json
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab.base.errors import LabError, LostVM
from lab.engines import hibernator, smp, splats, successor
from lab.engines.options import Guest
from lab.kernels import patched
from lab.kernels.kernels import Kernel
from machines import Machine, needed_by

# Output of a machine that rules out a second try.
COMPLAINTS = re.compile(
    "|".join([*splats.PATTERNS, "splat in the kernel log", "FAIL operations="]), re.MULTILINE
)
# A test that needs none of the table's machines boots one of these, or runs in virtual time.
REAL_TIME = (smp, successor, hibernator)
SEEN = pytest.StashKey[list[str]]()
KEPT = 100  # runs of all tests, and the same number of partial runs
LINES = 5  # of a failure


@dataclass(frozen=True)
class Budget:
    """Number of second tries that are not yet a failure."""

    in_one_run: int = 6
    of_one_test: int = 1  # in the last runs, including this one; each counts once
    runs: int = 5

    def exceeded(self, runs: list[dict]) -> list[str]:
        """Return what exceeds the budget in the latest of these whole runs, one line each."""
        second = [{entry["test"] for entry in run["second"]} for run in runs[-self.runs :]]
        found = []
        if len(second[-1]) > self.in_one_run:
            found.append(f"{len(second[-1])} tests needed a second try; the budget is "
                         f"{self.in_one_run}")  # fmt: skip
        for test in sorted(second[-1]):
            times = sum(test in tests for tests in second)
            if times > self.of_one_test:
                found.append(f"{test} needed a second try in {times} of {len(second)} runs; "
                             f"the budget is {self.of_one_test}")  # fmt: skip
        return found


class Boots:
    """The guests that their engine has started again, as entries of build/flaky.json.

    strict: there are no second tries
    """

    def __init__(self, strict: bool):
        self.strict = strict
        self.again: list[dict] = []

    def ask(self, kernel: Kernel, guest: Guest, reason: str) -> bool:
        """Tell whether a guest may be started again, and note it."""
        if self.strict and not kernel.stock:
            return False
        cpus = f"{guest.cpus} CPU{'s' * (guest.cpus > 1)}"
        how = ", ".join(filter(None, [kernel.release, cpus, guest.append]))
        entry = {"test": f"boot of {how}", "kernel": kernel.release, "failed": [reason]}
        self.again.append(entry)
        return True


def allow(items: Iterable[pytest.Item]) -> None:
    """Allow a second try: to tests in real time or with their own machine; else after a loss."""
    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=1, condition=_condition(item)))


def _condition(item):
    return lambda error: worth_it(item, error)


def worth_it(item: pytest.Item, error: BaseException | None) -> bool:
    """Tell whether a failed test may have a second try."""
    text = [str(error), *item.stash.get(SEEN, [])]
    if isinstance(error, LostVM):
        text.append(error.console)
    if any(COMPLAINTS.search(part) for part in text):
        return False
    return isinstance(error, LostVM) or (_real_time(item) and not isinstance(error, LabError))


def _real_time(item) -> bool:
    if machine := needed_by(item):
        return machine.real_time
    return any(
        getattr(item.module, engine.__name__.rpartition(".")[2], None) is engine
        for engine in REAL_TIME
    )


def saw(request: pytest.FixtureRequest, text: str) -> None:
    """Note the output of a test's machine: a complaint in it rules out a second try."""
    request.node.stash[SEEN] = [*request.node.stash.get(SEEN, []), text]


def begun(request) -> bool:
    """Tell whether this is a test's second try."""
    return getattr(request.node, "execution_count", 1) > 1


def entry(test: str, machine: Machine | None, text: str) -> dict:
    """Return an entry of build/flaky.json for the failure of a first try."""
    lines = text.splitlines()
    failed = [line[1:].strip() for line in lines if line.startswith("E ")] or lines
    return {"test": test, "kernel": _release(machine), "failed": failed[:LINES]}


def _release(machine: Machine | None) -> str | None:
    if machine is None:
        return None
    try:
        return patched.find(machine.kernel).release
    except LabError:
        return machine.kernel


def record(path: Path, second: list[dict], tests: int, whole: bool) -> list[dict]:
    """Append a run to build/flaky.json; return its whole runs, this one last."""
    try:
        runs = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        runs = []
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    run = {"date": date, "host": platform.release(), "tests": tests, "whole": whole,
           "second": second}  # fmt: skip
    runs = _latest([*runs, run])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(runs, indent=1) + "\n")
    return [run for run in runs if run["whole"]]


def _latest(runs: list[dict]) -> list[dict]:
    """Return the runs to keep, in their order: partial ones do not displace whole ones."""
    left = {True: KEPT, False: KEPT}
    kept = []
    for run in reversed(runs):
        if left[run["whole"]]:
            left[run["whole"]] -= 1
            kept.append(run)
    return kept[::-1]


def tell(terminalreporter, boots: Boots, over: list[str]) -> None:
    """Print the failures of first tries that a second one followed, and their number."""
    reports = terminalreporter.getreports("rerun")
    if reports:
        terminalreporter.section("failed at the first try")
    for report in reports:
        terminalreporter.write_line(report.nodeid)
        terminalreporter.write_line("\n".join(report.longreprtext.splitlines()[-30:]))
    for entry in boots.again:
        terminalreporter.write_line(f"booted again: {entry['test']}: {entry['failed'][0]}")
    tries = len(reports) + (0 if boots.strict else len(boots.again))
    terminalreporter.write_line(f"second tries: {tries or 'none'}")
    for line in over:
        terminalreporter.write_line(f"FAILED {line}", red=True)
