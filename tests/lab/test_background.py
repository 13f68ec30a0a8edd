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


# Run a program in place of an emulator; sys.argv: a directory.
EMULATORS = {
    "smp": """
from lab.engines import smp
from lab.engines.options import Guest
# As virtme-ng does, it starts the emulator by another program.
smp._boot(["sh", "-c", f"sh -c '{SLEEP}'; true"], Guest(timeout=100), 100, home / "begun")
""",
    "diskless": """
from lab.engines import diskless
diskless._end(["sh", "-c", SLEEP], home, 100)
""",
    "bochs": """
import os
from lab.engines import bochs
bochs._emulate(home, ["sh", "-c", SLEEP], dict(os.environ), 100)
""",
}
BEGIN = """
import sys
from pathlib import Path
home = Path(sys.argv[1])
SLEEP = f"echo $$ >{home}/new; mv {home}/new {home}/pid; exec sleep 100"
"""


@pytest.mark.parametrize("engine", EMULATORS)
def test_emulator_ends_with_a_killed_process(engine, tmp_path):
    """The OOM killer's SIGKILL, say, leaves a process no time to end anything."""
    argv = [sys.executable, "-c", BEGIN + EMULATORS[engine], tmp_path]
    process = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(TOOLS)})
    try:
        until((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        assert runs(pid)
    finally:
        process.kill()
        process.wait()
    until(lambda: not runs(pid))


def until(met) -> None:
    limit = time.monotonic() + 60
    while not met():
        assert time.monotonic() < limit
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Tell whether a process is alive; nobody may have waited for one that is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


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
