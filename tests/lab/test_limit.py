"""The time limit of an emulator counts only time in which it could run."""

import os
import subprocess
import time
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path

import pytest
from lab.engines import limit

pytestmark = pytest.mark.long

SPIN = ["sh", "-c", "while :; do :; done"]


@contextmanager
def program(*argv: str):
    """Run a program on one of this machine's CPUs until the block ends."""
    cpu = str(min(os.sched_getaffinity(0)))
    with subprocess.Popen(["taskset", "-c", cpu, *argv]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_ends():
    with program("sh", "-c", "exit 3") as process:
        assert limit.wait(process, 60) == 3


@pytest.mark.parametrize("argv", [["sleep", "100"], SPIN])
def test_that_it_hangs(argv):
    """Both when idle and when busy."""
    start = time.monotonic()
    with program(*argv) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            limit.wait(process, 2)
        assert time.monotonic() - start >= 2


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="no CONFIG_SCHED_INFO")
def test_that_it_has_no_cpu():
    """Next to a process that is not niced it gets 1/69 of the CPU: see sched_prio_to_weight.

    If the tests themselves are niced it gets half of it.
    """
    with ExitStack() as stack:
        stack.enter_context(program(*SPIN))
        process = stack.enter_context(program("nice", "-n", "19", *SPIN))
        start = time.monotonic()
        stack.callback(process.kill)
        timer = subprocess.Popen(["sh", "-c", f"sleep 8; kill -9 {process.pid}"])
        assert limit.wait(process, 6) == -9
        assert time.monotonic() - start >= 8
        timer.wait()


def test_that_a_thread_ends(monkeypatch):
    """Its running and waiting times vanish then, and must not count as idle time of the others."""
    times = chain([(0, 0), (500, 500)], repeat((1, 1)))
    monkeypatch.setattr(limit, "_times", lambda pid: next(times))
    with program("sleep", "3") as process:
        assert limit.wait(process, 60) == 0
