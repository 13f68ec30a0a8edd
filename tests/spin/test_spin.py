"""The measurement of the last stretch in a process, on the CPU that the tests run on."""

import re
import subprocess
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


def test_spin():
    """Touching what is cold before the wait makes the handler have its data sooner."""
    subprocess.run(["make", "-C", TREE, "build/spin/spin"], check=True, capture_output=True)
    output = subprocess.run(
        [TREE / "build/spin/spin", "10000"], check=True, capture_output=True, text=True
    ).stdout
    rows = re.findall(r"^(.+): (.+?) +(-?\d+) +(-?\d+) +(-?\d+) +(-?\d+)$", output, re.MULTILINE)
    p50 = {(cache, what): int(value) for cache, what, _, value, _, _ in rows}
    assert len(p50) == 8, output
    for _, _, *values in rows:
        assert sorted(map(int, values)) == [int(value) for value in values], output
    data = {cache: value for (cache, what), value in p50.items() if what == "has read its data"}
    assert data["cold, code and data touched"] < data["cold, code touched"], output
