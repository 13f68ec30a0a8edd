"""Which packages the lab fetches: as packages.lock has them, so that machines get the same bytes.

Each root of the cache that is unpacked from packages (a kernel with its compiler, QEMU with what
runs in guests, Bochs) has a part in the lock: every package of it, by version and SHA-256. `make
lock` renews it. Debian's archive keeps few old versions: a root whose part of the lock names one
that is gone is made of the newest packages, which is said, and again in the header of results.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..base.errors import LabError
from ..base.progress import say
from .debian import Archive, Groups, Package

LOCK = Path(__file__).parents[1] / "packages.lock"
RECORD = "packages"  # in a root: what it was made of, and for which part of a lock
HEAD = """\
# What the lab fetches: of each root its suites, then package, version and SHA-256. `make lock`
# renews it; lab/kernels/lock.py says what it is for.
"""


class Root(NamedTuple):
    """A part of the lock; no packages where the lock has none for a root."""

    suites: tuple[str, ...] = ()
    packages: tuple[Package, ...] = ()

    @property
    def key(self) -> str:
        """What names a directory with these very packages."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8]

    @property
    def text(self) -> str:
        """The packages, one a line."""
        return _lines(self.packages)

    def version(self, pattern: str) -> tuple[str, str] | None:
        """Return name and version of the package whose whole name matches, if there is one."""
        return next(((p.name, p.version) for p in self.packages if re.fullmatch(pattern, p.name)),
                    None)  # fmt: skip


def parse(text: str, where: str = LOCK.name) -> dict[str, Root]:
    """Return the parts of a lock by the names of their roots; LabError where it isn't one."""
    roots: dict[str, Root] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        head = re.fullmatch(r"\[([\w.-]+): ([\w -]+)\]", line)
        package = re.fullmatch(r"([a-z0-9][a-z0-9.+-]+) ([\w.+:~-]+) ([0-9a-f]{64})", line)
        if head and head[1] not in roots:
            name = head[1]
            roots[name] = Root(tuple(head[2].split()))
        elif package and name:
            root = roots[name]
            roots[name] = root._replace(packages=(*root.packages, Package(*package.groups())))
        else:
            raise LabError(f"{where}:{number}: neither a root nor a package of one: {line}")
    return roots


def text(roots: dict[str, Root]) -> str:
    """Return a lock, which `parse` reads."""
    parts = [f"\n[{name}: {' '.join(root.suites)}]\n{_lines(sorted(root.packages))}"
             for name, root in sorted(roots.items())]  # fmt: skip
    return HEAD + "".join(parts)


def root(name: str) -> Root:
    """Return what the lock says of a root."""
    return _read(LOCK).get(name, Root())


@cache
def _read(path: Path) -> dict[str, Root]:
    return parse(path.read_text(), path.name) if path.exists() else {}


def choose(name: str, archive: Archive, asked: Callable[[Archive], Groups]) -> tuple[Package, ...]:
    """Return the packages that a root is to be made of: the locked ones if all can be had.

    asked: returns the packages to begin with where they cannot, or where there is no lock
    """
    wanted = root(name).packages
    if wanted:
        gone = archive.gone(wanted)
        if not gone:
            return wanted
        say("lab", f"{name}: Debian has no {_some(gone)} any more: the newest packages instead, "
                   "not as locked (`make lock` renews the lock)")  # fmt: skip
    return archive.resolve(asked(archive))


def record(name: str, directory: Path, packages: Iterable[Package]) -> None:
    """Leave in a root what it was made of."""
    (directory / RECORD).write_text(f"# for {root(name).key}\n{_lines(packages)}")


def is_for(name: str, directory: Path) -> bool:
    """Tell whether a root was made for the lock of today, of what there was."""
    path = directory / RECORD
    return path.exists() and path.read_text().startswith(f"# for {root(name).key}\n")


def identity(directory: Path) -> str:
    """Return a string that differs between roots of different packages, as far as is known."""
    path = directory / RECORD
    packages = path.read_text().partition("\n")[2] if path.exists() else directory.name
    return hashlib.sha256(packages.encode()).hexdigest()[:16]


def differing(name: str, directory: Path) -> list[str]:
    """List the packages of a root that are not as locked: "busybox-static 1:1.37.0-6+b8"."""
    path = directory / RECORD
    if not path.exists():  # from before there was a lock; kernels.py has looked at what matters
        return [] if root(name).packages else [f"{name} is not in the lock"]
    found = set(path.read_text().splitlines()[1:])
    return [line.rpartition(" ")[0]
            for line in sorted(found - set(_lines(root(name).packages).splitlines()))]  # fmt: skip


def _lines(packages: Iterable[Package]) -> str:
    return "".join(f"{' '.join(package)}\n" for package in packages)


def _some(packages: list[Package]) -> str:
    more = f" and {len(packages) - 1} more" * (len(packages) > 1)
    return f"{packages[0].name} {packages[0].version}{more}"
