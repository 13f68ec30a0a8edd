"""QEMU ends when virtme-ng ends, for any reason."""

import os
import subprocess
import time

import pytest
from lab.engines import smp
from lab.engines.options import Guest


@pytest.mark.parametrize("end", ["exit 1", "kill -9 $$", "sleep 100"])
def test_qemu_ends_with_virtme_ng(tmp_path, end):
    child = tmp_path / "child"
    script = f"sleep 100 & echo $! >{child}; {end}"
    _, reason = smp._boot(["sh", "-c", script], Guest(timeout=2), 2, tmp_path / "begun")
    assert reason.startswith("no verdict")
    pid = int(child.read_text())
    for _ in range(100):
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE)
        # Nobody may have waited for it yet; the state of a niced one is "ZN".
        if done.stdout.strip()[:1] in (b"", b"Z"):
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    pytest.fail("it runs on")
