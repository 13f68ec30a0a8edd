"""Boot a kernel that hibernates, and boot it again from its image, in real time.

In between its machine is off: a new one, whose TSC begins anew, loads the image.
"""

from dataclasses import replace

from ..base.cache import temporary
from ..base.errors import LostVM
from ..kernels.kernels import Kernel
from . import diskless, qemu
from .options import Guest, engine
from .result import Result

SWAP_MB = 1024
DRIVERS = ("virtio_pci", "virtio_blk")
BEGIN = "@lab@ no image: begin\n"
# On the second boot this ends at the resume: the first kernel goes on.
PREPARE = f"""\
for name in $(cat /drivers/order); do insmod /drivers/$name; done
cat /sys/block/vda/dev >/sys/power/resume
mkswap /dev/vda
swapon /dev/vda
echo shutdown >/sys/power/disk
echo {BEGIN}"""


@engine(cpus=2, memory=512, timeout=300)
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script that hibernates once, by ``echo disk >/sys/power/state``.

    The result covers the time after hibernation; its `before` has what the script printed earlier.
    See `diskless.run`. LostVM if it never hibernated, or gave no verdict afterwards.
    """
    with temporary("apic-timer-hibernator.") as temp:
        swap = temp / "swap"
        with open(swap, "wb") as file:
            file.truncate(SWAP_MB << 20)
        machine = [*qemu.real_time(), "-drive", f"if=virtio,format=raw,file={swap}"]
        guest = replace(guest, files={**guest.files, **_drivers(kernel)})

        def boot() -> Result:
            return diskless.run(kernel, PREPARE + script, guest, machine, boot=kernel.vmlinuz)

        try:
            result = boot()
        except LostVM as lost:
            if "reboot: Power down" not in lost.console or BEGIN not in lost.console:
                raise
            before = lost.console.rpartition(BEGIN)[2]
        else:
            raise LostVM(f"the guest did not hibernate: {result.verdict}", result.output)
        return replace(boot(), before=before)


def _drivers(kernel: Kernel) -> dict[str, bytes]:
    """Return the modules by which a guest sees its disk, in loading order."""
    files: dict[str, bytes] = {}
    for driver in DRIVERS:
        files |= kernel.own_module(driver)
    return {"drivers/order": "\n".join(files).encode()} | {
        f"drivers/{name}": data for name, data in files.items()
    }
