"""Boot a kernel with several CPUs through virtme-ng, on this machine's root file system.

CPUs are emulated by threads: races are real, times mean nothing. The guest sees this machine's
files (read-only; what it writes is forgotten) and shares one directory with it.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..base.background import guarded
from ..base.cache import temporary
from ..base.errors import LabError, LostVM
from ..base.progress import say
from ..kernels.kernels import Kernel
from ..kernels.vmlinux import bootable
from . import qemu, splats
from .options import PARAMETERS, Guest, engine
from .result import Result

GUEST = Path(__file__).parent / "guest"
QUIET = "loglevel=1"  # guest/smp looks for this word
BOOT = 240  # s of wall time until the script begins, on a busy machine
BOOT_KASAN = 900  # the same for a kernel that checks every memory access

# virtme-ng adds a controller for each of six serial ports. By default a controller has 64 queues,
# and QEMU polls the file descriptors of all queues whenever any of its devices has something to do:
# a guest that starts many processes then takes a quarter more of its host's time.
FEW_QUEUES = ["-global", "virtio-serial-device.max_ports=2"]

# The extended destination format needs the interrupt remapping of an IOMMU.
X2APIC = [
    "-machine", "q35,kernel-irqchip=split", "-device", "intel-iommu,intremap=on,eim=on",
]  # fmt: skip

# Functions that get kernel, guest and reason before a guest is started again. It is lost if one of
# them returns False.
ask_again: list[Callable[[Kernel, Guest, str], bool]] = []


@engine(cpus=2, memory=1024, timeout=300, x2apic=False, vendor="", devices=(), follow=None)
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script (sh -e, as root) in an SMP guest of a stock kernel.

    What the script leaves in $SHARED is `Result.files`; ``put NAME < FILE`` works as in a
    virtual-time guest. All programs of this machine are available; tracefs and debugfs are mounted.
    A failing script or a splat in the kernel log gives a verdict; a guest without a verdict raises
    LostVM. Now and then QEMU's threads hang while a stock kernel boots: a guest that does not reach
    the script within BOOT seconds is started a second time, see `may_boot_again`.
    """
    with temporary("apic-timer-vm.") as home:
        _prepare(home, script, guest.modules, guest.files)
        vendor = f",vendor={guest.vendor}" if guest.vendor else ""
        options = [
            "-cpu",
            f"{qemu.CPU}{',+x2apic' * guest.x2apic}{vendor}",
            "-bios",
            "qboot.rom",
            "-no-reboot",
            *FEW_QUEUES,
            *(X2APIC if guest.x2apic else []),
            *guest.devices,
        ]
        parameters = f"{PARAMETERS} {splats.LONG_LOG} {guest.append}"
        if guest.x2apic:
            parameters += " intel_iommu=on"
        if kernel.has("CONFIG_PROVE_RAW_LOCK_NESTING"):
            # Printing in an interrupt takes the console's sleeping locks; lockdep would report the
            # first such message and then turn itself off. The log is complete all the same. At
            # level 1 an oops and a panic are still printed; at 0 console_verbose() does nothing.
            parameters += f" {QUIET}"
        argv = [
            str(_vng()), "--verbose", "--run", str(bootable(kernel)), "--disable-kvm",
            "--disable-microvm", "--force-9p", "--cpus", str(guest.cpus),
            "--memory", f"{guest.memory}M", "--user", "root",
            "--qemu", str(qemu.binary()), f"--qemu-opts={shlex.join(options)}",
            f"--append={parameters.strip()}", f"--rwdir={home}",
            "--exec", shlex.join(["sh", f"{GUEST}/smp", str(home)]),
        ]  # fmt: skip
        begun = home / "lab/output"
        boot = BOOT_KASAN if kernel.has("CONFIG_KASAN") else BOOT
        console, reason = _boot(argv, guest, boot, begun)
        if not begun.exists() and may_boot_again(kernel, guest, console, reason):
            console, reason = _boot(argv, guest, boot, begun)
        return _result(home, console, reason)


def may_boot_again(kernel: Kernel, guest: Guest, console: str, reason: str) -> bool:
    """Tell whether to start a guest again that has not reached its script; say so.

    Not if a kernel that is built here has reported a fault of its own, other than a stall: our
    patches run by then, and the guest is lost. A stock kernel runs nothing of ours before the
    script.
    """
    found = splats.find(console)
    if found and not kernel.stock and not splats.is_stall(found[0]):
        return False
    if found:
        reason = f"{reason}: {found[0].strip()}"
    if not all(ask(kernel, guest, reason) for ask in ask_again):
        return False
    say("lab", f"{kernel.release} did not boot, restarting it: {reason}")
    return True


def _vng() -> Path:
    """Find virtme-ng in the environment of Python packages that runs us."""
    vng = Path(sys.prefix) / "bin" / "vng"
    if not vng.exists():
        raise LabError("virtme-ng is missing: run `tools/setup test`, use the Python it made")
    return vng


def _prepare(home: Path, script: str, modules, files) -> None:
    lab = home / "lab"
    for name in ("files", "lab/modules", "lab/bin"):
        (home / name).mkdir(parents=True)
    (lab / "script").write_text(script)
    (lab / "splats").write_text("".join(f"{p}\n" for p in splats.PATTERNS))
    (lab / "bin/put").write_text('#!/bin/sh\nexec cat >"$SHARED/$1"\n')
    (lab / "bin/put").chmod(0o755)
    for module in modules:
        shutil.copyfile(module, lab / "modules" / module.name)
    for name, data in files.items():
        target = home / "files" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data if isinstance(data, bytes) else data.read_bytes())
        target.chmod(0o755)


def _boot(argv: list[str], guest: Guest, boot: float, begun: Path) -> tuple[str, str]:
    """Run virtme-ng; return the console, and the reason in case there is no verdict.

    boot:  maximum seconds until it is up
    begun: a file that the guest makes then
    """
    path = f"{sys.prefix}/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    with tempfile.TemporaryFile() as out:
        vm = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/",
                              env={**os.environ, "PATH": path}, start_new_session=True)  # fmt: skip
        try:
            with guarded(vm, group=True):
                status = _wait(vm, out, guest, boot, begun)
            reason = f"no verdict; virtme-ng's exit status was {status}"
        except subprocess.TimeoutExpired as expired:
            reason = f"no verdict within {expired.timeout:g} s"
        finally:
            # The session contains only QEMU, which may survive virtme-ng.
            with suppress(ProcessLookupError):
                os.killpg(vm.pid, signal.SIGKILL)
            vm.wait()
        out.seek(0)
        return out.read().decode(errors="replace").replace("\r\n", "\n"), reason


def _wait(vm: subprocess.Popen, out, guest: Guest, boot: float, begun: Path) -> int:
    """Wait for an exit status; subprocess.TimeoutExpired if there is none in time."""
    start, position, rest = time.monotonic(), 0, b""
    while True:
        over = vm.poll() is not None
        # pread() does not move the file offset, at which the VM writes.
        while guest.follow and (data := os.pread(out.fileno(), 65536, position)):
            position += len(data)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                guest.follow(line.decode(errors="replace").rstrip("\r"))
        if over:
            return vm.returncode
        limit = guest.timeout if begun.exists() else min(guest.timeout, boot)
        if time.monotonic() - start > limit:
            raise subprocess.TimeoutExpired(vm.args, limit)
        time.sleep(0.2)


def _result(home: Path, console: str, reason: str) -> Result:
    def text(name: str) -> str:
        path = home / "lab" / name
        return path.read_bytes().decode(errors="replace") if path.exists() else ""

    verdict = text("verdict").strip()
    if not verdict:
        raise LostVM(reason, console, text("output"))
    every = sorted(p for p in (home / "files").rglob("*") if p.is_file())
    files = {str(p.relative_to(home / "files")): p.read_bytes() for p in every}
    log = text("dmesg")
    return Result(splats.judge(verdict, log), text("output"), log, console, files)
