"""Start a kernel without a boot loader, by its PVH entry point.

A boot loader and the kernel's own decompression take minutes of an emulated CPU's time. Instead, a
disk holds the kernel as it must lie in memory, its boot information, and its initramfs. An option
ROM, which the BIOS calls when it is done, loads them and starts the kernel. The boot information
has the form of Xen's public/arch-x86/hvm/start_info.h.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import LabError
from ..build import native
from ..kernels.kernels import Kernel
from ..kernels.vmlinux import vmlinux

ROM = 0xD0000  # where the option ROM is mapped
FIELDS = 8  # offset of its parameters: see guest/boot.S
FLAGS = ["-m32", "-fno-pie", "-no-pie", "-static", "-Wl,--build-id=none", "-Wl,-estart",
         f"-Wl,-Ttext={ROM:#x}", "-Wl,--oformat=binary"]  # fmt: skip
PAGE = 4096
BATCH = 256 * 512  # bytes that the ROM loads at once
CYLINDER = 16 * 63 * 512  # bytes; a disk has a whole number of them
ACPI_SIZE = 64 << 10  # bytes at the end of the memory where the BIOS keeps its tables
MAGIC = 0x336EC578
NOTE_ENTRY = 18  # XEN_ELFNOTE_PHYS32_ENTRY
LOAD, NOTE = 1, 4  # types of program headers
USABLE, RESERVED, ACPI = 1, 2, 3  # types of memory


@dataclass(frozen=True)
class Disk:
    """Layout of a disk made by `write_disk`, in bytes."""

    address: int  # load address of the disk
    size: int
    entry: int  # the kernel's entry point
    info: int  # address of its boot information


def write_disk(target: Path, kernel: Kernel, initrd: bytes, memory: int, command_line: str) -> Disk:
    """Write the disk with a kernel and an initramfs, for a machine with `memory` MiB.

    LabError if they do not fit, or the kernel cannot be started this way.
    """
    elf = vmlinux(kernel).read_bytes()
    start, size, count = struct.unpack_from("<Q14xHH", elf, 0x20)
    # type, offset, physical address, bytes in the file and in memory
    headers = [struct.unpack_from("<I4xQ8xQQQ", elf, start + n * size) for n in range(count)]
    loads = [header[1:] for header in headers if header[0] == LOAD]
    notes = b"".join(elf[h[1] : h[1] + h[3]] for h in headers if h[0] == NOTE)
    address = min(load[1] for load in loads)
    info = _up(max(load[1] + load[3] for load in loads), PAGE)
    top = (memory << 20) - ACPI_SIZE
    told = _info(info, len(initrd), top, command_line.encode())
    used = _up(info - address + len(told) + len(initrd), BATCH)
    if address + used > top:
        raise LabError(f"{memory} MiB of memory are too little for the kernel and its initramfs")
    with open(target, "wb") as out:
        for offset, physical, length, _ in loads:
            out.seek(physical - address)
            out.write(elf[offset : offset + length])
        out.seek(info - address)
        out.write(told + initrd)
        out.truncate(_up(used, CYLINDER))
    return Disk(address, used, _entry(notes), info)


def rom(kernel: Kernel, disk: Disk, apic_base: int = 0) -> bytes:
    """Return the option ROM.

    apic_base: value for the boot CPU's IA32_APIC_BASE, 0 to leave it unchanged
    """
    image = bytearray(native.compiled(kernel, "boot.S", FLAGS).read_bytes())
    struct.pack_into("<IIIII", image, FIELDS, disk.address, disk.size // BATCH, disk.entry,
                     disk.info, apic_base)  # fmt: skip
    # The BIOS checks the size and the sum of all bytes, which must be 0.
    blocks = len(image) // 512 + 1
    image[2] = blocks
    image = image.ljust(blocks * 512, b"\0")
    image[-1] = -sum(image) & 0xFF
    return bytes(image)


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _entry(notes: bytes) -> int:
    """Find the entry point among ELF notes."""
    at = 0
    while at + 12 <= len(notes):
        name, length, kind = struct.unpack_from("<III", notes, at)
        data = at + 12 + _up(name, 4)
        if kind == NOTE_ENTRY and notes[at + 12 : at + 15] == b"Xen":
            return int.from_bytes(notes[data : data + length], "little")
        at = data + _up(length, 4)
    raise LabError("the kernel has no PVH entry point")


def _info(address: int, initrd_size: int, top: int, command_line: bytes) -> bytes:
    """Return whole pages of boot information for `address`; the initramfs must follow them."""
    regions = [
        (0, 0x9F000, USABLE),
        (0x9F000, 0x1000, RESERVED),
        (0xE8000, 0x18000, RESERVED),
        (0x100000, top - 0x100000, USABLE),
        (top, ACPI_SIZE, ACPI),
        (0xFFFC0000, 0x40000, RESERVED),
    ]
    module = address + 56
    memory_map = module + 32
    text = memory_map + 24 * len(regions)
    initrd = _up(text + len(command_line) + 1, PAGE)
    told = struct.pack("<IIIIQQQQII", MAGIC, 1, 0, 1, module, text, 0, memory_map, len(regions), 0)
    told += struct.pack("<QQQQ", initrd, initrd_size, 0, 0)
    for region in regions:
        told += struct.pack("<QQII", *region, 0)
    return (told + command_line).ljust(initrd - address, b"\0")
