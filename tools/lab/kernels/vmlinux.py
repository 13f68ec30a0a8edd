"""Take the uncompressed kernel (ELF) out of a bzImage.

QEMU boots it directly, by the PVH entry point that all Debian kernels have. The guest then need not
decompress itself, which takes an emulated CPU some seconds.
"""

import lzma
import os
import struct
import subprocess
import threading
from pathlib import Path

from ..base.errors import LabError
from .kernels import Kernel


def vmlinux(kernel: Kernel) -> Path:
    """Return the path of the kernel's ELF file, made by the first call. LabError if it fails."""
    target = kernel.root / "lab" / "vmlinux"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        temp = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temp.write_bytes(payload(kernel.vmlinuz.read_bytes()))
        temp.rename(target)
    return target


def bootable(kernel: Kernel) -> Path:
    """Return the file that QEMU boots: the ELF file, or with KASAN the bzImage.

    KASAN also instruments the C code of the PVH entry point, which runs before shadow memory is set
    up: the guest would die without a message.
    """
    return kernel.vmlinuz if kernel.has("CONFIG_KASAN") else vmlinux(kernel)


def payload(image: bytes) -> bytes:
    """Decompress a bzImage's payload; Linux's Documentation/arch/x86/boot.rst has the fields."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    data = image[start : start + length]
    size = struct.unpack("<I", data[-4:])[0]
    if data.startswith(b"\xfd7zXZ\0"):
        elf = lzma.LZMADecompressor().decompress(data)
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        elf = subprocess.run(["zstd", "-dcq"], input=data[:-4], capture_output=True).stdout
    elif data.startswith(b"\x02\x21\x4c\x18"):
        elf = subprocess.run(["lz4", "-dcq"], input=data[:-4], capture_output=True).stdout
    else:
        raise LabError(f"unknown compression of the kernel image: {data[:6].hex()}")
    if len(elf) != size or not elf.startswith(b"\x7fELF"):
        raise LabError("the kernel image does not decompress to an ELF file")
    return elf
