"""The small programs in guest/ that no package has, compiled once by a kernel's own compiler."""

import hashlib
from pathlib import Path

from ..base.cache import locked
from ..base.errors import BuildError
from ..kernels.chroot import run_in
from ..kernels.kernels import Kernel

GUEST = Path(__file__).parents[1] / "engines/guest"


def compiled(kernel: Kernel, source: str, flags: list[str]) -> Path:
    """Compile guest/SOURCE with gcc, without libc's headers and start files; return the result.

    It is kept in the kernel's directory of the cache. BuildError if it does not compile.
    """
    data = (GUEST / source).read_bytes()
    stem, suffix = source.split(".")
    name = f"{stem}-{hashlib.sha256(repr((data, flags)).encode()).hexdigest()[:8]}"
    target = kernel.root / "lab" / name
    with locked(f"build-{kernel.release}"):
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.with_suffix(f".{suffix}").write_bytes(data)
            done = run_in(kernel.root, [
                "gcc", "-Wall", "-Wextra", "-Werror", "-nostdlib", "-ffreestanding", *flags,
                "-o", f"/lab/{name}.new", f"/lab/{name}.{suffix}",
            ])  # fmt: skip
            if done.returncode:
                raise BuildError(f"guest/{source}:\n{done.stdout}")
            target.with_suffix(".new").rename(target)
    return target
