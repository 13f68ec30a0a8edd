"""What `make patched-deb` refuses, before it unpacks or builds anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["5.10"], "no patches for Linux 5.10: there are some for 6.1, 6.12, 7.2"),
        (["7.3"], "no patches for Linux 7.3: there are some for 6.1, 6.12, 7.2"),
        (["6.1", "--config", "/no/such/file"], "no kernel configuration /no/such/file"),
    ],
)
def test_refused(arguments, reason, tmp_path):
    output = tmp_path / "build"
    done = subprocess.run(
        [sys.executable, "-m", "lab", "deb", *arguments, "--output", output],
        env={**os.environ, "PYTHONPATH": str(TREE / "tools")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout
    assert f"lab: {reason}" in done.stderr
    assert not output.exists()
