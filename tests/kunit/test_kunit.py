"""One test result for each KUnit case: in simulated time under UML, and in virtual time.

The cases are known from the sources before anything is built, so that one which gives no verdict
(it was not linked, an earlier one crashed) fails instead of being absent.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from lab import kunit  # noqa: E402


@pytest.fixture(scope="session")
def result(request: pytest.FixtureRequest) -> kunit.Run:
    """Build and run all suites of an architecture, once."""
    found = kunit.run(request.param)
    print(", ".join(f"{name} {value:.1f} s" for name, value in found.seconds.items()))
    return found


@pytest.mark.parametrize(
    "result, target", [(t.arch, t) for t in kunit.TARGETS.values()], indirect=["result"]
)
def test_run(result: kunit.Run, target: kunit.Target) -> None:
    """The run as a whole: a clean kernel log, and just the cases that the sources declare."""
    assert not result.problems
    assert sorted(f"{c.suite}.{c.name}" for c in result.cases) == sorted(target.declared())


@pytest.mark.parametrize(
    "result, name",
    [(t.arch, name) for t in kunit.TARGETS.values() for name in t.declared()],
    indirect=["result"],
)
def test_case(result: kunit.Run, name: str) -> None:
    """What became of one case."""
    found = result.case(name)
    assert found, f"{name} gave no verdict:\n{result.console[-3000:]}"
    print(found.log)
    assert found.status == "PASS", f"{found.status}\n{found.log}"
