"""Debian packages as a directory of the cache, and how to run their programs here.

The programs are the same on every machine, independent of its own system: they come with the
libraries of their suite.
"""

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..base.cache import cache_dir, fresh_dir, is_complete, locked
from ..base.errors import LabError
from ..base.progress import say
from . import lock
from .debian import Archive

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def unpacked(
    name: str, suites: Iterable[str], packages: list[str], alone: Iterable[str] = ()
) -> Path:
    """Return the directory NAME-KEY with the packages, fetching them if the cache has none.

    name:  also names a part of the lock; the key is that of the locked packages
    alone: packages to unpack without their dependencies

    Fetching takes some 30 s and 150 MB of disk. LabError if they are not available.
    """
    suites, alone = tuple(suites), list(alone)
    part = lock.root(name)
    key = part.key if part.packages else _key(suites, packages, alone)
    final = cache_dir() / f"{name}-{key}"
    with locked(name):
        if not is_complete(final):
            say("lab", f"fetching {', '.join(packages + alone)} ({', '.join(suites)})")
            with fresh_dir(final) as temp, Archive(*suites) as archive:
                for directory in ("bin", "lib", "lib64", "sbin"):
                    (temp / "usr" / directory).mkdir(parents=True)
                    (temp / directory).symlink_to(f"usr/{directory}")
                chosen = lock.choose(name, archive, lambda _: [(packages, True), (alone, False)])
                archive.unpack_exactly(chosen, temp)
                lock.record(name, temp, chosen)
    return final


def _key(*asked) -> str:
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:8]


def loader(root: Path) -> list[str]:
    """Return the command that runs a program with the libraries of such a directory."""
    return [f"{root}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{root}/{LIBRARIES}"]


def libraries(root: Path, program: str) -> list[str]:
    """List the shared libraries of a program (``usr/bin/trace-cmd``), relative to the root."""
    done = subprocess.run(
        [*loader(root), "--list", f"{root}/{program}"], capture_output=True, text=True
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"cannot list the libraries of {program}: {done.stderr}")
    paths = [w for w in done.stdout.split() if w.startswith(f"{root}/")]
    return sorted({str(Path(p).relative_to(root)) for p in paths})


def files(root: Path, programs: Iterable[str]) -> dict[str, Path]:
    """Return the files that programs need in a guest, in the engines' form: guest path -> file."""
    names = {name for program in programs for name in (program, *libraries(root, program))}
    return {name: root / name for name in sorted(names)}
