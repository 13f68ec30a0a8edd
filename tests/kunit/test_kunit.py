"""One test result for each KUnit case: in simulated time under UML, and in virtual time.

The cases are known from the sources before anything is built, so that one which gives no verdict
(it was not linked, an earlier one crashed) fails instead of being absent.
"""

import functools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from lab import kunit  # noqa: E402
from lab.errors import LabError  # noqa: E402


@functools.cache
def attempt(arch: str) -> kunit.Run | LabError:
    """Build and run all suites of an architecture, once, even if that fails.

    Not a fixture of the session: pytest would run it again for each case, as each has parameters
    of its own.
    """
    try:
        return kunit.run(arch)
    except LabError as error:
        return error


def run(arch: str) -> kunit.Run:
    """Return the run of all suites of an architecture; LabError if there was none."""
    found = attempt(arch)
    if isinstance(found, LabError):
        raise found
    print(", ".join(f"{name} {value:.1f} s" for name, value in found.seconds.items()))
    return found


@pytest.mark.parametrize("arch", kunit.TARGETS)
def test_run(arch: str) -> None:
    """The run as a whole: a clean kernel log, and just the cases that the sources declare."""
    result, target = run(arch), kunit.TARGETS[arch]
    assert not result.problems
    assert sorted(f"{c.suite}.{c.name}" for c in result.cases) == sorted(target.declared())


@pytest.mark.parametrize(
    "arch, name", [(t.arch, name) for t in kunit.TARGETS.values() for name in t.declared()]
)
def test_case(arch: str, name: str) -> None:
    """What became of one case."""
    result = run(arch)
    found = result.case(name)
    assert found, f"{name} gave no verdict:\n{result.console[-3000:]}"
    print(found.log)
    assert found.status == "PASS", f"{found.status}\n{found.log}"
