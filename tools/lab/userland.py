"""The programs of the lab that must be the same on every machine, unpacked in the cache.

QEMU decides what a figure is, and the programs inside a virtual-time guest decide when things
happen there; so both come from one Debian suite, whatever this machine runs. Debian 12's own
QEMU 7.2, for one, hangs with two CPUs in virtual time.
"""

import hashlib
import subprocess
from pathlib import Path

from .cache import cache_dir, fresh_dir, is_complete, locked
from .debian import Archive
from .errors import LabError
from .progress import say

SUITES = ("trixie", "trixie-security")
PACKAGES = ["qemu-system-x86", "busybox-static", "trace-cmd"]
# cyclictest and hackbench; the scripts in it would bring Python along.
ALONE = ["rt-tests", "libnuma1"]
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def root() -> Path:
    """Return the directory with the programs; fetch it when the cache has none.

    Fetching takes some 20 s and 150 MB of disk. LabError when it cannot be had.
    """
    key = hashlib.sha256(repr((SUITES, PACKAGES, ALONE)).encode()).hexdigest()[:8]
    final = cache_dir() / f"userland-{key}"
    with locked("userland"):
        if not is_complete(final):
            say("lab", f"fetching {', '.join(PACKAGES + ALONE)} ({', '.join(SUITES)})")
            with fresh_dir(final) as temp, Archive(*SUITES) as archive:
                for name in ("bin", "lib", "lib64", "sbin"):
                    (temp / "usr" / name).mkdir(parents=True)
                    (temp / name).symlink_to(f"usr/{name}")
                archive.unpack(PACKAGES, temp)
                archive.unpack(ALONE, temp, dependencies=False)
    return final


def loader() -> list[str]:
    """Return the command that runs a program of the userland with the userland's libraries."""
    base = root()
    return [f"{base}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{base}/{LIBRARIES}"]


def libraries(program: str) -> list[str]:
    """List the shared libraries of a program (``usr/bin/trace-cmd``), relative to the root."""
    base = root()
    done = subprocess.run(
        [*loader(), "--list", f"{base}/{program}"], capture_output=True, text=True
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"cannot list the libraries of {program}: {done.stderr}")
    paths = [w for w in done.stdout.split() if w.startswith(f"{base}/")]
    return sorted({str(Path(p).relative_to(base)) for p in paths})
