"""Boot a kernel that another one succeeds without a reset: by kexec, or after a crash.

The hardware is then in the state that the first kernel left. In real time; CPUs are threads.
"""

from dataclasses import replace

from ..base.cache import temporary
from ..build import userland
from ..kernels import unpacked
from ..kernels.kernels import Kernel
from . import diskless, qemu
from .options import NEEDED, Guest, engine
from .result import Result

PACKAGES = ["kexec-tools"]
KEXEC = "usr/sbin/kexec"
# A booting kernel counts ticks for some 50 ms of TSC time, and panics if there were too few; the
# TSC is this machine's, which may hold QEMU up for longer.
PARAMETERS = "no_timer_check"
# Without parameters that only a first kernel may have.
LOAD = """\
#!/bin/sh
line=$(sed 's/crashkernel=[^ ]*//' /proc/cmdline)
exec kexec "$1" -s /successor/kernel --initrd=/successor/initrd --command-line="$line $2"
"""


@engine(cpus=2, memory=1024, timeout=300, then=NEEDED)
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in a guest of a stock kernel, and another one in the succeeding kernel.

    The first script has ``successor MODE [PARAMETERS]``, which loads the same kernel with MODE as
    an option of `kexec`: -l for ``kexec -e``, -p for a crash (needs crashkernel=). It must end by
    one of these. The second script's verdict counts. Both have modules and files; see
    `diskless.run`.
    """
    root = unpacked.unpacked("kexec", userland.SUITES, PACKAGES)
    with temporary("apic-timer-successor.") as temp:
        initrd = temp / "initrd"
        diskless.initramfs(kernel, guest.then, guest).write(initrd)
        first = {name: root / name for name in (KEXEC, *unpacked.libraries(root, KEXEC))}
        first |= {"usr/bin/successor": LOAD.encode()}
        first |= {"successor/kernel": kernel.vmlinuz, "successor/initrd": initrd}
        guest = replace(
            guest, files={**guest.files, **first}, append=f"{PARAMETERS} {guest.append}"
        )
        return diskless.run(kernel, script, guest, qemu.real_time(), boot=kernel.vmlinuz)
