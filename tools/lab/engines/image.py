"""Guests whose whole system is their initramfs: its contents, and the results they leave behind.

The engines differ in how bytes leave the guest. The guest's first process runs /setup, a piece of
shell from the engine, before anything else; ``put NAME`` is the engine's too.
"""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..base.errors import LostVM
from ..build import userland
from ..build.native import GUEST
from . import splats
from .initramfs import Initramfs
from .result import Result

PROGRAMS = ("trace-cmd", "cyclictest", "hackbench")  # in addition to busybox
MARK = "@lab@ verdict "


def build(
    script: str,
    modules: Iterable[Path],
    files: Mapping[str, bytes | Path],
    *,
    put: str,
    setup: str,
) -> Initramfs:
    """Return the initramfs of a guest that runs a shell script (busybox sh -e).

    modules: .ko files of this machine, found in the guest as $MODULES/NAME.ko, not loaded
    files:   guest path (no leading /) -> contents, or a file of this machine
    put:     shell script that hands over its standard input as the file $1
    setup:   shell commands that prepare the second serial port and what `put` needs
    """
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
    image.file("setup", setup.encode())
    image.file("usr/bin/put", f"#!/bin/sh\n{put}\n".encode(), 0o755)
    image.file("splats", "".join(f"{p}\n" for p in splats.PATTERNS).encode())
    image.file("script", script.encode())
    for module in modules:
        image.file(f"modules/{module.name}", module.read_bytes())
    for name, data in files.items():
        image.file(name, data if isinstance(data, bytes) else data.read_bytes(), 0o755)
    return image


def result(console: Path, data: Path, files: dict[str, bytes], reason: str) -> Result:
    """Return a guest's result: the output of its serial ports, and the files that it `put`.

    LostVM, with this reason, if it gave no verdict.
    """
    texts = [_text(path) for path in (console, data)]
    output, found, verdict = texts[1].rpartition(MARK)
    if not found or not verdict.endswith("\n"):
        raise LostVM(reason, *texts)
    verdict = verdict.strip()
    # Under lockdown a guest can `put` nothing.
    log = files.pop("dmesg", b"").decode(errors="replace")
    return Result(splats.judge(verdict, log) if log else verdict, output, log, texts[0], files)


def _text(path: Path) -> str:
    data = path.read_bytes() if path.exists() else b""
    return data.decode(errors="replace").replace("\r\n", "\n")
