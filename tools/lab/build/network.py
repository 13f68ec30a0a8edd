"""What a guest with a network takes along: `ip` and `tc`, a sender, the kernel's own qdiscs."""

from collections.abc import Iterable
from pathlib import Path

from ..kernels.kernels import Kernel
from . import iproute2, native

SENDER_FLAGS = ["-O2", "-static", "-fno-stack-protector", "-fno-pie", "-no-pie"]


def files(kernel: Kernel) -> dict[str, Path]:
    """Return the programs, as engines take files: guest path -> file.

    `udpsend` is explained in engines/guest/udpsend.c.
    """
    return {
        **iproute2.files(),
        "usr/bin/udpsend": native.compiled(kernel, "udpsend.c", SENDER_FLAGS),
    }


def own_modules(kernel: Kernel, names: Iterable[str]) -> dict[str, bytes]:
    """Return modules of the kernel's own package and those they need, in the order to load.

    As engines take files; what is built in, and what is there twice, is left out.
    """
    return {f"modules/{file}": data
            for name in names for file, data in kernel.own_module(name).items()}  # fmt: skip
