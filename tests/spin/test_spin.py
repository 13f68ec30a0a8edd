"""Dispatch, and the wait of a program, in a process, on the CPU that runs the tests."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]


def spin(program: str = "spin", shots: int = 10_000) -> str:
    """Run a program and return its output; it fails if a handler, or itself, was early."""
    subprocess.run(["make", "-C", TREE, f"build/spin/{program}"], check=True, capture_output=True)
    done = subprocess.run([TREE / "build/spin" / program, str(shots)], capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("busy", [False, True])
def test_never_early(busy):
    """Each run measures the call anew, in any state of the CPU, also next to other work.

    The TSC has the same step in nearly all of them.
    """
    steps = []
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
              for _ in range(busy * os.cpu_count())]  # fmt: skip
    try:
        for _ in range(10):
            output = spin()
            assert "yet to come: 0; seen by the watchdog: 0\n" in output
            steps.append(int(re.search(r"step of the TSC: (\d+);", output)[1]))
            assert spin("until", 1000).endswith("\nearly: 0\n")
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert Counter(steps).most_common(1)[0][1] >= 8, steps


def test_spin():
    """Touching cold data before the wait lets the handler have them sooner."""
    output = spin()
    rows = re.findall(r"^(.+): (.+?) +(-?\d+) +(-?\d+) +(-?\d+) +(-?\d+)$", output, re.MULTILINE)
    p50 = {(cache, what): int(value) for cache, what, _, value, _, _ in rows}
    assert len(p50) == 10, output
    for _, _, *values in rows:
        assert sorted(map(int, values)) == [int(value) for value in values], output
    data = {cache: value for (cache, what), value in p50.items() if what == "has read its data"}
    assert data["cold, code and data touched"] < data["cold, code touched"], output
