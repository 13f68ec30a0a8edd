"""Virtual machines in the background, which end with the process that started them."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

# The end of its input without a line means that this process was killed.
_GUARD = 'read -r line || kill -s KILL -- "$1"'


class Background(ThreadPoolExecutor):
    """Threads that run virtual machines; leaving the context ends the machines still running."""

    def end(self) -> None:
        """Start nothing more, and kill running processes until all threads are done."""
        waiter = threading.Thread(target=self.shutdown, kwargs={"cancel_futures": True})
        waiter.start()
        waiter.join(0.2)
        while waiter.is_alive():  # a thread that finds its machine dead may restart it
            for pid in _descendants(os.getpid()):
                _kill(pid)
            waiter.join(0.2)

    def __exit__(self, *_) -> None:
        """End, with or without an exception."""
        self.end()


@contextmanager
def guarded(process: subprocess.Popen, group: bool = False) -> Iterator[None]:
    """Have a process killed if this one is, by SIGKILL too: nothing else would end an emulator.

    group: kill the group that it leads

    The kernel's signal on a parent's death (PR_SET_PDEATHSIG) would not do: virtme-ng starts its
    emulator by other programs, which would not pass it on.
    """
    target = f"{'-' * group}{process.pid}"
    guard = subprocess.Popen(["sh", "-c", _GUARD, "sh", target], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)  # fmt: skip
    try:
        yield
    finally:
        guard.communicate(b"over\n")


def heed_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt this process like Ctrl-C, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _descendants(pid: int) -> list[int]:
    """List the descendants of a process, in any session or process group."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, _read(file).split()):
            found += [child, *_descendants(child)]
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):  # the thread has ended
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
