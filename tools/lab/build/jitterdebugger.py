"""jitterdebugger, which measures how late its threads wake up, unpacked in the cache."""

from pathlib import Path

from ..kernels import unpacked
from . import userland

ALONE = ["jitterdebugger"]
PROGRAM = "usr/bin/jitterdebugger"


def program() -> Path:
    """Return the program; guests of the lab have the libraries that it needs."""
    return unpacked.unpacked("jitterdebugger", userland.SUITES, [], ALONE) / PROGRAM
