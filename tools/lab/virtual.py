"""Boot a kernel in virtual time, run a script in it, give back what it said.

One instruction is one nanosecond and one TSC cycle, idle time is skipped, and the same run twice
gives the same bytes. Nothing the guest does may depend on this machine: all it needs is in its
initramfs, and what it hands back goes through a serial port or shared memory.
"""

import hashlib
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import qemu, splats, userland
from .cache import locked
from .chroot import run_in
from .errors import BuildError, LostVM
from .initramfs import Initramfs
from .kernels import Kernel
from .result import Result
from .vmlinux import vmlinux

GUEST = Path(__file__).parent / "guest"
SHARED_MB = 64  # most that `put` can hand back, headers included
SHARED_DEVICE = "/sys/bus/pci/devices/0000:00:10.0/resource2_wc"
PROGRAMS = ("trace-cmd", "cyclictest", "hackbench")  # besides busybox
MARK = "@lab@ verdict "


def run(
    kernel: Kernel,
    script: str,
    *,
    modules: Iterable[Path] = (),
    files: Mapping[str, bytes | Path] | None = None,
    cpus: int = 1,
    memory: int = 512,
    seed: int = 42,
    append: str = "",
    timeout: float = 120,
) -> Result:
    """Run a shell script (busybox sh -e) in a virtual-time guest of a stock kernel.

    modules: .ko files of this machine, found in the guest as $MODULES/NAME.ko, not loaded
    files:   guest path (no leading /) -> contents, or a file of this machine
    memory:  MiB
    seed:    another one gives an independent sample
    append:  further kernel parameters
    timeout: seconds of wall time

    The guest has busybox, PROGRAMS, and ``put NAME < FILE`` which fills `Result.files`; tracefs
    and debugfs are mounted; the script starts once the tick is in high-resolution mode. A script
    that fails or a kernel that complains is a verdict; a guest that gives none raises LostVM.
    """
    with tempfile.TemporaryDirectory(prefix="apic-timer-vm.") as temp:
        home = Path(temp)
        _image(kernel, script, modules, files or {}).write(home / "initrd")
        with open(home / "shared", "wb") as shared:
            shared.truncate(SHARED_MB << 20)
        argv = [
            str(qemu.binary()), *qemu.virtual_time(seed), "-display", "none",
            "-smp", str(cpus), "-m", str(memory),
            "-serial", f"file:{home}/console", "-serial", f"file:{home}/data",
            "-object", f"memory-backend-file,id=shared,size={SHARED_MB}M,share=on,"
            f"mem-path={home}/shared",
            "-device", "ivshmem-plain,memdev=shared,addr=10.0",
            "-kernel", str(vmlinux(kernel)), "-initrd", f"{home}/initrd",
            "-append", f"console=ttyS0 quiet nokaslr {splats.PARAMETERS} {append}".strip(),
        ]  # fmt: skip
        reason = "no verdict"
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=timeout)  # fmt: skip
            if done.returncode:
                reason = f"QEMU exit status {done.returncode}: {done.stdout.decode()}"
        except subprocess.TimeoutExpired:
            reason = f"no verdict within {timeout:g} s"
        return _result(home, reason)


def _image(kernel: Kernel, script: str, modules, files) -> Initramfs:
    image = Initramfs()
    base = userland.root()
    image.file("usr/bin/busybox", (base / "usr/bin/busybox").read_bytes(), 0o755)
    for name in PROGRAMS:
        image.program(f"usr/bin/{name}")
    for name in subprocess.check_output([base / "usr/bin/busybox", "--list"], text=True).split():
        image.link(f"bin/{name}", "/usr/bin/busybox")
    for name in ("dev", "proc", "sys", "tmp", "modules", "run"):
        image.directory(name)
    image.device("dev/console", 5, 1)
    image.file("init", (GUEST / "init").read_bytes(), 0o755)
    image.file("usr/bin/put.bin", _put(kernel).read_bytes(), 0o755)
    text = f'#!/bin/sh\nexec put.bin {SHARED_DEVICE} {SHARED_MB} "$1"\n'
    image.file("usr/bin/put", text.encode(), 0o755)
    image.file("splats", "".join(f"{p}\n" for p in splats.PATTERNS).encode())
    image.file("script", script.encode())
    for module in modules:
        image.file(f"modules/{module.name}", module.read_bytes())
    for name, data in files.items():
        image.file(name, data if isinstance(data, bytes) else data.read_bytes(), 0o755)
    return image


def _put(kernel: Kernel) -> Path:
    """Compile guest/put.c with the kernel's own compiler, once."""
    source = (GUEST / "put.c").read_bytes()
    name = f"put-{hashlib.sha256(source).hexdigest()[:8]}"
    target = kernel.root / "lab" / name
    with locked(f"build-{kernel.release}"):
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.with_suffix(".c").write_bytes(source)
            done = run_in(kernel.root, [
                "gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-nostdlib",
                "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie", "-o",
                f"/lab/{name}.new", f"/lab/{name}.c",
            ])  # fmt: skip
            if done.returncode:
                raise BuildError(f"guest/put.c:\n{done.stdout}")
            target.with_suffix(".new").rename(target)
    return target


def _result(home: Path, reason: str) -> Result:
    console, data = (_text(home / name) for name in ("console", "data"))
    output, found, verdict = data.rpartition(MARK)
    if not found or not verdict.endswith("\n"):
        raise LostVM(reason, f"{console}\n--- data channel ---\n{data}")
    files = _shared((home / "shared").read_bytes())
    log = files.pop("dmesg", b"").decode(errors="replace")
    return Result(verdict.strip(), output, log, console, files)


def _text(path: Path) -> str:
    data = path.read_bytes() if path.exists() else b""
    return data.decode(errors="replace").replace("\r\n", "\n")


def _shared(memory: bytes) -> dict[str, bytes]:
    """Take apart what guest/put.c wrote."""
    files, at = {}, 0
    while at + 64 <= len(memory):
        length, name = struct.unpack_from("<Q56s", memory, at)
        if not length:
            break
        start = at + 64
        files[name.rstrip(b"\0").decode()] = memory[start : start + length - 1]
        at = start + (length - 1 + 7) // 8 * 8
    return files
