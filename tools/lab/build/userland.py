"""The programs of the lab that must be the same on every machine, unpacked in the cache.

Figures depend on QEMU, and on the programs inside a virtual-time guest, which decide when things
happen there. Therefore both come from one Debian suite on every machine. Debian 12's own QEMU 7.2,
for example, hangs with two CPUs in virtual time.
"""

from pathlib import Path

from ..kernels import unpacked

SUITES = ("trixie", "trixie-security")
PACKAGES = ["qemu-system-x86", "busybox-static", "trace-cmd"]
# cyclictest and hackbench; the scripts in the package would pull in Python.
ALONE = ["rt-tests", "libnuma1"]


def root() -> Path:
    """Return the directory with the programs; LabError if it is not available."""
    return unpacked.unpacked("userland", SUITES, PACKAGES, ALONE)


def loader() -> list[str]:
    """Return the command that runs a program of the userland with the userland's libraries."""
    return unpacked.loader(root())


def libraries(program: str) -> list[str]:
    """List the shared libraries of a program (``usr/bin/trace-cmd``), relative to the root."""
    return unpacked.libraries(root(), program)
