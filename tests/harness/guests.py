"""Collect the tests' sections for machines, boot each machine once, hand out the outcomes.

A test is marked ``@pytest.mark.guest(machines, script)`` and takes the fixture `guest`. Its id is
then MACHINE, or MACHINE-CASE if the marker has ``cases=``, a function that lists the cases of a
machine; {case} in the script stands for the case's name. Slow machines take only tests whose marker
has ``brief=True``, unless pytest got --matrix. Only the first of the machines takes a test whose
marker has ``one=True``, or the cases listed in ``one=("case",)``: these take long, and their result
does not depend on the kernel.
"""

from functools import partial
from pathlib import Path

import matrix
import pytest
import second_try
import times
from lab.base import progress
from lab.engines import smp
from machines import TABLE, Boot, Machine, Outcome, Pool, Section, Share, boot, needed_by

POOL = pytest.StashKey[Pool]()
OWNERS = pytest.StashKey[dict[str, Machine]]()
# Machines that a test of this run judges as a whole: see the fixture `boots`.
JUDGED = pytest.StashKey[set[Machine]]()
TESTS = Path(__file__).resolve().parents[1]
OUTPUT = TESTS.parent / "build/matrix.json"
FLAKY = TESTS.parent / "build/flaky.json"
# The machines that --quick takes: one in virtual time, for the behaviour of timers, and one in real
# time, for races, with the tests that slow machines also take.
QUICK = next(machine for machine in TABLE if machine.engine == "virtual")
QUICK_BRIEF = next(machine for machine in TABLE if machine.real_time and machine.cpus == 2)
OVER = pytest.StashKey[list[str]]()
BOOTS = pytest.StashKey[second_try.Boots]()


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "guest(machines, script, cases=None, brief=False, one=False or cases): see guests.py",
    )
    config.stash[POOL] = Pool(
        partial(boot, seed=config.option.seed), expected=times.expected(), took=times.took()
    )
    config.stash[BOOTS] = second_try.Boots(config.option.no_second_try)
    smp.ask_again.append(config.stash[BOOTS].ask)


def pytest_unconfigure(config):
    config.stash[POOL].close()
    smp.ask_again.remove(config.stash[BOOTS].ask)


def pytest_generate_tests(metafunc):
    marker = metafunc.definition.get_closest_marker("guest")
    if marker is None:
        return
    machines, script = marker.args
    cases, brief = marker.kwargs.get("cases"), marker.kwargs.get("brief", False)
    one = marker.kwargs.get("one", False)
    test = f"{metafunc.module.__name__.rpartition('.')[2]}.{metafunc.definition.name}"
    sections = {}
    for machine in machines:
        other = machine is not machines[0]
        if cases is None:
            sections[machine.id] = Section(machine, test, script, brief, other and one)
            continue
        for case in cases(machine):
            late = other and (one is True or (one and case in one))
            sections[f"{machine.id}-{case}"] = Section(
                machine, f"{test}:{case}", script.format(case=case), brief, late
            )
    metafunc.parametrize("guest", sections.values(), ids=sections.keys(), indirect=True)


def pytest_collection_modifyitems(config, items):
    """Leave out long tests unless requested; mark those that get a second try.

    Tests that need none of the table's machines come first, while the machines run.
    """
    if not config.option.no_second_try:
        second_try.allow(item for item in items if _boots(item))
    items.sort(key=lambda item: needed_by(item) is not None)
    if config.option.quick:
        left_out = [item for item in items if not _is_quick(item)]
    elif config.option.matrix:
        return
    else:
        left_out = [item for item in items if _takes_long(item)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _is_quick(item) -> bool:
    """Tell whether --quick takes a test that conftest.py has left in: not if it boots a VM."""
    machine = needed_by(item)
    if machine is None:
        return item.path.parent != TESTS / "guest"
    section = item.callspec.params.get("guest")
    if machine == QUICK_BRIEF:
        return section is None or section.brief
    return machine == QUICK and not _takes_long(item)


def _boots(item) -> bool:
    """Tell whether a test boots kernels, or tests the lab itself."""
    return item.path.parent in (TESTS / "guest", TESTS / "lab")


def _takes_long(item) -> bool:
    machine = needed_by(item)
    if machine is None:
        return False
    section = item.callspec.params.get("guest")
    if machine.matrix or section is None:
        return machine.matrix
    return section.late or (machine.brief and not section.brief)


def pytest_collection_finish(session):
    if session.config.option.collectonly:
        return
    owners = {item: needed_by(item) for item in session.items if needed_by(item)}
    sections = [item.callspec.params.get("guest") for item in owners]
    session.config.stash[POOL].plan(filter(None, sections), owners.values())
    session.config.stash[OWNERS] = {item.nodeid: machine for item, machine in owners.items()}
    session.config.stash[JUDGED] = {machine for item, machine in owners.items()
                                    if "boots" in item.fixturenames}  # fmt: skip


def pytest_runtest_setup(item):
    """Start the machines with the first test, of any directory: other tests run in parallel."""
    item.config.stash[POOL].start()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Count the second tries; too many are a failure."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if config.option.collectonly or not session.testscollected or OWNERS not in config.stash:
        return
    owners = config.stash[OWNERS]
    second = [second_try.entry(report.nodeid, owners.get(report.nodeid), report.longreprtext)
              for report in reporter.getreports("rerun")]  # fmt: skip
    if not config.stash[BOOTS].strict:
        second += config.stash[BOOTS].again
    whole = is_whole(session)
    runs = second_try.record(FLAKY, second, session.testscollected, whole)
    if whole:
        times.remember(config.stash[POOL].ended())
        config.stash[OVER] = second_try.Budget().exceeded(runs)
        if config.stash[OVER] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def is_whole(session) -> bool:
    """Tell whether all tests were requested, as by `make test`, and have run."""
    if session.shouldstop or session.shouldfail:
        return False
    # Ctrl-C gives a different status.
    if session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return False
    config, option = session.config, session.config.option
    chosen = {(config.invocation_params.dir / name).resolve() for name in config.args}
    by_hand = option.keyword or option.markexpr or option.deselect or option.lf or option.quick
    return chosen == {TESTS} and not by_hand


def pytest_terminal_summary(terminalreporter, config):
    second_try.tell(terminalreporter, config.stash[BOOTS], config.stash.get(OVER, []))
    _tell_times(terminalreporter, config.stash[POOL])
    if not config.option.matrix or OWNERS not in config.stash:
        return
    owners, tests = config.stash[OWNERS], []
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            if report.nodeid in owners:
                # For a skipped test: (file, line, reason)
                reason = report.longrepr[2] if outcome == "skipped" else ""
                tests.append((owners[report.nodeid], outcome, reason))
    found = matrix.rows(tests, config.stash[POOL].ended())
    if found:
        terminalreporter.section("matrix")
        terminalreporter.write_line(matrix.table(found))
        matrix.write(OUTPUT, found)


def _tell_times(terminalreporter, pool: Pool) -> None:
    every = [report for reports in terminalreporter.stats.values() for report in reports
             if isinstance(report, pytest.TestReport)]  # fmt: skip
    tables = [times.of_machines(pool.boots), times.of_files(every),
              times.of_rest(progress.SPENT)]  # fmt: skip
    terminalreporter.section("where the time went")
    terminalreporter.write_line("\n\n".join("\n".join(table) for table in tables if table))


def _get(pool: Pool, share: Share) -> Boot:
    with progress.spending("waiting for machines of the table"):
        return pool.get(share)


@pytest.fixture
def guest(request) -> Outcome:
    """Outcome of the test's section. A machine lost before its end is an error.

    So is any other fault of a machine that no test judges as a whole: of a boot for a second try,
    and of each one if that test is not among those chosen, or the machine is not in the table.
    """
    section = request.param
    pool, again = request.config.stash[POOL], second_try.begun(request)
    share = pool.share(section)
    found = pool.again(share, section) if again else _get(pool, share)
    second_try.saw(request, found.kernel_log)
    outcome = found.outcome(section)
    second_try.saw(request, outcome.output)
    if again or section.machine not in request.config.stash[JUDGED]:
        found.judge()
    return outcome


@pytest.fixture
def boots(request, machine) -> list[Boot]:
    """Outcomes of a machine as a whole: one per boot."""
    pool, again = request.config.stash[POOL], second_try.begun(request)
    found = [pool.again(share) if again else _get(pool, share) for share in pool.shares(machine)]
    for one in found:
        second_try.saw(request, one.kernel_log)
    return found
