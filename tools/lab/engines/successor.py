"""Boot a kernel in which another one takes over without a reset: by kexec, or after a crash.

The hardware is then as the first kernel has left it. In real time; CPUs are threads.
"""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..build import unpacked, userland
from ..kernels.kernels import Kernel
from . import diskless, qemu
from .result import Result

PACKAGES = ["kexec-tools"]
KEXEC = "usr/sbin/kexec"
# A kernel that boots counts ticks while the TSC goes on for some 50 ms, and panics when too few
# have come; the TSC is this machine's, which may hold QEMU up for longer.
PARAMETERS = "no_timer_check"
# Without what only a first kernel may have.
LOAD = """\
#!/bin/sh
line=$(sed 's/crashkernel=[^ ]*//' /proc/cmdline)
exec kexec "$1" -s /successor/kernel --initrd=/successor/initrd --command-line="$line $2"
"""


def run(
    kernel: Kernel,
    script: str,
    *,
    then: str,
    modules: Iterable[Path] = (),
    files: Mapping[str, bytes | Path] | None = None,
    cpus: int = 2,
    memory: int = 1024,
    append: str = "",
    timeout: float = 300,
) -> Result:
    """Run a shell script in a guest of a stock kernel, and another one in its successor.

    script: has ``successor MODE [PARAMETERS]``, which loads the same kernel with what `kexec`
            calls MODE: -l for ``kexec -e``, -p for a crash (wants crashkernel=); it has to end
            by one of these
    then:   the script whose verdict counts, in the second kernel
    others: see `diskless.run`; modules and files are in both
    """
    modules = list(modules)
    root = unpacked.unpacked("kexec", userland.SUITES, PACKAGES)
    with tempfile.TemporaryDirectory(prefix="apic-timer-successor.") as temp:
        initrd = Path(temp) / "initrd"
        diskless.initramfs(kernel, then, modules, files).write(initrd)
        first = {name: root / name for name in (KEXEC, *unpacked.libraries(root, KEXEC))}
        first |= {"usr/bin/successor": LOAD.encode()}
        first |= {"successor/kernel": kernel.vmlinuz, "successor/initrd": initrd}
        return diskless.run(
            kernel, script, machine=qemu.real_time(), boot=kernel.vmlinuz,
            modules=modules, files={**(files or {}), **first}, cpus=cpus, memory=memory,
            append=f"{PARAMETERS} {append}", timeout=timeout,
        )  # fmt: skip
