"""Run QEMU guests whose whole system is their initramfs, for the engines `virtual` and `sleeper`.

A guest returns its files through a serial port or shared memory.
"""

import os
import struct
import subprocess
from pathlib import Path

from ..base.background import guarded
from ..base.cache import temporary
from ..build import native
from ..build.plugins import option
from ..kernels.kernels import Kernel
from . import image, limit, monitor, qemu
from .initramfs import Initramfs
from .options import PARAMETERS, Guest
from .result import Result

SHARED_MB = 64  # maximum that `put` can return, headers included
SHARED_DEVICE = "/sys/bus/pci/devices/0000:00:10.0"
PUT_FLAGS = ["-O2", "-static", "-fno-stack-protector", "-fno-pie", "-no-pie"]


def run(kernel: Kernel, script: str, guest: Guest, machine: list[str], boot: Path) -> Result:
    """Run a shell script (busybox sh -e) in a guest of a stock kernel.

    machine: QEMU's options for the kind of machine
    boot:    the kernel's image

    The guest has busybox, `image.PROGRAMS`, and ``put NAME < FILE``, which fills `Result.files`;
    tracefs and debugfs are mounted; the script starts once the clock source is final and the tick
    is in high-resolution mode. A failing script or a splat in the kernel log gives a verdict; a
    guest without a verdict raises LostVM.
    """
    plugins = guest.plugins or {}
    with temporary("apic-timer-vm.") as home:
        initramfs(kernel, script, guest).write(home / "initrd")
        with open(home / "shared", "wb") as shared:
            shared.truncate(SHARED_MB << 20)
        argv = [
            str(qemu.binary()), *machine, "-display", "none",
            "-smp", str(guest.cpus), "-m", str(guest.memory),
            "-serial", f"file:{home}/console", "-serial", f"file:{home}/data",
            "-object", f"memory-backend-file,id=shared,size={SHARED_MB}M,share=on,"
            f"mem-path={home}/shared",
            "-device", "ivshmem-plain,memdev=shared,addr=10.0",
            *(guest.devices or ()), *monitor.options(),
            "-kernel", str(boot), "-initrd", f"{home}/initrd",
            "-append", f"console=ttyS0 quiet {PARAMETERS} {guest.append}".strip(),
        ]  # fmt: skip
        for name, file in plugins.items():
            argv += ["-plugin", option(file, home / f"plugin-{name}")]
        reason = _end(argv, home, guest.timeout)
        found = _shared((home / "shared").read_bytes())
        for name in plugins:
            written = home / f"plugin-{name}"
            found[name] = written.read_bytes() if written.exists() else b""
        return image.result(home / "console", home / "data", found, reason)


def _end(argv: list[str], home: Path, timeout: float) -> str:
    """Run QEMU to its end, for at most `timeout` s; return the reason in case there is no verdict.

    For a guest that has to be killed, the reason says what it was doing.
    """
    with open(home / "said", "w+") as said:
        vm = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                              cwd=home)  # fmt: skip
        try:
            with guarded(vm):
                status = limit.wait(vm, timeout)
        except subprocess.TimeoutExpired:
            return (
                f"no verdict within {timeout:g} s, for {_cpu_time(vm.pid):.0f} s of which QEMU "
                f"has run\n{monitor.state(home)}"
            )
        finally:
            vm.kill()
            vm.wait()
        said.seek(0)
        return f"QEMU exit status {status}: {said.read()}" if status else "no verdict"


def _cpu_time(pid: int) -> float:
    """Return the CPU time of a process in seconds, over all its threads: see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def initramfs(kernel: Kernel, script: str, guest: Guest) -> Initramfs:
    """Return the initramfs of such a guest: see `run`."""
    own = {"usr/bin/tell": "tell.c"} if guest.plugins else {}
    own |= {"usr/bin/put.bin": "put.c", "usr/bin/timex": "timex.c"}
    programs = {name: native.compiled(kernel, source, PUT_FLAGS) for name, source in own.items()}
    return image.build(
        script, guest.modules, {**guest.files, **programs},
        # Not write-combining where the kernel has no PAT.
        put=f"file={SHARED_DEVICE}/resource2_wc; [ -e $file ] || file=${{file%_wc}}\n"
        f'exec put.bin $file {SHARED_MB} "$1"',
        setup=f"echo 1 >{SHARED_DEVICE}/enable",
    )  # fmt: skip


def _shared(memory: bytes) -> dict[str, bytes]:
    """Return the files that guest/put.c wrote, by name."""
    files, at = {}, 0
    while at + 64 <= len(memory):
        length, name = struct.unpack_from("<Q56s", memory, at)
        if not length:
            break
        start = at + 64
        files[name.rstrip(b"\0").decode()] = memory[start : start + length - 1]
        at = start + (length - 1 + 7) // 8 * 8
    return files
