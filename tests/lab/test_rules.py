"""A rule's output and exit status reach the guest's script: harness/rules.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[1] / "harness"
MODULE = """
import os, sys
loaded = os.getpid()
def run(name):
    globals()[name]()
def holds():
    print("loaded", os.getppid() == loaded, "in", os.getcwd())
def fails():
    print("before")
    assert 1 + 1 == 3, "sum"
def leaves():
    sys.exit(3)
def killed():
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def rule(scratch):
    """Return a function that runs a rule: (exit status, output)."""
    (scratch / "module.py").write_text(MODULE)
    os.mkfifo(scratch / "status")
    with subprocess.Popen(
        [sys.executable, HARNESS / "rules.py", "module"], cwd=scratch, stdin=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(scratch)},
    ) as running:  # fmt: skip

        def run(name: str) -> tuple[int, str]:
            print("module", name, file=running.stdin, flush=True)
            return int((scratch / "status").read_text()), (scratch / "output").read_text()

        yield run
        running.stdin.close()


def test_ends(rule):
    assert rule("holds") == (0, "loaded True in /\n")
    status, output = rule("fails")
    assert status == 1 and output.startswith("before\n") and "AssertionError: sum" in output
    assert rule("killed") == (128 + 9, "")
    assert rule("leaves")[0] == 1
    assert rule("missing")[0] == 1
    assert rule("holds")[0] == 0
