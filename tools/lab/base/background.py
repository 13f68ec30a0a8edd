"""Virtual machines in the background, which end with the process that started them."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


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
