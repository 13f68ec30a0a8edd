"""Boot a kernel that can be put to sleep (suspend to RAM), in real time; CPUs are threads.

Waking needs firmware that knows how (SeaBIOS), on QEMU's older PC: on q35 it leaves ACPI's
registers unmapped. The kernel unpacks itself: what QEMU loads to its place (an ELF file) it would
load there once more on waking. The root is the initramfs, as virtio-9p doesn't survive a sleep.
"""

from ..kernels.kernels import Kernel
from . import diskless, qemu
from .options import Guest, engine
from .result import Result

# A CPU model that lets the kernel keep the TSC as its clock with several CPUs.
CPU = "max,vendor=GenuineIntel,family=6,model=58,stepping=9"


@engine(cpus=2, memory=512, timeout=300)
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in a guest of a stock kernel: see `diskless.run`.

    ``rtcwake`` of busybox puts it to sleep (``-m mem``) and wakes it. Nothing in this machine but
    the guest itself ends a suspend to idle.
    """
    return diskless.run(kernel, script, guest, qemu.real_time("pc", CPU), boot=kernel.vmlinuz)
