"""The programs of linuxptp for guests that have PTP hardware clocks, unpacked in the cache."""

from pathlib import Path

from . import unpacked, userland

ALONE = ["libc6", "linuxptp"]
PROGRAMS = ("usr/sbin/phc2sys",)


def files() -> dict[str, Path]:
    """Return what a guest needs for them, as engines take files: guest path -> file."""
    return unpacked.files(unpacked.unpacked("linuxptp", userland.SUITES, [], ALONE), PROGRAMS)
