"""A minimal io_uring through ctypes, for the tests of the user device."""

import ctypes
import errno
import mmap
import os
import struct

SETUP, ENTER, REGISTER = 425, 426, 427
GETEVENTS, POLL_ADD, URING_CMD = 1, 6, 46
ASYNC = 16  # submission flag: execute in an io_uring thread
WAIT = 0xD703  # APIC_TIMER_URING_WAIT
SQ_AT, CQ_AT, SQES_AT = 0, 0x8000000, 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


class Ring:
    """A ring of 64 entries. OSError(ENOSYS, EPERM) if the kernel permits none."""

    def __init__(self) -> None:
        parameters = (ctypes.c_uint32 * 30)()
        self.fd = self._call(SETUP, 64, ctypes.byref(parameters))
        # struct io_uring_params: 10 words, then the offsets of both rings, 10 words each
        self.sq_entries, self.cq_entries = parameters[0], parameters[1]
        self._sq_tail, self._sq_mask, array = parameters[11], parameters[12], parameters[16]
        self._cq_head, self._cq_tail, self._cq_mask, _, _, self._cqes = parameters[20:26]
        self._sq = self._map(SQ_AT, array + 4 * self.sq_entries)
        self._cq = self._map(CQ_AT, self._cqes + 16 * self.cq_entries)
        self._sqes = self._map(SQES_AT, 64 * self.sq_entries)
        for n in range(self.sq_entries):
            struct.pack_into("I", self._sq, array + 4 * n, n)

    def _map(self, at: int, size: int) -> mmap.mmap:
        return mmap.mmap(self.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE,
                         offset=at)  # fmt: skip

    def _call(self, *arguments) -> int:
        ret = libc.syscall(*arguments)
        if ret < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return ret

    def submit(self, fd: int, command: int, data: bytes, user_data: int = 0,
               flags: int = 0) -> None:  # fmt: skip
        """Submit a command for a file, with its 16 bytes."""
        self._submit(struct.pack("BBHiQQIIQHHI16s", URING_CMD, flags, 0, fd, command, 0, 0, 0,
                                 user_data, 0, 0, 0, data))  # fmt: skip

    def poll(self, fd: int, events: int, user_data: int = 0) -> None:
        """Submit a poll of a file."""
        self._submit(struct.pack("BBHiQQIIQ24x", POLL_ADD, 0, 0, fd, 0, 0, 0, events, user_data))

    def register(self, fd: int) -> None:
        """Have the ring hold a file until it is gone."""
        self._call(REGISTER, self.fd, 2, ctypes.byref(ctypes.c_int32(fd)), 1)

    def _submit(self, entry: bytes) -> None:
        (tail,) = struct.unpack_from("I", self._sq, self._sq_tail)
        (mask,) = struct.unpack_from("I", self._sq, self._sq_mask)
        self._sqes[(tail & mask) * 64 : (tail & mask) * 64 + 64] = entry
        struct.pack_into("I", self._sq, self._sq_tail, tail + 1)
        assert self._call(ENTER, self.fd, 1, 0, 0, None, 0) == 1

    def ready(self) -> list[tuple[int, int]]:
        """Return user_data and result of each completed command."""
        found = []
        (head,) = struct.unpack_from("I", self._cq, self._cq_head)
        (tail,) = struct.unpack_from("I", self._cq, self._cq_tail)
        (mask,) = struct.unpack_from("I", self._cq, self._cq_mask)
        for n in range(head, tail):
            user_data, result = struct.unpack_from("Qi", self._cq, self._cqes + 16 * (n & mask))
            found.append((user_data, result))
        struct.pack_into("I", self._cq, self._cq_head, tail)
        return found

    def wait(self, number: int = 1) -> list[tuple[int, int]]:
        """Wait until `number` more commands are complete."""
        found = self.ready()
        while len(found) < number:
            try:
                self._call(ENTER, self.fd, 0, 1, GETEVENTS, None, 0)
            except InterruptedError:
                continue
            found += self.ready()
        return found

    def close(self) -> None:
        """Close the ring: pending commands are cancelled in the background."""
        for memory in (self._sqes, self._cq, self._sq):
            memory.close()
        os.close(self.fd)


def moment(expires: int, clock: int = 0, epoch: int = 0) -> bytes:
    """Return a struct apic_timer_uring."""
    return struct.pack("QII", expires, clock, epoch)


def missing(fd: int) -> bool:
    """Tell whether this kernel's io_uring lacks commands for the device."""
    ring = Ring()
    ring.submit(fd, WAIT, moment(1))
    ((_, result),) = ring.wait()
    ring.close()
    return result == -errno.EOPNOTSUPP
