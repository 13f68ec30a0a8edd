"""Ticks of a timerfd: timerfd.py INTERVAL_MS COUNT prints two times in ms.

The first is the time that at least COUNT received ticks stand for; the second is elapsed time.
"""

import ctypes
import os
import struct
import sys
import time

CLOCK_MONOTONIC = 1


def main() -> None:
    """Count expirations until there are enough."""
    libc = ctypes.CDLL(None, use_errno=True)
    interval, wanted = int(sys.argv[1]), int(sys.argv[2])
    fd = libc.timerfd_create(CLOCK_MONOTONIC, 0)
    each = (interval // 1000, interval % 1000 * 1000000)
    start = time.monotonic()
    if fd < 0 or libc.timerfd_settime(fd, 0, struct.pack("4q", *each, *each), None):
        raise OSError(ctypes.get_errno(), "timerfd")
    count = 0
    while count < wanted:
        count += struct.unpack("Q", os.read(fd, 8))[0]
    print(count * interval, round((time.monotonic() - start) * 1000))


main()
