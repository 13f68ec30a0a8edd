"""The lab's cache of downloads and builds, and how a directory appears in it atomically.

Everything lives below ``$XDG_CACHE_HOME/apic-timer`` (default ``~/.cache/apic-timer``); nothing
else on the machine is written, and deleting that directory is always safe.
"""

import fcntl
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STAMP = "complete"
IN_USE = 12 * 3600  # s after its last use; a benchmark may use a directory for so long

_thread = threading.local()


def cache_dir(*parts: str) -> Path:
    """Return a directory of the cache, making it if necessary."""
    base = getattr(_thread, "base", None) or os.environ.get("XDG_CACHE_HOME")
    base = base or os.path.expanduser("~/.cache")
    path = Path(base, "apic-timer", *parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def separate_cache(base: Path) -> Iterator[None]:
    """Use a different cache, below `base`, in this thread only.

    The environment belongs to all threads: one that looks for a kernel meanwhile would find none,
    fetch it, and by then replace the root directory that others use.
    """
    _thread.base = base
    try:
        yield
    finally:
        del _thread.base


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cache's lock `name`; a second process waits here until the first is done."""
    with open(cache_dir("locks") / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_complete(path: Path) -> bool:
    """Tell whether `path` is a directory that `fresh_dir` finished."""
    return (path / STAMP).is_file()


@contextmanager
def fresh_dir(final: Path) -> Iterator[Path]:
    """Yield a temporary directory that becomes `final` when the block ends without an exception.

    The directory is stamped and renamed into place, so a reader sees all of it or nothing. An
    earlier `final` (an unfinished one, say) is removed. After an exception nothing is left; the
    remains of a killed process are removed by the next one that makes `final`.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    _sweep(final.parent, f".{final.name}.")
    temp, in_use = _begin(final)
    try:
        temp.chmod(0o755)
        yield temp
        (temp / STAMP).touch()
        if final.exists():
            shutil.rmtree(final)
        temp.rename(final)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise
    finally:
        os.close(in_use)


def _begin(final: Path) -> tuple[Path, int]:
    """Make a temporary directory for `final`; return it, and a descriptor that holds its lock."""
    while True:
        temp = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
        with suppress(FileNotFoundError):
            fd = _hold(temp)
            # Another process may have swept it up before it was locked.
            if temp.exists():
                return temp, fd
            os.close(fd)


def _hold(directory: Path, more: int = 0) -> int:
    """Return a descriptor that holds a directory's lock, and that no child process gets."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | more)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sweep(parent: Path, prefix: str, unused: float = 0) -> None:
    """Remove temporary directories whose lock nobody holds.

    unused: seconds since their last change
    """
    name = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}")  # as mkdtemp() makes them
    for left in [p for p in parent.iterdir() if name.fullmatch(p.name)]:
        with suppress(OSError):  # already removed, in use, or another user's
            if time.time() - left.stat().st_mtime >= unused:
                fd = _hold(left, fcntl.LOCK_NB)
                try:
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(fd)


@contextmanager
def temporary(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a temporary directory, in that of the system by default; it is removed at the end.

    A killed process cannot remove its own. Those with this prefix that nobody holds are removed
    here, once they are old: earlier versions of this lab did not hold theirs.
    """
    parent = parent or Path(tempfile.gettempdir())
    _sweep(parent, prefix, unused=IN_USE)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as temp:
        fd = _hold(Path(temp))
        try:
            yield Path(temp)
        finally:
            os.close(fd)


def newest_first(paths: list[Path]) -> list[Path]:
    """Sort paths by modification time, the newest first."""
    return sorted(paths, key=lambda p: p.stat().st_mtime, reverse=True)


def used(path: Path) -> Path:
    """Mark a directory as in use, for prune(), and return it."""
    os.utime(path)
    return path


def prune(paths: Iterable[Path], keep: int = 0) -> None:
    """Remove directories that were not used lately, except for the newest `keep`.

    The caller holds the lock under which they are made. Another process may be using a directory
    that this one does not need.
    """
    for old in newest_first(list(paths))[keep:]:
        if time.time() - old.stat().st_mtime > IN_USE:
            shutil.rmtree(old)
