"""Boot a kernel in virtual time, run a script in it, return its output.

One instruction is one nanosecond and one TSC cycle, idle time is skipped, and the same run twice
gives the same bytes. Nothing in the guest may depend on this machine: all that it needs is in its
initramfs.
"""

from dataclasses import replace

from ..kernels.kernels import Kernel
from ..kernels.vmlinux import vmlinux
from . import diskless, qemu
from .options import Guest, engine
from .result import Result

# The kernel's first tick came from timer 0 of the HPET, of which it has turned off only the
# interrupt (bit 2). QEMU goes on with that timer, 250 times per second, and this is most of what an
# idle guest costs. Make it one-shot (bit 3).
WRITABLE = "iomem=relaxed"
STILL = """\
timer0=0xfed00100
config=$(devmem $timer0 32)
[ $((config & 12)) -ne 8 ] || devmem $timer0 32 0
"""


@engine(cpus=1, memory=512, timeout=120, seed=42, plugins={}, devices=())
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in a virtual-time guest of a stock kernel: see `diskless.run`."""
    machine = qemu.virtual_time(guest.seed, guest.cpus)
    guest = replace(guest, append=f"{WRITABLE} {guest.append}")
    return diskless.run(kernel, STILL + script, guest, machine, boot=vmlinux(kernel))
