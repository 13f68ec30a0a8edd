"""Options of guests: what each means, and how an engine gets the ones that it supports.

An engine is a function run(kernel, script, guest), decorated with `engine`; options are passed as
keywords:

    virtual.run(kernel, "a shell script", modules=built, cpus=2)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from ..base.errors import LabError
from ..kernels.kernels import Kernel
from . import splats
from .result import Result

# Kernel parameters of all engines. Addresses are those of System.map, and the kernel's tests of its
# ciphers, which would take a third of a boot of 6.1, are left out.
PARAMETERS = f"nokaslr cryptomgr.notests {splats.PARAMETERS}"
NEEDED: Any = object()  # in place of a default: the engine has none


@dataclass(frozen=True, kw_only=True)
class Guest:
    """Options of a guest. The engine chooses those that are None, if it has such an option at all.

    modules:      .ko files of this machine, found in the guest as $MODULES/NAME.ko, not loaded
    files:        name -> contents, or a file of this machine, at that path of the guest (no leading
                  /); for smp, in $SHARED, the directory where the script starts
    memory:       MiB
    append:       further kernel parameters
    timeout:      seconds, as limit.py counts them; for smp, wall time
    seed:         a different one gives an independent sample
    x2apic:       boot with x2APIC
    vendor:       of the CPUs, such as "GenuineIntel"; "": QEMU's choice
    tsc_adjust:   have CPUs with the register TSC_ADJUST
    plugins:      name -> a plug-in of QEMU, see ../build/plugins.py; its output is returned as the
                  file of this name, and ``tell WORD...`` in the guest passes it a line
    devices:      QEMU's options for further devices, one word each
    then:         the script of the succeeding kernel
    certificates: X.509 in PEM or DER form, for the firmware's `db`
    follow:       called with each line of the console as it appears
    """

    modules: Iterable[Path] | None = None
    files: Mapping[str, bytes | Path] | None = None
    cpus: int | None = None
    memory: int | None = None
    append: str | None = None
    timeout: float | None = None
    seed: int | None = None
    x2apic: bool | None = None
    vendor: str | None = None
    tsc_adjust: bool | None = None
    plugins: Mapping[str, Path] | None = None
    devices: Iterable[str] | None = None
    then: str | None = None
    certificates: Iterable[Path] | None = None
    follow: Callable[[str], None] | None = None

    def asked(self) -> dict[str, Any]:
        """Return the options that the caller has set."""
        return {name: value for name, value in vars(self).items() if value is not None}


def engine(**choices: Any) -> Callable:
    """Make a function run(kernel, script, guest) an engine with these options and their defaults.

    Every engine also has modules, files and append, empty by default. The function gets a guest in
    which all of the engine's options are set. The resulting engine raises LabError for an option
    that it does not have, or for a missing one that is NEEDED.
    """
    choices = {"modules": (), "files": {}, "append": "", **choices}

    def made(run: Callable[[Kernel, str, Guest], Result]) -> Callable[..., Result]:
        name = run.__module__.rpartition(".")[2]

        @wraps(run)
        def checked(kernel: Kernel, script: str, **options: Any) -> Result:
            asked = Guest(**options).asked()
            if unknown := sorted(asked.keys() - choices.keys()):
                raise LabError(f"guests of {name} do not support the option {', '.join(unknown)}")
            chosen = choices | asked
            if missing := sorted(key for key, value in chosen.items() if value is NEEDED):
                raise LabError(f"guests of {name} need the option {', '.join(missing)}")
            chosen["modules"] = list(chosen["modules"])  # iterated more than once
            return run(kernel, script, Guest(**chosen))

        checked.options = frozenset(choices)
        return checked

    return made
