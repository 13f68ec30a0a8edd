"""The programs of the lab that must be the same on every machine, unpacked in the cache.

QEMU decides what a figure is, and the programs inside a virtual-time guest decide when things
happen there; so both come from one Debian suite, whatever this machine runs. Debian 12's own
QEMU 7.2, for one, hangs with two CPUs in virtual time.
"""

from pathlib import Path

from ..kernels import unpacked

SUITES = ("trixie", "trixie-security")
PACKAGES = ["qemu-system-x86", "busybox-static", "trace-cmd"]
# cyclictest and hackbench; the scripts in it would bring Python along.
ALONE = ["rt-tests", "libnuma1"]


def root() -> Path:
    """Return the directory with the programs; LabError when it cannot be had."""
    return unpacked.unpacked("userland", SUITES, PACKAGES, ALONE)


def loader() -> list[str]:
    """Return the command that runs a program of the userland with the userland's libraries."""
    return unpacked.loader(root())


def libraries(program: str) -> list[str]:
    """List the shared libraries of a program (``usr/bin/trace-cmd``), relative to the root."""
    return unpacked.libraries(root(), program)
