"""The engines by name, and what a guest of any of them may be asked for.

    run("smp", kernel, "a shell script", Guest(modules=built, cpus=4, x2apic=True))

is the same as smp.run(kernel, "a shell script", modules=built, cpus=4, x2apic=True): for who has
the engine's name from a table or a command line. What an engine's run() says holds.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..base.errors import LabError
from ..kernels.kernels import Kernel
from . import bochs, hibernator, sleeper, smp, successor, uefi, virtual
from .result import Result


@dataclass(frozen=True, kw_only=True)
class Guest:
    """Options of a guest. What is left at None is the engine's to choose."""

    modules: Iterable[Path] | None = None
    files: Mapping[str, bytes | Path] | None = None
    cpus: int | None = None
    memory: int | None = None  # MiB
    append: str | None = None  # further kernel parameters
    timeout: float | None = None  # s
    seed: int | None = None
    x2apic: bool | None = None
    vendor: str | None = None  # of the CPUs
    then: str | None = None  # the script of the kernel that succeeds
    certificates: Iterable[Path] | None = None  # in the firmware
    follow: Callable[[str], None] | None = None  # called with each line of the console


class Engine(NamedTuple):
    """A line of the table."""

    run: Callable[..., Result]
    guests: str  # what they are, after "a guest"
    real_time: bool  # CPUs are threads of this machine, which may hold one up for any time

    @property
    def options(self) -> set[str]:
        """Names of the options of a Guest that it has."""
        return inspect.signature(self.run).parameters.keys() & Guest.__dataclass_fields__.keys()

    @property
    def required(self) -> set[str]:
        """Names of those that have no default."""
        parameters = inspect.signature(self.run).parameters
        return {n for n in self.options if parameters[n].default is inspect.Parameter.empty}


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
    """Run a shell script in a guest of an engine; LabError if it has not what is asked for."""
    if name not in ENGINES:
        raise LabError(f"no engine {name}: there are {', '.join(ENGINES)}")
    asked = {k: v for k, v in vars(guest).items() if v is not None}
    if unknown := sorted(asked.keys() - ENGINES[name].options):
        raise LabError(f"guests of {name} have no option {', '.join(unknown)}")
    if missing := sorted(ENGINES[name].required - asked.keys()):
        raise LabError(f"guests of {name} need the option {', '.join(missing)}")
    return ENGINES[name].run(kernel, script, **asked)
