"""Virtual machines in the background, which don't outlive who started them."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Background(ThreadPoolExecutor):
    """Runs what runs virtual machines; leaving it ends those that are still at work."""

    def end(self) -> None:
        """Start nothing more, and kill what runs until all threads are done."""
        waiter = threading.Thread(target=self.shutdown, kwargs={"cancel_futures": True})
        waiter.start()
        waiter.join(0.2)
        while waiter.is_alive():  # a machine may be started again by who finds it dead
            for pid in _descendants(os.getpid()):
                _kill(pid)
            waiter.join(0.2)

    def __exit__(self, *_) -> None:
        """End, whether all went well or not."""
        self.end()


def heed_signals() -> None:
    """Let SIGTERM and SIGHUP interrupt this process like Ctrl-C, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _descendants(pid: int) -> list[int]:
    """List the processes below one, in whatever session and process group they are."""
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
