"""Malformed requests to /dev/apic_measure, in a guest: python3 measure.py [REQUESTS]."""

import contextlib
import ctypes
import fcntl
import os
import random
import struct
import sys

NODE = "/dev/apic_measure"
READ, WRITE = 2, 1  # directions of an ioctl, as in <linux/ioctl.h>
# As a count, none of these takes longer than a second.
WORDS = (0, 1, 2, 3, 7, 20, 100, 5000, 1 << 31, 0xFFFFFFFF)
samples = ctypes.create_string_buffer(8 * max(w for w in WORDS if w < 1 << 31))
ADDRESS = {1: 24, 2: 32, 4: 8, 5: 24}  # offset of the samples' address in a structure


def valid(rng: random.Random) -> tuple[int, int, bytearray]:
    """Draw a valid request of <linux/apic_measure.h>: number, direction, structure."""
    at = ctypes.addressof(samples)
    loop = struct.pack("<6IQ2I", rng.choice((0, 1, 2, 4, 5, 6)), rng.randrange(3), 16, 20, 100, 7,
                       at, 0, 0)  # fmt: skip
    periodic = struct.pack("<8IQ", rng.randrange(1, 4), rng.randrange(3), rng.randrange(3), 16,
                           rng.randrange(3), 100, 20, 100_000, at)  # fmt: skip
    chain = struct.pack("<4IQ", rng.randrange(7), rng.randrange(4), 20_000, 100_000, 1)
    port = struct.pack("<2IQ", rng.randrange(9), 20, at)
    cost = struct.pack("<4I2Q", rng.randrange(4), rng.randrange(2), 100, 20, 1, at)
    number, direction, request = rng.choice((
        (1, READ | WRITE, loop),
        (2, READ | WRITE, periodic.ljust(256, b"\0")),
        (3, WRITE, chain),
        (4, READ | WRITE, port),
        (5, WRITE, cost),
    ))  # fmt: skip
    return number, direction, bytearray(request)


def main(count: int) -> None:
    """Send valid requests, and others with a wrong word or size; print how many were accepted."""
    rng = random.Random(1)
    taken = refused = 0
    file = os.open(NODE, os.O_RDONLY)
    for turn in range(count):
        number, direction, request = valid(rng)
        size = len(request)
        if rng.random() < 0.7:
            at = rng.randrange(size // 4) * 4
            struct.pack_into("<I", request, at, rng.choice(WORDS))
            # A wrong address is unmapped, so that samples do not overwrite this program.
            if at & ~7 == ADDRESS.get(number):
                struct.pack_into("<Q", request, at & ~7, rng.choice((0, 7, 1 << 47, 1 << 63)))
        if rng.random() < 0.1:
            size = rng.randrange(4096)
            request = request.ljust(4096, b"\1")
        try:
            fcntl.ioctl(file, direction << 30 | size << 16 | 0xD8 << 8 | number, request)
            taken += 1
        except OSError:
            refused += 1
        if turn % 100 == 0:
            with contextlib.suppress(OSError):
                os.read(file, rng.choice((0, 39, 40, 100)))
    print(f"{taken} taken, {refused} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
