# SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note
"""Calendars from Python, by ctypes: /dev/apic_calendar, see include/uapi/linux/apic_calendar.h.

    calendar = Calendar()
    calendar.load(1_000_000, [(100_000, 50_000, 0)], [Unit.user("a", cpu=0)])
    calendar.bind(0)            # this thread is unit 0 now
    calendar.start()
    window = calendar.wait(0)   # shortly before window.start, a TSC value

Times are in ns, moments TSC values.
"""

import ctypes
import fcntl
import os
from collections.abc import Iterator

DEVICE = "/dev/apic_calendar"
QUERY, LOAD, START, SWITCH, STOP, BIND, UNBIND, WAIT, STATUS = (
    0xD7 << 8 | n for n in range(16, 25)
)
NONE = 0xFFFFFFFF
USER, FUNCTION, THREAD = range(3)
PARK, SIGNAL, KILL, SKIP = range(4)
AT_BOUNDARY = 1
KERNEL_FINISH = 1
OVERRAN, BROKE, LATE_BREAK, SWITCHED = 1, 2, 4, 8
RAN, TIMED_OUT, MISSED, NEVER_RAN, SKIPPED, STOPPED, PASSED = range(7)
(OK, BAD_MAJOR, BAD_COUNT, BAD_NAME, BAD_KIND, BAD_POLICY, BAD_CPU, BAD_FUNCTION, BAD_UNIT,
 BAD_ORDER, BAD_BUDGET, BAD_END, OVERLAP, GAP, LOAD_SHARE, BAD_DEGRADED) = range(16)  # fmt: skip

_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64


class Structure(ctypes.Structure):
    """A structure that refuses a number for which a field has no room: ctypes would cut it off."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, int) and getattr(self, name) != value:
            raise OverflowError(f"{name} does not hold {value}")


class Unit(Structure):
    """struct apic_calendar_unit."""

    _fields_ = [("name", ctypes.c_char * 32), ("function", ctypes.c_char * 32), ("kind", _u32),
                ("cpu", _u32), ("on_overrun", _u32), ("signal", _u32),
                ("reserved", _u64 * 2)]  # fmt: skip

    @classmethod
    def user(cls, name: str, cpu: int, on_overrun: int = PARK, signal: int = 0) -> "Unit":
        """Return a unit for a thread."""
        return cls(name=name.encode(), cpu=cpu, on_overrun=on_overrun, signal=signal)

    @classmethod
    def function_of(cls, name: str, cpu: int, function: str, kind: int = FUNCTION) -> "Unit":
        """Return a unit for a function that a kernel module has registered."""
        return cls(name=name.encode(), cpu=cpu, function=function.encode(), kind=kind)


class Entry(Structure):
    """struct apic_calendar_entry."""

    _fields_ = [("offset", _u64), ("budget", _u64), ("unit", _u32), ("flags", _u32)]


class Load(Structure):
    """struct apic_calendar_load."""

    _fields_ = [("size", _u32), ("flags", _u32), ("major", _u64), ("units", _u64),
                ("entries", _u64), ("n_units", _u32), ("n_entries", _u32),
                ("max_overruns", _u32), ("degraded", _u32), ("table", _u32), ("reason", _u32),
                ("bad", _u32), ("other", _u32)]  # fmt: skip


class Start(Structure):
    """struct apic_calendar_start."""

    _fields_ = [("size", _u32), ("table", _u32), ("when", _u64), ("clock", _u32),
                ("epoch", _u32)]  # fmt: skip


class Stop(Structure):
    """struct apic_calendar_stop."""

    _fields_ = [("size", _u32), ("flags", _u32), ("when", _u64)]


class Bind(Structure):
    """struct apic_calendar_bind."""

    _fields_ = [("size", _u32), ("unit", _u32)]


class Wait(Structure):
    """struct apic_calendar_wait."""

    _fields_ = [("size", _u32), ("unit", _u32), ("flags", _u32), ("status", _u32),
                ("returned", _u64), ("began", _u64), ("start", _u64), ("timeout", _u64),
                ("cycle", _u64), ("missed", _u32), ("table", _u32), ("lead", _u32),
                ("reserved", _u32)]  # fmt: skip


class Query(Structure):
    """struct apic_calendar_query."""

    _fields_ = [(name, _u32) for name in (
        "size", "epoch", "tsc_khz", "priority", "outranked_by", "major_min", "budget_min",
        "gap_user", "gap_function", "share")]  # fmt: skip


class Status(Structure):
    """struct apic_calendar_status."""

    _fields_ = [(name, _u32) for name in (
        "size", "unit", "state", "error", "table", "next", "tid", "reserved")] + [
        (name, _u64) for name in ("run", "missed", "never_ran", "overran", "late_breaks",
                                  "skipped", "slack_min", "lead")]  # fmt: skip


class Receipt(Structure):
    """struct apic_calendar_receipt."""

    _fields_ = [(name, _u64) for name in (
        "number", "start", "woken", "resumed", "began", "ended", "cycle")] + [
        (name, _u32) for name in ("entry", "unit", "cpu", "table", "result", "count")]  # fmt: skip


class Refused(OSError):
    """A table that is refused: reason, bad and other as in struct apic_calendar_load."""

    def __init__(self, load: Load, code: int) -> None:
        super().__init__(code, f"table rejected: reason {load.reason}, entry or unit {load.bad}")
        self.reason, self.bad, self.other = load.reason, load.bad, load.other


class Calendar:
    """An open file of the device, which is a calendar."""

    def __init__(self) -> None:
        self.fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)

    def __enter__(self) -> "Calendar":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; that of the last one stops the calendar."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def load(self, major: int, entries: list[tuple[int, int, int]],
             units: list[Unit] | None = None, max_overruns: int = 0,
             degraded: int = 0) -> int:  # fmt: skip
        """Add a table; entries are offset, budget and unit. Return its number; or Refused."""
        has = (Entry * len(entries))(*(Entry(*entry, 0) for entry in entries))
        units = units or []
        defined = (Unit * len(units))(*units)
        asked = Load(
            size=ctypes.sizeof(Load), major=major, entries=ctypes.addressof(has),
            units=ctypes.addressof(defined) if units else 0, n_units=len(units),
            n_entries=len(entries), max_overruns=max_overruns, degraded=degraded,
        )  # fmt: skip
        try:
            fcntl.ioctl(self.fd, LOAD, asked)
        except OSError as error:
            if asked.reason:
                raise Refused(asked, error.errno) from None
            raise
        return asked.table

    def start(self, table: int = 0, when: int = 0, clock: int = 0) -> int:
        """Start a table, soon or at a moment; return the TSC at which that is."""
        asked = Start(size=ctypes.sizeof(Start), table=table, when=when, clock=clock)
        fcntl.ioctl(self.fd, START, asked)
        return asked.when

    def switch(self, table: int, not_before: int = 0) -> int:
        """Have another table take over; return the TSC at which that is."""
        asked = Start(size=ctypes.sizeof(Start), table=table, when=not_before)
        fcntl.ioctl(self.fd, SWITCH, asked)
        return asked.when

    def stop(self, flags: int = 0) -> int:
        """Stop; return the TSC at which that is."""
        asked = Stop(size=ctypes.sizeof(Stop), flags=flags)
        fcntl.ioctl(self.fd, STOP, asked)
        return asked.when

    def bind(self, unit: int) -> None:
        """Make this thread the unit's."""
        fcntl.ioctl(self.fd, BIND, Bind(size=ctypes.sizeof(Bind), unit=unit))

    def unbind(self, unit: int) -> None:
        """Undo bind()."""
        fcntl.ioctl(self.fd, UNBIND, Bind(size=ctypes.sizeof(Bind), unit=unit))

    def wait(self, unit: int, flags: int = 0) -> Wait:
        """End the window, and wait for the next."""
        asked = Wait(size=ctypes.sizeof(Wait), unit=unit, flags=flags)
        fcntl.ioctl(self.fd, WAIT, asked)
        return asked

    def query(self) -> Query:
        """Return limits, and what outranks a unit."""
        asked = Query(size=ctypes.sizeof(Query))
        fcntl.ioctl(self.fd, QUERY, asked)
        return asked

    def status(self, unit: int) -> Status:
        """Return what has become of a unit, and of the calendar."""
        asked = Status(size=ctypes.sizeof(Status), unit=unit)
        fcntl.ioctl(self.fd, STATUS, asked)
        return asked

    def receipts(self) -> Iterator[Receipt]:
        """Yield the receipts that have not been read."""
        size = ctypes.sizeof(Receipt)
        while True:
            try:
                data = os.read(self.fd, 512 * size)
            except BlockingIOError:
                return
            for at in range(0, len(data), size):
                yield Receipt.from_buffer_copy(data, at)
