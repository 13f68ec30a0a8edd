"""Boot a kernel that can be put to sleep (suspend to RAM), in real time; CPUs are threads.

Waking needs firmware that supports it (SeaBIOS), on QEMU's older PC: q35 leaves ACPI's registers
unmapped. The kernel decompresses itself: QEMU would load an ELF kernel into memory again on waking.
The root is the initramfs, because virtio-9p does not survive a sleep.
"""

from dataclasses import replace

from ..kernels.kernels import Kernel
from . import diskless, qemu, splats
from .options import Guest, engine
from .result import Result

# A CPU model with which the kernel keeps the TSC as its clock on several CPUs.
CPU = f"{qemu.CPU},vendor=GenuineIntel,family=6,model=58,stepping=9"


@engine(cpus=2, memory=512, timeout=300)
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in a guest of a stock kernel: see `diskless.run`.

    busybox's ``rtcwake`` puts it to sleep (``-m mem``) and wakes it. From suspend to idle, only the
    guest itself can wake.
    """
    guest = replace(guest, append=f"{splats.LONG_LOG} {guest.append}")
    return diskless.run(kernel, script, guest, qemu.real_time("pc", CPU), boot=kernel.vmlinuz)
