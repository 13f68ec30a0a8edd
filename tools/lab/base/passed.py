"""What checks have passed: files that they need not look at again.

Each is an empty file of the cache, named by a hash of all that the verdict depends on.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from .cache import cache_dir

FORGET = 30 * 86400  # s after its last use


def only_new(
    check: Callable[[list[str]], str], files: Sequence[str], tools: Sequence[Path], *options: str
) -> str:
    """Run a check on those of the files that it has not passed as they are; return what it finds.

    check:   returns nothing if it finds nothing; it judges each file by itself
    tools:   the files that the check is made of
    options: what else the verdict depends on
    """
    key = repr((options, [_hash(tool) for tool in tools]))
    marks = {file: _mark(key, file) for file in files}
    left = [file for file, mark in marks.items() if not mark.exists()]
    found = check(left) if left else ""
    for file, mark in marks.items():
        # A file that was changed meanwhile may have been read as it is now.
        if file not in left or (not found and mark == _mark(key, file)):
            mark.touch()
    _forget()
    return found


def _mark(key: str, file: str) -> Path:
    name = hashlib.sha256(repr((key, file, _hash(Path(file)))).encode()).hexdigest()
    return cache_dir("passed") / name


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _forget() -> None:
    """Remove what has not been of use for long."""
    for mark in cache_dir("passed").iterdir():
        with suppress(FileNotFoundError):  # another check has removed it
            if time.time() - mark.stat().st_mtime > FORGET:
                mark.unlink()
