"""Boot a kernel by UEFI firmware that knows some certificates, in real time.

Modules that are signed with the key of a certificate in the firmware's `db` are the kernel's to
load with module.sig_enforce=1: Debian's kernels trust what the owner of the machine put there.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..base.errors import LabError
from ..build import unpacked, userland
from ..kernels.kernels import Kernel
from . import diskless, qemu
from .result import Result

PACKAGES = ["ovmf"]
OWNER = "8be4df61-93ca-11d2-aa0d-00e098032b8c"  # of the certificates; any GUID will do


def run(
    kernel: Kernel,
    script: str,
    *,
    certificates: Iterable[Path] = (),
    modules: Iterable[Path] = (),
    files: Mapping[str, bytes | Path] | None = None,
    cpus: int = 1,
    memory: int = 512,
    append: str = "",
    timeout: float = 300,
) -> Result:
    """Run a shell script in a guest of a stock kernel: see `diskless.run`.

    certificates: X.509 in PEM or DER form, for the firmware's `db`
    """
    firmware = unpacked.unpacked("ovmf", userland.SUITES, PACKAGES) / "usr/share/OVMF"
    with tempfile.TemporaryDirectory(prefix="apic-timer-uefi.") as temp:
        variables = Path(temp) / "variables"
        _write(firmware / "OVMF_VARS_4M.fd", variables, certificates)
        flash = [f"unit=0,readonly=on,file={firmware}/OVMF_CODE_4M.fd", f"unit=1,file={variables}"]
        drives = [o for part in flash for o in ("-drive", f"if=pflash,format=raw,{part}")]
        return diskless.run(
            kernel, script, machine=[*qemu.real_time(), *drives], boot=kernel.vmlinuz,
            modules=modules, files=files, cpus=cpus, memory=memory, append=append,
            timeout=timeout,
        )  # fmt: skip


def _write(empty: Path, variables: Path, certificates: Iterable[Path]) -> None:
    """Write a copy of the firmware's empty variables with certificates in `db`."""
    added = [word for c in certificates for word in ("--add-db", OWNER, str(c))]
    done = subprocess.run(
        [Path(sys.prefix) / "bin/virt-fw-vars", "--input", empty, "--output", variables, *added],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"the certificates cannot be had in the firmware:\n{done.stdout}")
