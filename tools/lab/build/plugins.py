"""This tree's QEMU plug-ins, plugins/*.c: they observe a guest in virtual time from outside.

Debian does not package the header of their interface: plugins/abi.h declares it. A plug-in is
built once for each version of the lab's QEMU, and then loaded once as a check.
"""

import hashlib
import re
import subprocess
from pathlib import Path

from ..base.cache import cache_dir, locked
from ..base.errors import BuildError, LabError
from ..base.progress import spending
from ..kernels import kernels, lock
from ..kernels.chroot import run_in
from . import tool, userland

SOURCES = Path(__file__).parents[1] / "plugins"
COMMON = "plugin.c"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC",
         "-shared", "-nostdlib"]  # fmt: skip


def plugin(name: str, extra: tuple[str, ...] = ()) -> Path:
    """Return the plug-in NAME, built from NAME.c and the code common to all.

    extra: more flags of the compiler

    BuildError if it does not compile, LabError if the lab's QEMU does not accept it.
    """
    kernel, sysroot, emulator = kernels.ensure(tool.SERIES), tool.libc(), userland.root()
    made_of = [lock.identity(root) for root in (kernel.root, sysroot, emulator)]
    key = hashlib.sha256(repr((FLAGS, extra, made_of)).encode())
    for file in sorted(SOURCES.glob("*.[ch]")):
        key.update(f"{file.name}\0".encode() + file.read_bytes())
    target = cache_dir("plugins") / f"{name}-{key.hexdigest()[:16]}.so"
    with locked("plugins"):
        if target.exists():
            return target
        bound = {sysroot: "lab/sysroot", SOURCES: "lab/plugins", target.parent: "lab/output"}
        for directory in bound.values():
            (kernel.root / directory).mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".new")
        with spending("building plug-ins"):
            done = run_in(kernel.root, [
                "gcc", "--sysroot=/lab/sysroot", *FLAGS, *extra, "-o", f"/lab/output/{fresh.name}",
                *(f"/lab/plugins/{source}" for source in sources(name)),
            ], bound)  # fmt: skip
        if done.returncode:
            raise BuildError(f"plug-in {name}:\n{done.stdout}")
        refused = load(fresh)
        if refused:
            fresh.unlink()
            raise LabError(f"the lab's QEMU rejects the plug-in {name}: {refused}")
        fresh.rename(target)
    return target


def sources(name: str) -> list[str]:
    """Return the files of a plug-in: its own, the common one, and any NAME-*.c."""
    return [f"{name}.c", COMMON, *sorted(file.name for file in SOURCES.glob(f"{name}_*.c"))]


def load(file: Path, output: Path = Path("/dev/null")) -> str:
    """Load a plug-in into the lab's QEMU, without a machine; return why it is rejected, or ""."""
    root = userland.root()
    done = subprocess.run(
        [*userland.loader(), root / "usr/bin/qemu-system-x86_64", "-machine", "none", "-accel",
         "tcg", "-nodefaults", "-display", "none", "-S", "-monitor", "stdio", "-plugin",
         option(file, output)],
        input="quit\n", capture_output=True, text=True,
    )  # fmt: skip
    prefix = re.compile(rf"qemu\S*: Could not load plugin {re.escape(str(file))}: ")
    said = "; ".join(prefix.sub("", line) for line in done.stderr.splitlines() if line)
    return said or ("it exits without a message" if done.returncode else "")


def option(file: Path, output: Path | None = None) -> str:
    """Return the value of QEMU's option -plugin; a comma within a name is written twice."""
    parts = [file] if output is None else [file, f"out={output}"]
    return ",".join(str(part).replace(",", ",,") for part in parts)
