"""Malformed requests to /dev/apic_measure, in a guest: python3 measure.py [REQUESTS]."""

import fcntl
import os
import random
import struct
import sys

NODE = "/dev/apic_measure"
# Number of an ioctl: direction and size, as in <linux/apic_measure.h>.
REQUESTS = {1: (3, 40), 2: (3, 256), 3: (1, 24), 4: (3, 16)}
WORDS = (0, 1, 2, 3, 7, 20, 100, 5000, 1 << 16, 1 << 31, 0xFFFFFFFF)


def main(count: int) -> None:
    """Send requests of which each word is drawn; print how many were taken and refused."""
    rng = random.Random(1)
    taken = refused = 0
    file = os.open(NODE, os.O_RDONLY)
    for turn in range(count):
        number, (direction, size) = rng.choice([*REQUESTS.items()])
        if rng.random() < 0.1:
            size = rng.randrange(4096)
        request = bytearray(struct.pack("<1024I", *rng.choices(WORDS, k=1024)))
        try:
            fcntl.ioctl(file, direction << 30 | size << 16 | 0xD8 << 8 | number, request)
            taken += 1
        except OSError:
            refused += 1
        if turn % 100 == 0:
            try:
                os.read(file, rng.choice((0, 39, 40, 100)))
            except OSError:
                refused += 1
    print(f"{taken} taken, {refused} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
