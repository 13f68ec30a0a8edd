"""Files for guests with a network: `ip` and `tc`, a sender, the kernel's own qdiscs."""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from ..base.cache import locked
from ..base.errors import BuildError
from ..kernels.chroot import run_in
from ..kernels.kernels import Kernel
from . import build, iproute2, native

PLUGIN = "usr/lib/x86_64-linux-gnu/tc/q_apic.so"  # where Debian's tc looks
# Its sources, and the Makefile with its rule.
SOURCES = ("Makefile", "tools/tc", "include/uapi")

SENDER_FLAGS = ["-O2", "-static", "-fno-stack-protector", "-fno-pie", "-no-pie"]


def files(kernel: Kernel) -> dict[str, Path]:
    """Return the programs, in the engines' form: guest path -> file.

    `udpsend` is explained in engines/guest/udpsend.c.
    """
    return {
        **iproute2.files(),
        PLUGIN: plugin(kernel),
        "usr/bin/udpsend": native.compiled(kernel, "udpsend.c", SENDER_FLAGS),
    }


def own_modules(kernel: Kernel, names: Iterable[str]) -> dict[str, bytes]:
    """Return modules of the kernel's own package and those that they need, in loading order.

    They are in the engines' form; built-in modules and duplicates are left out.
    """
    return {f"modules/{file}": data
            for name in names for file, data in kernel.own_module(name).items()}  # fmt: skip


def plugin(kernel: Kernel) -> Path:
    """Return tc's plug-in q_apic.so, built by a kernel's own compiler: the same bytes anywhere."""
    every = [f for name in SOURCES for f in _files(build.TREE / name)]
    key = hashlib.sha256()
    for file in every:
        key.update(f"{file.relative_to(build.TREE)}\0".encode() + file.read_bytes())
    name = f"tc-{key.hexdigest()[:8]}"
    target = kernel.root / "lab" / name / "build/tc/q_apic.so"
    with locked(f"build-{kernel.release}"):
        if not target.exists():
            for file in every:
                copy = kernel.root / "lab" / name / file.relative_to(build.TREE)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            done = run_in(kernel.root, ["make", "-C", f"/lab/{name}", "CC=gcc",
                                        "build/tc/q_apic.so"])  # fmt: skip
            if done.returncode:
                raise BuildError(f"tc's plug-in:\n{done.stdout}")
    return target


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
