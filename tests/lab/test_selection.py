"""Which tests are left out unless pytest gets --matrix."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import test_boot
from machines import TABLE, Machine, some

LAB = Path(__file__).parent


def collected(*options: str) -> set[str]:
    """List the tests of this directory that pytest would run."""
    argv = [sys.executable, "-m", "pytest", str(LAB), "--collect-only", "-q", *options]
    done = subprocess.run(argv, cwd=LAB.parents[1], capture_output=True, text=True, check=True)
    return {line.split("::", 1)[1] for line in done.stdout.splitlines() if "::" in line}


@pytest.fixture(scope="module")
def short() -> set[str]:
    return collected()


@pytest.fixture(scope="module")
def matrix() -> set[str]:
    return collected("--matrix")


def of(tests: set[str], machine: Machine) -> set[str]:
    """List the tests that run in a machine. The ids of some machines begin like another's."""

    def owner(test: str) -> str:
        fits = [m.id for m in TABLE if re.search(rf"\[{re.escape(m.id)}[-\]]", test)]
        return max(fits, key=len, default="")

    return {test for test in tests if owner(test) == machine.id}


@pytest.mark.parametrize("line", range(len(TABLE)))
def test_machines(short, matrix, line):
    """All of them with it; slow ones in part, and others not at all, without."""
    machine = TABLE[line]
    whole, part = of(matrix, machine), of(short, machine)
    assert f"test_comes_to_its_end[{machine.id}]" in whole
    if machine.matrix:
        assert not part
    elif machine.brief:
        assert f"test_source_and_hardware[{machine.id}]" in part
        assert f"test_all_events[{machine.id}]" in whole - part
    else:
        assert part == whole


def test_nothing_else_is_left_out(short, matrix):
    assert short < matrix
    slow = some(matrix=True) + some(brief=True)
    expected = set().union(*(of(matrix - short, machine) for machine in slow))
    expected |= {f"test_parameter[{m.id}]" for m in test_boot.MACHINES if m.matrix}
    assert matrix - short == expected
