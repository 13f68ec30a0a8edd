# SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note
"""/dev/apic_timer from Python, by ctypes: no build step, no module but the standard library's.

    with apic_timer.Timer() as timer:
        when = timer.now() + timer.cycles(ns=250_000)
        timer.sleep_until(when)

A moment is a TSC value, or nanoseconds of CLOCK_MONOTONIC or CLOCK_TAI. The thread is woken as
exactly as a C program's; what the interpreter does until the next line of Python runs takes some
microseconds on top. Errors are OSError: EAGAIN and EBUSY are the limits of a user, ESTALE is
another epoch of the TSC. A Timer belongs to one thread; a child of os.fork() may use it as well.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

DEVICE = "/dev/apic_timer"
TSC, MONOTONIC, TAI = 0, 1, 2  # clocks
KERNEL_FINISH, SKIP_LATE, NO_FENCE, NO_RESTART = 1, 2, 4, 8  # flags of a sleep
STABLE = 4  # flags of the page: the kernel trusts the TSC
CLOCK = 8  # its clocks run on it
CPU_THIS = 0xFFFFFFFF
NEVER = (1 << 64) - 1  # the last moment of any clock
RESTARTED = 1 << 24  # a TSC that is behind a former value by more than this has restarted

QUERY_COMMAND, SLEEP_COMMAND, ARM_COMMAND = 0xD700, 0xD701, 0xD702
RING_OFFSET, RING_FIRST = 0x100000, 4096


class Structure(ctypes.Structure):
    """A structure that refuses a number for which a field has no room: ctypes would cut it off."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, int) and getattr(self, name) != value:
            raise OverflowError(f"{name} does not hold {value}")


class Query(Structure):
    """What there is: struct apic_timer_device."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in ("size", "cpu", "epoch", "tsc_khz", "tsc_flags", "hardware", "modes", "rate",
                     "burst", "pending", "budget_max", "ring_entries")
    ] + [("ring_offset", ctypes.c_uint64), ("source", ctypes.c_char * 16)]  # fmt: skip


class Sleep(Structure):
    """A sleep: struct apic_timer_sleep."""

    _fields_ = [
        ("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("expires", ctypes.c_uint64),
        ("clock", ctypes.c_uint32), ("epoch", ctypes.c_uint32), ("began", ctypes.c_uint64),
        ("budget", ctypes.c_uint32), ("cpu", ctypes.c_uint32), ("tsc", ctypes.c_uint64),
        ("woken", ctypes.c_uint64), ("resumed", ctypes.c_uint64), ("lead", ctypes.c_uint32),
        ("result", ctypes.c_uint32),
    ]  # fmt: skip


class Arm(Structure):
    """Arming the timer of a file: struct apic_timer_arm."""

    _fields_ = [
        ("size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("expires", ctypes.c_uint64),
        ("interval", ctypes.c_uint64), ("clock", ctypes.c_uint32), ("epoch", ctypes.c_uint32),
    ]  # fmt: skip


class Page(NamedTuple):
    """The time page: struct apic_timer_page, without `reserved`."""

    version: int
    seq: int
    tsc_khz: int
    epoch: int
    flags: int
    mult: int
    shift: int
    tsc: int
    mono: int
    mono_shifted: int
    tai: int


class Receipt(NamedTuple):
    """One sleep, as it was: struct apic_timer_receipt, without `reserved`."""

    tsc: int
    woken: int
    resumed: int
    began: int
    lead: int
    cpu: int
    result: int
    tid: int


class _Rdtsc:
    """RDTSC, as machine code: Python has no other way to it."""

    # By the number of bits of a pointer. A process of 32 bits returns EDX:EAX.
    CODES = {64: bytes.fromhex("0f31 48c1e220 4809d0 c3"), 32: bytes.fromhex("0f31 c3")}

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                                 mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)  # fmt: skip
        self._memory.write(self.CODES[8 * ctypes.sizeof(ctypes.c_void_p)])
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)


class _Mapping:
    """A read-only mapping of the device, which a child of fork() does not inherit.

    An mmap.mmap would unmap, in a child, what has come to its address by then.
    """

    forks = 0  # of this process and those that it comes from
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def __init__(self, fd: int, size: int, offset: int = 0) -> None:
        self._wanted, self._memory = (fd, size, offset), None
        self._map()

    def __del__(self) -> None:
        self.close()

    def _map(self) -> None:
        fd, size, offset = self._wanted
        address = self.libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, offset)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._memory = (ctypes.c_char * size).from_address(address)
        self._forks = self.forks

    def memory(self) -> ctypes.Array:
        """Return the mapped memory; a child of fork() maps it anew."""
        if self._memory is None:
            raise ValueError("the timer is closed")
        if self._forks != self.forks:
            self._map()
        return self._memory

    def close(self) -> None:
        """Unmap it."""
        if self._memory is not None and self._forks == self.forks:
            self.libc.munmap(ctypes.addressof(self._memory), len(self._memory))
        self._memory = None


def _forked() -> None:
    _Mapping.forks += 1


os.register_at_fork(after_in_child=_forked)


class Timer:
    """An open device. `fd` may be given: one that another process has handed over."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC) if fd is None else fd
        try:
            if not stat.S_ISCHR(os.fstat(self.fd).st_mode):
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            self._rdtsc = _Rdtsc()
            self._page = _Mapping(self.fd, 4096)
        except OSError:
            if fd is None:
                os.close(self.fd)
            raise
        self._ring: _Mapping | None = None
        self.last = Sleep()
        self.epoch = self.page().epoch

    def __enter__(self) -> "Timer":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the file descriptor, for select() and asyncio's add_reader()."""
        return self.fd

    def close(self) -> None:
        """Close the device; a timer that is armed goes with it."""
        self._page.close()
        if self._ring is not None:
            self._ring.close()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def now(self) -> int:
        """Read the TSC."""
        return self._rdtsc.read()

    def page(self) -> Page:
        """Return a consistent copy of the time page."""
        memory = self._page.memory()
        while True:
            (before,) = struct.unpack_from("I", memory, 4)
            found = struct.unpack_from("7I4x4Q", memory, 0)
            (after,) = struct.unpack_from("I", memory, 4)
            if before == after and not before & 1:
                return Page(*found)

    def cycles(self, ns: int) -> int:
        """Convert a distance in ns to TSC cycles, rounded down."""
        return ns * self.page().tsc_khz // 1_000_000

    def monotonic(self, tsc: int) -> int:
        """Convert a TSC value to CLOCK_MONOTONIC of the initial time namespace, in ns.

        ValueError where it runs on no TSC.
        """
        page = self.page()
        if not page.flags & CLOCK:
            raise ValueError("the kernel's clocks do not run on the TSC")
        return page.mono + (((tsc - page.tsc) * page.mult + page.mono_shifted) >> page.shift)

    def query(self, cpu: int = CPU_THIS) -> Query:
        """Describe a CPU, the present one by default."""
        found = Query(size=ctypes.sizeof(Query), cpu=cpu)
        fcntl.ioctl(self.fd, QUERY_COMMAND, found)
        return found

    def sleep_until(self, moment: int, clock: int = TSC, flags: int = 0, budget: int = 0) -> Sleep:
        """Sleep until a moment has come; return the kernel's account of it.

        A signal's handler runs in between, as in time.sleep(). A moment below 0 has passed.
        """
        asked = Sleep(size=ctypes.sizeof(Sleep), flags=flags, expires=min(max(moment, 0), NEVER),
                      clock=clock, epoch=self.epoch if clock == TSC else 0,
                      budget=budget)  # fmt: skip
        self.last = asked
        read, reached = self._rdtsc.read, False
        while not reached:
            try:
                fcntl.ioctl(self.fd, SLEEP_COMMAND, asked)
            except InterruptedError:
                continue
            # If the machine sleeps now and its TSC restarts, the kernel is asked once more.
            least, when = asked.resumed - RESTARTED, asked.tsc
            while least < (now := read()) < when:
                pass
            reached = now >= when
        return asked

    def sleep(self, seconds: float) -> None:
        """Sleep for a time, as time.sleep() does."""
        if seconds < 0:
            raise ValueError("the time to sleep is negative")
        self.sleep_until(time.monotonic_ns() + round(seconds * 1e9), MONOTONIC)

    def arm(self, moment: int, interval: int = 0, clock: int = TSC) -> None:
        """Arm the timer that read() and select() wait for; a moment of 0 disarms it.

        A moment below 0 has passed.
        """
        epoch = self.epoch if clock == TSC else 0
        expires = min(moment, NEVER) if moment >= 0 else 1
        asked = Arm(size=ctypes.sizeof(Arm), expires=expires, interval=interval, clock=clock,
                    epoch=epoch)  # fmt: skip
        fcntl.ioctl(self.fd, ARM_COMMAND, asked)

    def read(self) -> int:
        """Wait for an expiration; return how many there were since the last read."""
        return struct.unpack("Q", os.read(self.fd, 8))[0]

    def receipts(self) -> Iterator[Receipt]:
        """Yield receipts of the sleeps since the first call, as far as they are kept."""
        if self._ring is None:
            size = RING_FIRST + self.query().ring_entries * 64
            self._ring = _Mapping(self.fd, size, RING_OFFSET)
        _, entries, head = struct.unpack_from("IIQ", self._ring.memory(), 0)
        for number in range(max(0, head - entries), head):
            memory = self._ring.memory()
            found = struct.unpack_from("4Q4I", memory, RING_FIRST + number % entries * 64)
            if struct.unpack_from("Q", memory, 8)[0] < number + entries:
                yield Receipt(*found)


def limited(error: OSError) -> bool:
    """Tell whether an error is one of a user's limits: it passes by itself."""
    return error.errno in (errno.EAGAIN, errno.EBUSY)
