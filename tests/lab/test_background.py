"""What is in the background ends with who started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"

# A program that runs two processes in the background, in sessions of their own, as VMs are. As a
# machine that has not come up, each is started once more.
RUNS = r"""
import os, subprocess, time
from lab.background import Background, heed_signals

def run(_):
    for attempt in (1, 2):
        vm = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        os.write(1, b"%d\n" % vm.pid)  # at once, not as print() does
        vm.wait()

heed_signals()
with Background(max_workers=2) as background:
    results = background.map(run, range(10))
    while True:
        time.sleep(1)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left(number):
    """Neither what ran, nor what was started meanwhile, nor what was still to be started."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNS], env={**os.environ, "PYTHONPATH": str(TOOLS)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as program:  # fmt: skip
        started = [program.stdout.readline() for _ in range(2)]
        program.send_signal(number)
        started += program.stdout.readlines()
        program.wait(30)
    pids = [int(line) for line in started]
    assert len(pids) == 4
    assert not [pid for pid in pids if alive(pid)]
    assert program.returncode != 0


def test_signals_that_are_ignored_stay_so():
    """As nohup ignores SIGHUP."""
    text = f"trap '' HUP; exec {sys.executable} -c \"$0\""
    with subprocess.Popen(
        ["sh", "-c", text, RUNS], env={**os.environ, "PYTHONPATH": str(TOOLS)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as program:  # fmt: skip
        program.stdout.readline()
        program.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert program.poll() is None
        program.terminate()
        program.wait(30)
