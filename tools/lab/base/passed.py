"""Files that checks have passed, which need not be checked again.

Each is recorded as an empty file in the cache, named by a hash of all that the verdict depends on.
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
    """Run a check on the files that it has not yet passed in this form; return its findings.

    check:   returns nothing if it finds nothing; it judges each file separately
    tools:   the files that implement the check
    options: everything else that the verdict depends on
    """
    key = repr((options, [_hash(tool) for tool in tools]))
    marks = {file: _mark(key, file) for file in files}
    left = [file for file, mark in marks.items() if not mark.exists()]
    found = check(left) if left else ""
    for file, mark in marks.items():
        # A file that changed during the check may have been read in its new form.
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
    """Remove records that have not been used for long."""
    for mark in cache_dir("passed").iterdir():
        with suppress(FileNotFoundError):  # another check has removed it
            if time.time() - mark.stat().st_mtime > FORGET:
                mark.unlink()
