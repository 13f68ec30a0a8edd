"""One test result for each KUnit case of this directory, run under UML.

The cases are known from the sources before anything is built, so that one which gives no verdict
(it was not linked, an earlier one crashed) fails instead of being absent.
"""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))

from lab import kunit  # noqa: E402


def declared() -> list[str]:
    """List SUITE.CASE for every KUNIT_CASE() in the sources, each of which has one suite."""
    found = []
    for source in sorted(HERE.glob("*_test.c")):
        text = source.read_text()
        (suite,) = re.findall(r'^\t\.name = "(\w+)",$', text, re.MULTILINE)
        cases = re.findall(r"^\tKUNIT_CASE\w*\((\w+)", text, re.MULTILINE)
        assert cases, f"{source.name} has no KUNIT_CASE()"
        found += [f"{suite}.{case}" for case in cases]
    return found


CASES = declared()


@pytest.fixture(scope="session")
def uml() -> kunit.Run:
    """Build and run all of them, once."""
    result = kunit.run()
    print(", ".join(f"{name} {value:.1f} s" for name, value in result.seconds.items()))
    return result


def test_run(uml: kunit.Run) -> None:
    """The run as a whole: a clean kernel log, and just the cases that the sources declare."""
    assert not uml.problems
    assert sorted(f"{c.suite}.{c.name}" for c in uml.cases) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_case(uml: kunit.Run, name: str) -> None:
    """What became of one case."""
    found = [c for c in uml.cases if f"{c.suite}.{c.name}" == name]
    assert found, f"{name} gave no verdict:\n{uml.console[-3000:]}"
    assert found[0].status == "PASS", f"{found[0].status}\n{found[0].log}"
