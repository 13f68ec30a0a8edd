"""Boot a kernel by UEFI firmware that has certificates, in real time.

With module.sig_enforce=1 the kernel loads modules signed with the key of a certificate in the
firmware's `db`: Debian's kernels trust the certificates that the machine's owner put there.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ..base.cache import temporary
from ..base.errors import LabError
from ..build import userland
from ..kernels import unpacked
from ..kernels.kernels import Kernel
from . import diskless, qemu
from .options import Guest, engine
from .result import Result

PACKAGES = ["ovmf"]
OWNER = "8be4df61-93ca-11d2-aa0d-00e098032b8c"  # of the certificates; any GUID will do


@engine(cpus=1, memory=512, timeout=300, certificates=())
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script in a guest of a stock kernel: see `diskless.run`."""
    firmware = unpacked.unpacked("ovmf", userland.SUITES, PACKAGES) / "usr/share/OVMF"
    with temporary("apic-timer-uefi.") as temp:
        variables = temp / "variables"
        _write(firmware / "OVMF_VARS_4M.fd", variables, guest.certificates)
        flash = [f"unit=0,readonly=on,file={firmware}/OVMF_CODE_4M.fd", f"unit=1,file={variables}"]
        drives = [o for part in flash for o in ("-drive", f"if=pflash,format=raw,{part}")]
        machine = [*qemu.real_time(), *drives]
        return diskless.run(kernel, script, guest, machine, boot=kernel.vmlinuz)


def _write(empty: Path, variables: Path, certificates: Iterable[Path]) -> None:
    """Write a copy of the firmware's empty variables with certificates in `db`."""
    added = [word for c in certificates for word in ("--add-db", OWNER, str(c))]
    done = subprocess.run(
        [Path(sys.prefix) / "bin/virt-fw-vars", "--input", empty, "--output", variables, *added],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"can't add the certificates to the firmware:\n{done.stdout}")
