"""The packages that the lab fetches, pinned by packages.lock: all machines get the same bytes.

Each root of the cache that is unpacked from packages (a kernel with its compiler, QEMU with the
guests' programs, Bochs) has a part in the lock: each of its packages, by version and SHA-256.
`make lock` renews it. Debian's archive keeps few old versions: where the lock names a version that
is gone, the root is made from the newest packages, and a message and the results' headers say so.
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
RECORD = "packages"  # in a root: its packages, and the part of a lock that it was made for
HEAD = """\
# What the lab fetches: of each root its suites, then package, version and SHA-256. `make lock`
# renews it; lab/kernels/lock.py says what it is for.
"""


class Root(NamedTuple):
    """A part of the lock; it has no packages where the lock has none for a root."""

    suites: tuple[str, ...] = ()
    packages: tuple[Package, ...] = ()

    @property
    def key(self) -> str:
        """A key for the name of a directory with exactly these packages."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8]

    @property
    def text(self) -> str:
        """The packages, one per line."""
        return _lines(self.packages)

    def version(self, pattern: str) -> tuple[str, str] | None:
        """Return name and version of the package whose whole name matches, or None."""
        return next(((p.name, p.version) for p in self.packages if re.fullmatch(pattern, p.name)),
                    None)  # fmt: skip


def parse(text: str, where: str = LOCK.name) -> dict[str, Root]:
    """Return the parts of a lock by the names of their roots; LabError if it is not a lock."""
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
            raise LabError(f"{where}:{number}: neither a root nor a root's package: {line}")
    return roots


def text(roots: dict[str, Root]) -> str:
    """Return the text of a lock, which `parse` reads."""
    parts = [f"\n[{name}: {' '.join(root.suites)}]\n{_lines(sorted(root.packages))}"
             for name, root in sorted(roots.items())]  # fmt: skip
    return HEAD + "".join(parts)


def root(name: str) -> Root:
    """Return the lock's part for a root."""
    return _read(LOCK).get(name, Root())


@cache
def _read(path: Path) -> dict[str, Root]:
    return parse(path.read_text(), path.name) if path.exists() else {}


def choose(name: str, archive: Archive, asked: Callable[[Archive], Groups]) -> tuple[Package, ...]:
    """Return the packages to make a root from: the locked ones if all are available.

    asked: returns the packages to start from where they are not, or where there is no lock
    """
    wanted = root(name).packages
    if wanted:
        gone = archive.gone(wanted)
        if not gone:
            return wanted
        if archive.absent:
            say("lab", f"{name}: this machine's apt sources lack Debian's security archive, and so "
                       f"{_some(gone)}: using the newest packages, not as locked")  # fmt: skip
        else:
            say("lab", f"{name}: Debian no longer has {_some(gone)}: using the newest packages, "
                       "not as locked (`make lock` renews the lock)")  # fmt: skip
    return archive.resolve(asked(archive))


def record(name: str, directory: Path, packages: Iterable[Package]) -> None:
    """Record in a root what it was made from."""
    (directory / RECORD).write_text(f"# for {root(name).key}\n{_lines(packages)}")


def is_for(name: str, directory: Path) -> bool:
    """Tell whether a root was made for today's lock, of the packages available then."""
    path = directory / RECORD
    return path.exists() and path.read_text().startswith(f"# for {root(name).key}\n")


def identity(directory: Path) -> str:
    """Return a string that differs between roots with different packages, as far as is known."""
    path = directory / RECORD
    packages = path.read_text().partition("\n")[2] if path.exists() else directory.name
    return hashlib.sha256(packages.encode()).hexdigest()[:16]


def differing(name: str, directory: Path) -> list[str]:
    """List the packages of a root that differ from the lock: "busybox-static 1:1.37.0-6+b8"."""
    path = directory / RECORD
    if not path.exists():  # made before there was a lock; kernels.py has checked what matters
        return [] if root(name).packages else [f"{name} is not in the lock"]
    found = set(path.read_text().splitlines()[1:])
    return [line.rpartition(" ")[0]
            for line in sorted(found - set(_lines(root(name).packages).splitlines()))]  # fmt: skip


def _lines(packages: Iterable[Package]) -> str:
    return "".join(f"{' '.join(package)}\n" for package in packages)


def _some(packages: list[Package]) -> str:
    more = f" and {len(packages) - 1} more" * (len(packages) > 1)
    return f"{packages[0].name} {packages[0].version}{more}"
