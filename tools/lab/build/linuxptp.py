"""The programs of linuxptp for guests that have PTP hardware clocks, unpacked in the cache."""

from collections.abc import Iterable
from pathlib import Path

from ..kernels import unpacked
from . import userland

ALONE = ["libc6", "linuxptp"]
PROGRAMS = ("phc2sys", "pmc", "ptp4l")


def files(programs: Iterable[str] = PROGRAMS) -> dict[str, Path]:
    """Return the files that they need in a guest, in the engines' form: guest path -> file."""
    root = unpacked.unpacked("linuxptp", userland.SUITES, [], ALONE)
    return unpacked.files(root, [f"usr/sbin/{program}" for program in programs])
