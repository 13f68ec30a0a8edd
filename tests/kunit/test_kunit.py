"""Each KUnit case is one test result, in simulated time under UML.

With --matrix the suites in virtual time also run, in a kernel with the tree built in;
tests/accuracy/ runs them as a module.

The cases are read from the sources before anything is built, so that a case without a verdict (it
was not linked, an earlier one crashed) fails instead of being absent.
"""

import functools

import pytest
from lab.base.errors import LabError
from lab.run import kunit


@functools.cache
def attempt(target: str) -> kunit.Run | LabError:
    """Build and run all suites of a target, once, even if that fails.

    Not a fixture of the session: pytest would run it again for each case, as each has parameters
    of its own.
    """
    try:
        return kunit.run(target)
    except LabError as error:
        return error


def run(target: str) -> kunit.Run:
    """Return the run of all suites of a target; LabError if there was none."""
    found = attempt(target)
    if isinstance(found, LabError):
        raise found
    print(", ".join(f"{name} {value:.1f} s" for name, value in found.seconds.items()))
    return found


def marks(target: kunit.Target) -> list[pytest.MarkDecorator]:
    """Return what tests of a target are marked with."""
    return [pytest.mark.matrix] if target.virtual_time else []


@pytest.mark.parametrize(
    "target", [pytest.param(t.name, marks=marks(t)) for t in kunit.TARGETS.values()]
)
def test_run(target: str) -> None:
    """The run as a whole: a clean kernel log, and just the cases that the sources declare."""
    result, declared = run(target), kunit.TARGETS[target].declared()
    assert not result.problems
    assert sorted(f"{c.suite}.{c.name}" for c in result.cases) == sorted(declared)


@pytest.mark.parametrize(
    "target, case",
    [
        pytest.param(t.name, case, marks=marks(t))
        for t in kunit.TARGETS.values()
        for case in t.declared()
    ],
)
def test_case(target: str, case: str) -> None:
    """What became of one case."""
    result = run(target)
    found = result.case(case)
    assert found, f"{case} gave no verdict:\n{result.console[-3000:]}"
    print(found.log)
    assert found.status == "PASS", f"{found.status}\n{found.log}"
