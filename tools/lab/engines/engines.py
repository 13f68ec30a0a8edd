"""The engines by name.

    run("smp", kernel, "a shell script", Guest(modules=built, cpus=4, x2apic=True))

is the same as smp.run(kernel, "a shell script", modules=built, cpus=4, x2apic=True), for callers
that have the engine's name from a table or a command line. Each engine's run() documents the rest.
"""

from collections.abc import Callable
from typing import NamedTuple

from ..base.errors import LabError
from ..kernels.kernels import Kernel
from . import bochs, hibernator, sleeper, smp, successor, uefi, virtual
from .options import Guest
from .result import Result


class Engine(NamedTuple):
    """A line of the table."""

    run: Callable[..., Result]
    guests: str  # what they are, as it continues "a guest"
    real_time: bool  # CPUs are threads of this machine, which may delay one for any time

    @property
    def options(self) -> frozenset[str]:
        """Names of the options of a Guest that the engine has."""
        return self.run.options


ENGINES = {
    "virtual": Engine(virtual.run, "in virtual time", real_time=False),
    "smp": Engine(smp.run, "with several CPUs", real_time=True),
    "bochs": Engine(bochs.run, "in Bochs", real_time=False),
    "sleeper": Engine(sleeper.run, "that can sleep", real_time=True),
    "hibernator": Engine(hibernator.run, "that hibernates once", real_time=True),
    "successor": Engine(successor.run, "in which another kernel takes over", real_time=True),
    "uefi": Engine(uefi.run, "that UEFI firmware boots", real_time=True),
}


def run(name: str, kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in an engine's guest; LabError if the engine lacks a requested option."""
    if name not in ENGINES:
        raise LabError(f"unknown engine {name}; available: {', '.join(ENGINES)}")
    return ENGINES[name].run(kernel, script, **guest.asked())
