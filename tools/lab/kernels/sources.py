"""Debian's kernel sources: the archive of linux-source-SERIES in the cache, unpacked on demand.

The archive is fetched once per series; a caller may change the tree that it unpacks.
"""

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..base.cache import cache_dir, fresh_dir, is_complete, locked, newest_first
from ..base.errors import LabError
from ..base.progress import say
from . import lock
from .debian import Archive
from .kernels import SUITES

# Much of the source that neither a small x86 kernel nor UML needs; the Kconfig files must stay. All
# files that the patches touch are kept, in Documentation too. The network drivers that
# configs/debug.config enables are kept: e1000e, igb, vmxnet3, virtio_net, veth.
SMALL = ["arch/[!ux]*.[chS]", "arch/[!ux]*/boot/*", "Documentation/[!Ka]*", "sound/*/*.[ch]",
         "drivers/gpu/drm/*.[ch]", "drivers/net/[!ev]*/*.[ch]", "drivers/net/ethernet/[!i]*/*.[ch]",
         "drivers/net/ethernet/intel/[!ei]*/*.[ch]", "drivers/net/ethernet/intel/i[!g]*/*.[ch]",
         "drivers/media/*.[ch]", "drivers/staging/*.[ch]", "tools/testing/selftests/*"]  # fmt: skip
SELFTESTS = "tools/testing/selftests"


@dataclass(frozen=True)
class Source:
    """A packed kernel source in the cache."""

    series: str  # "6.1"
    version: str  # of the Debian package: "6.1.192-2"
    archive: Path

    @property
    def package(self) -> str:
        """Name of the Debian package, which is also the directory inside the archive."""
        return f"linux-source-{self.series}"


def ensure(series: str) -> Source:
    """Return the locked source of a series, fetching it if the cache has none.

    Fetching takes 140 MB. LabError, with the reason, if it is not available.
    """
    if series not in SUITES:
        raise LabError(f"unknown kernel series {series}; available: {', '.join(SUITES)}")
    return _cached(series) or _fetch(series)


def unpack(source: Source, into: Path, exclude: list[str] | None = None) -> None:
    """Unpack a source into the directory `into`, which gets its Makefile.

    exclude: shell patterns relative to the top directory, which match across slashes (none: unpack
    all, 1.3 GB). LabError if tar fails.
    """
    _tar(source, into, "--wildcards", *(f"--exclude={source.package}/{e}" for e in exclude or []))


def members(source: Source, names: list[str]) -> Path:
    """Return a directory of the cache with some files of a source, at their paths within it.

    The first call takes half a minute, for any number of files. Of the kernel's own tests, all are
    unpacked at once. LabError if one of the files does not exist.
    """
    own = all(name.startswith(f"{SELFTESTS}/") for name in names)
    wanted = [SELFTESTS] if own else names
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:8]
    final = source.archive.parent / f"some-{key}"
    with locked(f"source-{source.series}"):
        if not is_complete(final):
            with fresh_dir(final) as root:
                _tar(source, root, *(f"{source.package}/{name}" for name in wanted))
    if missing := [name for name in names if not (final / name).exists()]:
        raise LabError(f"{source.archive.name} has no {', '.join(missing)}")
    return final


def _cached(series: str) -> Source | None:
    found = [p for p in cache_dir("sources").glob(f"linux-source-{series}_*") if is_complete(p)]
    if wanted := lock.root(part(series)).version(f"linux-source-{series}"):
        found = [p for p in found if p.name == "_".join(wanted) or lock.is_for(part(series), p)]
    return _source(series, newest_first(found)[0]) if found else None


def part(series: str) -> str:
    """Return the name of a series' part in the lock."""
    return f"source-{series}"


def _source(series: str, home: Path) -> Source:
    version = home.name.removeprefix(f"linux-source-{series}_")
    return Source(series, version, home / f"linux-source-{series}.tar.xz")


def _fetch(series: str) -> Source:
    with locked(f"source-{series}"):
        if found := _cached(series):  # fetched by another process while we waited for the lock
            return found
        package = f"linux-source-{series}"
        with Archive(*SUITES[series]) as archive:
            chosen = lock.choose(part(series), archive, lambda _: [([package], False)])
            version = chosen[0].version
            say("lab", f"fetching {package} {version}")
            final = cache_dir("sources") / f"{package}_{version}"
            with fresh_dir(final) as home:
                archive.unpack_exactly(chosen, home)
                lock.record(part(series), home, chosen)
                (packed,) = (home / "usr/src").glob(f"{package}.tar.*")
                packed.rename(home / f"{package}.tar.xz")
    return _source(series, final)


def _tar(source: Source, into: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["tar", "-x", "-C", into, "-f", source.archive, "--strip-components=1", "--no-same-owner",
         *arguments],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"cannot unpack {source.archive.name}: {done.stderr[-1000:]}")
