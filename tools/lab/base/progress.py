"""Progress goes to standard error: what a run has found is what standard output has."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# What has taken time besides running machines ("fetching packages") -> seconds, of all threads.
SPENT: defaultdict[str, float] = defaultdict(float)
_lock = threading.Lock()
# Who captures standard error can be shown the lines too.
show: list[Callable[[str], None]] = []


def say(who: str, text: str) -> None:
    """Print a line that begins with the name of the command or part that says it."""
    line = f"{who}: {text}"
    print(line, file=sys.stderr, flush=True)
    for also in show:
        also(line)


@contextmanager
def spending(what: str) -> Iterator[None]:
    """Count the wall time of the block as spent on something."""
    start = time.monotonic()
    try:
        yield
    finally:
        with _lock:
            SPENT[what] += time.monotonic() - start
