"""Boot a kernel that can be put to sleep (suspend to RAM), in real time; CPUs are threads.

Waking needs firmware that knows how (SeaBIOS), on QEMU's older PC: on q35 it leaves ACPI's
registers unmapped. The kernel unpacks itself: what QEMU loads to its place (an ELF file) it would
load there once more on waking. The root is the initramfs, as virtio-9p doesn't survive a sleep.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..kernels.kernels import Kernel
from . import diskless, qemu
from .result import Result

# A CPU model that lets the kernel keep the TSC as its clock with several CPUs.
CPU = "max,vendor=GenuineIntel,family=6,model=58,stepping=9"


def run(
    kernel: Kernel,
    script: str,
    *,
    modules: Iterable[Path] = (),
    files: Mapping[str, bytes | Path] | None = None,
    cpus: int = 2,
    memory: int = 512,
    append: str = "",
    timeout: float = 300,
) -> Result:
    """Run a shell script in a guest of a stock kernel: see `diskless.run`.

    ``rtcwake`` of busybox puts it to sleep (``-m mem``) and wakes it. Nothing in this machine but
    the guest itself ends a suspend to idle.
    """
    return diskless.run(
        kernel, script, machine=qemu.real_time("pc", CPU), boot=kernel.vmlinuz,
        modules=modules, files=files, cpus=cpus, memory=memory, append=append, timeout=timeout,
    )  # fmt: skip
