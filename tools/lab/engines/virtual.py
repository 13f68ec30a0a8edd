"""Boot a kernel in virtual time, run a script in it, return its output.

One instruction is one nanosecond and one TSC cycle, idle time is skipped, and the same run twice
gives the same bytes. Nothing in the guest may depend on this machine: all that it needs is in its
initramfs.
"""

from ..kernels.kernels import Kernel
from ..kernels.vmlinux import vmlinux
from . import diskless, qemu
from .options import Guest, engine
from .result import Result


@engine(cpus=1, memory=512, timeout=120, seed=42, plugins={}, devices=())
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in a virtual-time guest of a stock kernel: see `diskless.run`."""
    machine = qemu.virtual_time(guest.seed, guest.cpus)
    return diskless.run(kernel, script, guest, machine, boot=vmlinux(kernel))
