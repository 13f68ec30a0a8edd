"""Time limits of emulators, without the time in which other processes had the CPU.

Emulators in the background get the CPU time that is left over. Next to builds that may be almost
none for many minutes, and a healthy guest would be taken for one that hangs.
"""

import subprocess
import time
from pathlib import Path

STEP = 1  # s
# s of idle time that waiting may offset. A thread's waiting is counted when it ends, later than it
# passed; but several threads can have waited at once, which must not hide a later hang.
OWED = 10


def wait(process: subprocess.Popen, timeout: float) -> int:
    """Wait for a process to end, as its wait() does; return its status, or raise TimeoutExpired.

    timeout: seconds of wall time, without those in which it had work to do and no CPU
    """
    busy, idle, last, (ran, waited) = 0.0, 0.0, time.monotonic(), _times(process.pid)
    while busy + max(idle, 0) < timeout:
        try:
            return process.wait(STEP)
        except subprocess.TimeoutExpired:
            now, (has_run, has_waited) = time.monotonic(), _times(process.pid)
        # An ending thread takes its times with it, which hides how much the other threads gained.
        passed, running, waiting = now - last, max(has_run - ran, 0), max(has_waited - waited, 0)
        busy += min(passed, running)
        idle = max(idle + passed - running - waiting, -OWED)
        last, ran, waited = now, has_run, has_waited
    raise subprocess.TimeoutExpired(process.args, timeout)


def _times(pid: int) -> tuple[float, float]:
    """Return how long all threads of a process have run and have waited for a CPU: see proc(5)."""
    ran, waited = 0, 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            on, off, _ = map(int, file.read_text().split())
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended
            continue
        ran, waited = ran + on, waited + off
    return ran / 1e9, waited / 1e9
