"""The program apic-timer as guests run it: static, the same bytes on every machine.

Debian 12's compiler comes with that suite's kernel. The C library to link with, and its headers,
are unpacked separately, because kernels are built without them.
"""

import hashlib
import re
from pathlib import Path

from ..base.cache import cache_dir, locked
from ..base.errors import BuildError
from ..base.progress import spending
from ..kernels import kernels, lock
from ..kernels.chroot import run_in
from ..kernels.unpacked import unpacked
from .build import TREE

SERIES = "6.1"  # its compiler builds the program that guests get
SUITES = kernels.SUITES[SERIES]
ALONE = ["libc6-dev", "linux-libc-dev"]
# Headers that it includes from elsewhere: the version, the modules' devices, the programs' library.
INCLUDED = ("include/linux/apic_version.h", "include/uapi/linux/apic_measure.h",
            "include/uapi/linux/apic_timer.h", "user/apic_timer_user.h")  # fmt: skip


def libc() -> Path:
    """Return the directory with the C library and its headers; LabError if it is not available."""
    return unpacked("libc", SUITES, [], ALONE)


def tool(series: str = SERIES) -> Path:
    """Return the program, built as `make tool` does, by the compiler that comes with a kernel.

    BuildError if it does not compile, or with a warning.
    """
    sources = sorted((TREE / "user/tool").rglob("*.[ch]"))
    flags = re.search(r"^TOOL_CFLAGS := (.*)$", (TREE / "Makefile").read_text(), re.M)[1].split()
    kernel, sysroot = kernels.ensure(series), libc()
    made_of = [lock.identity(root) for root in (kernel.root, sysroot)]
    key = hashlib.sha256(repr((flags, made_of, series)).encode())
    for file in (*sources, *(TREE / name for name in INCLUDED)):
        key.update(f"{file.relative_to(TREE)}\0".encode() + file.read_bytes())
    target = cache_dir("tool") / key.hexdigest()[:16]
    with locked("tool"):
        if not target.exists():
            bound = {sysroot: "lab/sysroot", TREE: "lab/tree", target.parent: "lab/output"}
            for name in bound.values():
                (kernel.root / name).mkdir(parents=True, exist_ok=True)
            with spending("building apic-timer"):
                done = run_in(kernel.root, [
                    "gcc", "--sysroot=/lab/sysroot", *flags, "-Werror", "-static",
                    "-iquote", "/lab/tree/user/tool", "-iquote", "/lab/tree/include/uapi/linux",
                    "-iquote", "/lab/tree/include/linux", "-iquote", "/lab/tree/user",
                    "-I/lab/tree/include/uapi",
                    "-o", f"/lab/output/{target.name}.new",
                    *(f"/lab/tree/{f.relative_to(TREE)}" for f in sources if f.suffix == ".c"),
                ], bound)  # fmt: skip
            if done.returncode:
                raise BuildError(f"apic-timer:\n{done.stdout}")
            (target.parent / f"{target.name}.new").rename(target)
    return target
