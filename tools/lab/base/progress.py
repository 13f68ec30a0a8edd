"""Progress goes to standard error: standard output is for results."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Activities other than running machines ("fetching packages") -> seconds, summed over threads.
SPENT: defaultdict[str, float] = defaultdict(float)
_lock = threading.Lock()
# Functions that get the lines too, for a caller that captures standard error.
show: list[Callable[[str], None]] = []


def say(who: str, text: str) -> None:
    """Print a line that begins with the name of its command or part."""
    line = f"{who}: {text}"
    print(line, file=sys.stderr, flush=True)
    for also in show:
        also(line)


@contextmanager
def spending(what: str) -> Iterator[None]:
    """Add the wall time of the block to an activity in SPENT."""
    start = time.monotonic()
    try:
        yield
    finally:
        with _lock:
            SPENT[what] += time.monotonic() - start
