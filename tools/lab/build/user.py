"""Programs for /dev/apic_timer, compiled once by a kernel's own compiler, without libc."""

import hashlib
from pathlib import Path

from ..base.cache import locked
from ..base.errors import BuildError
from ..kernels.chroot import run_in
from ..kernels.kernels import Kernel

TREE = Path(__file__).parents[3]
HEADERS = ("include/uapi", "user", "tests/user")
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-nostdlib", "-ffreestanding", "-static",
         "-fno-stack-protector", "-fno-pie", "-no-pie", "-mgeneral-regs-only",
         "-Iinclude/uapi", "-Iuser", "-Itests/user", "-Itests/user/stubs")  # fmt: skip


def program(kernel: Kernel, name: str, *flags: str) -> Path:
    """Compile tests/user/NAME.c with gcc; return the program. BuildError if it does not compile.

    flags: further options, such as "-m32". It is kept in the kernel's directory of the cache.
    """
    files = {f"tests/user/{name}.c": (TREE / f"tests/user/{name}.c").read_bytes()}
    for directory in HEADERS:
        for header in sorted((TREE / directory).rglob("*.h")):
            files[str(header.relative_to(TREE))] = header.read_bytes()
    key = hashlib.sha256(repr((sorted(files.items()), FLAGS, flags)).encode()).hexdigest()[:12]
    home = kernel.root / "lab" / f"user-{name}-{key}"
    with locked(f"build-{kernel.release}"):
        if not (home / name).exists():
            for path, data in files.items():
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                (home / path).write_bytes(data)
            inside = f"/lab/{home.name}"
            command = ["cd", inside, "&&", "gcc", *FLAGS, *flags, "-o", f"{name}.new",
                       f"tests/user/{name}.c"]  # fmt: skip
            done = run_in(kernel.root, ["/bin/sh", "-c", " ".join(command)])
            if done.returncode:
                raise BuildError(f"tests/user/{name}.c:\n{done.stdout}")
            (home / f"{name}.new").rename(home / name)
    return home / name
