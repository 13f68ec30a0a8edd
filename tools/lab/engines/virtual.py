"""Boot a kernel in virtual time, run a script in it, give back what it said.

One instruction is one nanosecond and one TSC cycle, idle time is skipped, and the same run twice
gives the same bytes. Nothing the guest does may depend on this machine: all it needs is in its
initramfs.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..kernels.kernels import Kernel
from ..kernels.vmlinux import vmlinux
from . import diskless, qemu
from .result import Result


def run(
    kernel: Kernel,
    script: str,
    *,
    modules: Iterable[Path] = (),
    files: Mapping[str, bytes | Path] | None = None,
    cpus: int = 1,
    memory: int = 512,
    seed: int = 42,
    append: str = "",
    timeout: float = 120,
    plugins: Mapping[str, Path] | None = None,
    devices: Iterable[str] = (),
) -> Result:
    """Run a shell script in a virtual-time guest of a stock kernel: see `diskless.run`.

    seed:    another one gives an independent sample
    plugins: name -> a plug-in of QEMU, see ../build/plugins.py; what it writes is handed back as
             the file of this name
    """
    return diskless.run(
        kernel, script, machine=qemu.virtual_time(seed, cpus), boot=vmlinux(kernel),
        modules=modules, files=files, cpus=cpus, memory=memory, append=append, timeout=timeout,
        plugins=plugins, devices=devices,
    )  # fmt: skip
