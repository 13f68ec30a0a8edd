"""Background machines end together with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"

# A program that runs two processes in the background, each in its own session, as VMs are. Each is
# started once more, like a machine that failed to boot.
RUNS = r"""
import os, subprocess, time
from lab.base.background import Background, heed_signals

def run(_):
    for attempt in (1, 2):
        vm = subprocess.Popen(["sleep", "100"], start_new_session=True)
        os.write(1, b"%d\n" % vm.pid)  # at once, not as print() does
        vm.wait()

heed_signals()
with Background(max_workers=2) as background:
    results = background.map(run, range(10))
    while True:
        time.sleep(1)
"""


# The same, for the guests of a report.
REPORTS = r"""
import os, subprocess
from pathlib import Path
from lab.base.background import heed_signals
from lab.run import report

def run(*_, **options):
    for attempt in (1, 2):
        vm = subprocess.Popen(["sleep", "100"], start_new_session=True)
        os.write(1, b"%d\n" % vm.pid)
        vm.wait()

report.kernels.ensure = report.build.build = report.plugins.plugin = lambda *_: None
report.instruments = report.modelled.measure = report.ports.measure = run
heed_signals()
report.main(Path("/dev/null/none"))
"""


@contextmanager
def program(output: Path, *signals: str, runs: str = RUNS):
    """Run it until it has started both, with signals set as by `env`; kill it at the end."""
    with open(output, "w") as out:
        argv = ["env", "--default-signal", *signals, sys.executable, "-c", runs]
        process = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(TOOLS)}, stdout=out)
    try:
        limit = time.monotonic() + 60
        while len(output.read_text().splitlines()) < 2:
            assert time.monotonic() < limit
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number, runs", [
    (signal.SIGINT, RUNS), (signal.SIGTERM, RUNS), (signal.SIGHUP, RUNS), (signal.SIGINT, REPORTS),
], ids=["INT", "TERM", "HUP", "report"])  # fmt: skip
def test_nothing_is_left(number, runs, tmp_path):
    """Nothing survives: neither running processes, nor new ones, nor those still to be started."""
    with program(tmp_path / "pids", runs=runs) as process:
        process.send_signal(number)
        assert process.wait(60) != 0
    pids = [int(line) for line in (tmp_path / "pids").read_text().splitlines()]
    assert len(pids) == 4
    assert not [pid for pid in pids if alive(pid)]


def test_signals_that_are_ignored_stay_so(tmp_path):
    """For example nohup ignores SIGHUP."""
    with program(tmp_path / "pids", "--ignore-signal=HUP") as process:
        process.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert process.poll() is None
        process.terminate()
        process.wait(60)
