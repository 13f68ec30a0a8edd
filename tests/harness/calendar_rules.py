"""Rules for calendars and their holders, run by rules.py in a guest, as root.

Each case is a rule of docs/reference/calendar.md, and ends with an AssertionError if the rule is
broken. None depends on the machine's speed: major cycles are long, and cases check order and
accounts, not times.

A CPU of the guest is a thread of a machine that may delay it. A case that fails is repeated, at
most twice, if a delay occurred meanwhile: if a timer's handler, which nothing in the guest delays
that long, started later than apic_timer's parameter late_ns.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import itertools
import mmap
import os
import random
import re
import resource
import select
import signal
import struct
import subprocess
import threading
import time
import zlib
from pathlib import Path

import apic_calendar
import apic_timer
import uring
from apic_calendar import Calendar, Refused, Unit
from apic_timer import MONOTONIC, TAI, Timer
from device import as_nobody, charged, child, fails, filter_calls, state

MS = 1_000_000  # ns
MAJOR = 20 * MS
LAST_CPU = os.cpu_count() - 1
PLAIN = [(2 * MS, 8 * MS, 0)]
MODULE = "apic_calendar"
PULSE = "apic_calendar_pulse"  # the module of functions
SLOW_OFF = "apic_timer_slow_off"  # has CPUs take long to go offline
PARAMETERS = Path("/sys/module/apic_calendar/parameters")
STATS = Path("/sys/kernel/debug/apic_timer/stats")
INFO = Path("/sys/kernel/debug/apic_timer/info")
TRACING = Path("/sys/kernel/tracing")
MARKS = Path("/sys/kernel/debug/apic_timer_sleep")  # marks the TSC unstable
TRIES = 3
RECEIPTS = 4096  # kept by a calendar
ENTRIES = 4096  # of a table
MADV_POPULATE_WRITE = 23  # mmap.MADV_*: Python 3.13 does not have it


@contextlib.contextmanager
def process(function):
    """Run a function in a process; kill the process at the end."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            function()
            code = 0
        except OSError as error:
            print(repr(error), flush=True)
            code = error.errno
        except BaseException as error:  # noqa: BLE001 - it has to end here
            print(repr(error), flush=True)
        os._exit(code)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGCONT)
            os.waitpid(pid, 0)


def ended(pid: int) -> int:
    """Wait for a process; return its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def until(condition, seconds: float = 60):
    """Wait until a condition is true; return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it never was")


def worker(calendar: Calendar, unit: int = 0, spin_in: int = 0, seconds: float = 1e9):
    """Return a function that binds a process to a unit, and works.

    In window spin_in it uses up `seconds` of CPU time before it ends the window.
    """

    def run() -> None:
        calendar.bind(unit)
        for n in itertools.count(1):
            calendar.wait(unit)
            end = time.process_time() + seconds
            while n == spin_in and time.process_time() < end:
                pass

    return run


def stalls() -> int:
    """Return how often a handler has started later than late_ns, on all CPUs."""
    (counts,) = re.findall(r"^expired_late +(.*)$", STATS.read_text(), re.MULTILINE)
    return sum(int(n) for n in counts.split())


def run(name: str) -> None:
    """Run a case; repeat it if it has failed while a CPU was delayed."""
    for left in reversed(range(TRIES)):
        before = stalls()
        try:
            globals()[name]()
        except AssertionError as error:
            if not left or stalls() == before:
                raise
            print(f"held up {stalls() - before} times: {error!r}", flush=True)
            continue
        return


def set_parameter(name: str, value: int) -> int:
    """Set a parameter of the module; return the previous value."""
    file = PARAMETERS / name
    before = int(file.read_text())
    file.write_text(str(value))
    return before


def policy(pid: int = 0) -> int:
    """Return a thread's scheduling policy, by default this one's."""
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


def counts(calendar: Calendar, unit: int = 0):
    return calendar.status(unit)


def node() -> None:
    """The node belongs to root, and another user may not open it."""
    status = os.stat(apic_calendar.DEVICE)
    assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (0o600, 0, 0)
    assert as_nobody(lambda: fails(errno.EACCES, os.open, apic_calendar.DEVICE, os.O_RDWR)) == 0


def rights() -> None:
    """An open file that is passed on moves no thread and starts nothing without CAP_SYS_NICE."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])

        def other() -> None:
            fails(errno.EPERM, calendar.bind, 0)
            fails(errno.EPERM, calendar.start)
            fails(errno.ESRCH, calendar.wait, 0)

        assert as_nobody(other) == 0


def namespace() -> None:
    """A user namespace gives nobody access, and no right to move a thread with an open file."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])

        def run() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(0x10000000):  # CLONE_NEWUSER
                raise OSError(ctypes.get_errno(), "unshare")
            fails(errno.EPERM, os.open, apic_calendar.DEVICE, os.O_RDWR)
            # It has all capabilities in the new namespace.
            fails(errno.EPERM, calendar.bind, 0)
            fails(errno.EPERM, calendar.start)

        assert child(run) == 0


def in_namespace(flag: int, function, enters=lambda: None) -> int:
    """Call enters() in a new namespace and function() in a child there; return its exit status."""

    def run() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(flag):
            raise OSError(ctypes.get_errno(), "unshare")
        enters()
        assert child(function) == 0

    return child(run)


def numbered() -> None:
    """A unit's thread has the number that the caller's PID namespace gives it."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])

        def first() -> None:
            calendar.bind(0)
            assert (os.getpid(), counts(calendar).tid) == (1, 1)

        assert in_namespace(0x20000000, first) == 0  # CLONE_NEWPID
        # When the thread has ended, another one may get its number.
        until(lambda: not counts(calendar).tid, 10)
        with process(worker(calendar)) as pid:
            until(lambda: counts(calendar).tid == pid, 10)


class Missing:
    """Memory whose pages are missing: a thread that touches one waits until provide()."""

    API, REGISTER, ZEROPAGE = 0xC018AA3F, 0xC020AA00, 0xC020AA04  # UFFDIO_*

    def __init__(self, pages: int) -> None:
        self.size = pages * mmap.PAGESIZE
        self.fd = ctypes.CDLL(None).syscall(323, os.O_CLOEXEC)  # userfaultfd
        assert self.fd >= 0
        fcntl.ioctl(self.fd, self.API, struct.pack("QQQ", 0xAA, 0, 0))
        self.memory = mmap.mmap(-1, self.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        fcntl.ioctl(self.fd, self.REGISTER, struct.pack("QQQQ", self.at, self.size, 1, 0))

    def touched(self) -> None:
        """Wait until one more thread waits."""
        os.read(self.fd, 32)

    def provide(self) -> None:
        fcntl.ioctl(self.fd, self.ZEROPAGE, struct.pack("QQQQ", self.at, self.size, 0, 0))


def passes(missing: Missing, waits, other) -> None:
    """Check that a call ends while another one waits for missing memory; end both."""
    first = background(waits)
    missing.touched()
    second = background(other)
    try:
        until(lambda: not second.is_alive(), 10)
    finally:
        missing.provide()
        second.join()
        first.join()


def background(function) -> threading.Thread:
    """Run a function in a thread that need not end."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def load_of(units: int, n_units: int, entries: int, n_entries: int) -> apic_calendar.Load:
    """Return the argument of a LOAD of arrays at these addresses."""
    return apic_calendar.Load(size=ctypes.sizeof(apic_calendar.Load), major=MAJOR, units=units,
                              entries=entries, n_units=n_units, n_entries=n_entries)  # fmt: skip


def paged() -> None:
    """LOAD delays no other command while it waits for the caller's memory."""
    entries = (apic_calendar.Entry * 1)(apic_calendar.Entry(*PLAIN[0], 0))
    missing, errors = Missing(1), []
    with Calendar() as calendar:
        asked = load_of(missing.at, 1, ctypes.addressof(entries), 1)
        passes(missing,
               lambda: errors.append(fcntl_error(
                   lambda: fcntl.ioctl(calendar.fd, apic_calendar.LOAD, asked))),
               lambda: calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)]))  # fmt: skip
        # By then the calendar has units.
        assert (errors, asked.reason) == ([errno.EINVAL], apic_calendar.OK)
        calendar.bind(0)
        calendar.unbind(0)


def delivered() -> None:
    """read() delays no other reader while it waits for the caller's memory, and loses no receipt.

    The next reader gets the receipts then.
    """
    size, missing, found = ctypes.sizeof(apic_calendar.Receipt), Missing(1), []
    libc = ctypes.CDLL(None, use_errno=True)

    def numbers(data: bytes) -> list[int]:
        return [apic_calendar.Receipt.from_buffer_copy(data, at).number
                for at in range(0, len(data), size)]  # fmt: skip

    def reads() -> None:
        got = os.readv(calendar.fd, [missing.memory])
        found.append(numbers(missing.memory[:got]))

    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.function_of("a", 0, "step")])
        calendar.start()
        until(lambda: counts(calendar).run > 10)
        calendar.stop()
        assert libc.read(calendar.fd, ctypes.c_void_p(16), 2 * size) == -1
        assert ctypes.get_errno() == errno.EFAULT
        passes(missing, reads, lambda: found.append(numbers(os.read(calendar.fd, 3 * size))))
        assert [seen[:3] for seen in found] == [[0, 1, 2], [3, 4, 5]], found
        assert found[1] == list(range(3, 3 + len(found[1])))
        fails(errno.EAGAIN, os.read, calendar.fd, size)


def memory() -> None:
    """A calendar's memory is charged to the caller's memory cgroup.

    So are the copies of a table that LOAD makes.
    """

    def run() -> list[Calendar]:
        calendars = [Calendar() for _ in range(20)]
        for calendar in calendars:
            calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
        return calendars

    # The kernel charges some pages in advance.
    assert charged(run) > 20 * RECEIPTS * ctypes.sizeof(apic_calendar.Receipt) - (1 << 20)

    def copies(n: int) -> list:
        calendar, missing = Calendar(), Missing(1)
        asked = load_of(missing.at, 1, missing.at, n)
        for _ in range(32):
            background(lambda: fcntl.ioctl(calendar.fd, apic_calendar.LOAD, asked))
        for _ in range(32):
            missing.touched()
        return [calendar, missing]

    # The threads cost as much in both.
    copied = charged(lambda: copies(ENTRIES)) - charged(lambda: copies(1))
    assert copied > 32 * ENTRIES * ctypes.sizeof(apic_calendar.Entry) - (1 << 20), copied


def many() -> None:
    """At most 64 calendars exist at a time."""
    calendars = [Calendar() for _ in range(64)]
    fails(errno.EMFILE, os.open, apic_calendar.DEVICE, os.O_RDWR)
    for calendar in calendars:
        calendar.close()
    Calendar().close()


def structures() -> None:
    """Sizes are negotiated; unknown or too small structures are rejected."""
    with Calendar() as calendar:
        for command in range(apic_calendar.QUERY, apic_calendar.STATUS + 1):
            for small in (0, 4):
                fails(errno.EINVAL, fcntl.ioctl, calendar.fd, command,
                      bytearray(small.to_bytes(4, "little") + bytes(200)))  # fmt: skip
            big = bytearray((200).to_bytes(4, "little") + bytes(195) + b"\1")
            fails(errno.E2BIG, fcntl.ioctl, calendar.fd, command, big)
            fails(errno.EFAULT, fcntl.ioctl, calendar.fd, command, 16)
        fails(errno.ENOTTY, fcntl.ioctl, calendar.fd, apic_calendar.STATUS + 1, bytearray(8))
        fails(errno.ENOENT, calendar.bind, 0)
        fails(errno.ENOENT, calendar.status, 0)
        fails(errno.EINVAL, calendar.start)
        fails(errno.ESRCH, calendar.stop)
        fails(errno.EAGAIN, os.read, calendar.fd, 80)
        fails(errno.EINVAL, os.read, calendar.fd, 79)
        found = calendar.query()
        assert found.share == 90 and found.priority == 98 and found.outranked_by & 0x1D == 0x1D


def refused() -> None:
    """A wrong table is rejected with the reason, and leaves nothing behind."""
    user = [Unit.user("a", 0), Unit.user("b", 0)]
    wrong = [
        (MAJOR, [(0, MS, 0), (MS, MS, 1)], apic_calendar.GAP, 1, 0),
        (MAJOR, [(0, MS, 0), (MS // 2, MS, 1)], apic_calendar.OVERLAP, 1, 0),
        (MAJOR, [(0, MS, 2)], apic_calendar.BAD_UNIT, 0, apic_calendar.NONE),
        (MAJOR, [(0, MAJOR - MS, 0)], apic_calendar.LOAD_SHARE, 0, apic_calendar.NONE),
        (1000, [(0, MS, 0)], apic_calendar.BAD_MAJOR, apic_calendar.NONE, apic_calendar.NONE),
        (MAJOR, [], apic_calendar.BAD_COUNT, apic_calendar.NONE, apic_calendar.NONE),
    ]
    with Calendar() as calendar:
        for major, entries, *verdict in wrong:
            try:
                calendar.load(major, entries, user)
            except Refused as found:
                assert [found.reason, found.bad, found.other] == verdict, found
            else:
                raise AssertionError(verdict)
        for units, reason in (
            ([Unit.user("a", 0), Unit.user("b", 999)], apic_calendar.BAD_CPU),
            ([Unit.user("a", 0), Unit.user("a", 0)], apic_calendar.BAD_NAME),
            ([Unit.user("a", 0), Unit.function_of("b", 0, "none")], apic_calendar.BAD_FUNCTION),
        ):
            try:
                calendar.load(MAJOR, PLAIN, units)
            except Refused as found:
                assert (found.reason, found.bad) == (reason, 1)
            else:
                raise AssertionError(reason)
        unknown = apic_calendar.Load(size=ctypes.sizeof(apic_calendar.Load), flags=2, reason=99)
        fails(errno.EINVAL, fcntl.ioctl, calendar.fd, apic_calendar.LOAD, unknown)
        assert (unknown.reason, unknown.bad) == (apic_calendar.OK, apic_calendar.NONE)
        assert calendar.load(MAJOR, PLAIN, user) == 0
        fails(errno.EINVAL, calendar.load, MAJOR, PLAIN, user)
        assert [calendar.load(MAJOR, PLAIN) for _ in range(15)] == list(range(1, 16))
        fails(errno.ENOSPC, calendar.load, MAJOR, PLAIN)
        fails(errno.EINVAL, calendar.start, 16)
        fails(errno.ETIME, calendar.start, 0, 1)
        fails(errno.ETIME, calendar.start, 0, 1, TAI)
        fails(errno.EINVAL, calendar.start, 0, 1 << 62)
        # Epochs belong to the TSC; moments of other clocks have none.
        stale = apic_calendar.Start(size=ctypes.sizeof(apic_calendar.Start), table=0,
                                    epoch=calendar.query().epoch + 1)  # fmt: skip
        fails(errno.ESTALE, fcntl.ioctl, calendar.fd, apic_calendar.START, stale)
        stale.when, stale.clock, stale.epoch = 1, MONOTONIC, stale.epoch + 1
        fails(errno.ETIME, fcntl.ioctl, calendar.fd, apic_calendar.START, stale)


def account(receipts, tables, start: int, changes=(), end=None) -> int:
    """Check that each window of each CPU has one receipt, in order; return their number.

    tables: by number, the major cycle in TSC cycles, and the entries with the CPU of each
    changes: moment and table; end: the moment of a stop at a boundary
    """
    receipts = list(receipts)
    assert [r.number for r in receipts] == list(range(len(receipts)))
    cpus = {cpu for _, entries in tables.values() for _, cpu in entries}
    for cpu in cpus:
        mine = [r for r in receipts if r.cpu == cpu]
        expected = windows(tables, cpu, start, changes, end)
        at = 0
        for receipt in mine:
            if receipt.result == apic_calendar.PASSED:
                for _ in range(receipt.count):
                    table, cycle = at_next(expected, tables, cpu)
                    assert cycle >= receipt.cycle
                continue
            when, cycle, table, entry = next(expected)
            assert (receipt.cycle, receipt.table, receipt.entry) == (cycle, table, entry), (
                f"CPU {cpu}: {receipt.cycle} {receipt.table} {receipt.entry}, "
                f"not {cycle} {table} {entry}")  # fmt: skip
            assert abs(receipt.start - when) <= 2 + cycle, (receipt.start, when)
            assert receipt.start >= at
            at = receipt.start
            if receipt.began:
                assert receipt.began >= receipt.start
        if end is not None:
            assert next(expected, None) is None, f"CPU {cpu}: windows without a receipt"
    return len(receipts)


def at_next(expected, tables, cpu):
    """Skip the windows of a cycle; return its table and number."""
    when, cycle, table, _ = next(expected)
    for _ in range(sum(1 for _, on in tables[table][1] if on == cpu) - 1):
        next(expected)
    return table, cycle


def windows(tables, cpu, start, changes, end):
    """Yield moment, cycle, table and entry of each window of a CPU."""
    changes, table, n, origin = list(changes), 0, 0, start
    if changes and changes[0][0] == start:
        table = changes.pop(0)[1]
    cycle = 0
    while True:
        major, entries = tables[table]
        begin = origin + n * major
        if end is not None and begin >= end - 1000:
            return
        if changes and begin >= changes[0][0] - 1000:
            origin, table = changes.pop(0)
            n = 0
            continue
        for entry, (offset, on) in enumerate(entries):
            if on == cpu:
                yield begin + offset, cycle, table, entry
        n += 1
        cycle += 1


def start_soon(calendar: Calendar, ms: int = 500) -> int:
    """Start table 0 at a moment this far ahead; if it has passed by then, at another one."""
    while True:
        try:
            return calendar.start(0, time.monotonic_ns() + ms * MS, MONOTONIC)
        except OSError as error:
            if error.errno != errno.ETIME:
                raise


def cycles_of(calendar: Calendar, ns: int) -> int:
    """Convert ns to TSC cycles."""
    return ns * calendar.query().tsc_khz // 1_000_000


def runs() -> None:
    """Threads on two CPUs, a function and a kernel thread get all windows, none early."""
    units = [Unit.user("a", 0), Unit.user("b", LAST_CPU), Unit.function_of("c", LAST_CPU, "step"),
             Unit.function_of("d", 0, "toil", apic_calendar.THREAD)]  # fmt: skip
    entries = [(2 * MS, 4 * MS, 0), (2 * MS, 4 * MS, 1), (8 * MS, MS, 3), (9 * MS, MS, 2)]
    with Calendar() as calendar:
        calendar.load(MAJOR, entries, units)
        tables = {0: (cycles_of(calendar, MAJOR),
                      [(cycles_of(calendar, o), units[u].cpu) for o, _, u in entries])}  # fmt: skip
        with process(worker(calendar, 0)), process(worker(calendar, 1)):
            until(lambda: counts(calendar, 0).tid and counts(calendar, 1).tid)
            start = start_soon(calendar)
            # A thread that requests no more than this is woken, too.
            poll, asked = select.poll(), time.monotonic()
            poll.register(calendar.fd, select.POLLRDNORM)
            assert poll.poll(30_000) and time.monotonic() - asked < 20
            until(lambda: all(counts(calendar, u).run >= 5 for u in range(4)))
            end = calendar.stop(apic_calendar.AT_BOUNDARY)
            until(lambda: not counts(calendar).state)
            found = account(calendar.receipts(), tables, start, end=end)
            assert found >= 20
        assert counts(calendar).error == errno.ECANCELED


def switched() -> None:
    """Another table takes over on both CPUs at the boundary that SWITCH has returned."""
    units = [Unit.function_of("a", 0, "step"), Unit.function_of("b", LAST_CPU, "step")]
    first = [(2 * MS, MS, 0), (6 * MS, MS, 0)]
    second = [(MS, MS, 1), (3 * MS, MS, 0)]
    with Calendar() as calendar:
        for entries in (first, second):
            calendar.load(MAJOR, entries, units if entries is first else None)
        tables = {
            n: (cycles_of(calendar, MAJOR),
                [(cycles_of(calendar, o), units[u].cpu) for o, _, u in entries])
            for n, entries in enumerate((first, second))
        }  # fmt: skip
        start = calendar.start()
        changes = []
        for n, table in enumerate((1, 0, 1)):
            fails(errno.EINVAL, calendar.switch, 7)
            # Far enough ahead to request another one before the switch has happened.
            ahead = cycles_of(calendar, (n + 1) * 1000 * MS)
            changes.append((calendar.switch(table, start + ahead), table))
            fails(errno.EBUSY, calendar.switch, 0)
            until(lambda table=table: counts(calendar).table == table)
        assert (changes[0][0] - start) % tables[0][0] <= 1
        end = calendar.stop(apic_calendar.AT_BOUNDARY)
        until(lambda: not counts(calendar).state)
        account(calendar.receipts(), tables, start, changes, end)


def told() -> None:
    """WAIT reports a new table to a thread that was parked when that table took over.

    A window that ends where the next table's first one begins delays a wake-up; this is no lead.
    """
    stop = mmap.mmap(-1, 4096)
    with Calendar() as calendar:
        units = [Unit.user("a", 0), Unit.user("b", 0)]
        calendar.load(MAJOR, [(10 * MS, 10 * MS, 0)], units)
        calendar.load(MAJOR, [(0, 4 * MS, 1), (10 * MS, 4 * MS, 0)])

        def spins() -> None:
            calendar.bind(0)
            assert not calendar.wait(0).status
            while not stop[0]:
                pass
            window = calendar.wait(0)
            assert (window.table, window.status & apic_calendar.SWITCHED) == (1, 8), window.status
            assert not calendar.wait(0).status & apic_calendar.SWITCHED

        def follows() -> None:
            calendar.bind(1)
            window = calendar.wait(1)
            assert window.table == 1
            assert window.lead <= most, window.lead

        most = cycles_of(calendar, int((PARAMETERS / "lead_max_ns").read_text()))
        with process(spins) as first, process(follows) as second:
            until(lambda: counts(calendar, 0).tid and counts(calendar, 1).tid)
            calendar.start()
            until(lambda: counts(calendar).overran)
            calendar.switch(1)
            until(lambda: counts(calendar).table == 1)
            before = counts(calendar).overran
            until(lambda: counts(calendar).overran > before + 1)
            stop[0] = 1
            assert (ended(first), ended(second)) == (0, 0)


def parked() -> None:
    """A thread that does not end is stopped, others run, and it resumes in its next window."""
    with Calendar() as calendar:
        calendar.load(MAJOR, [(2 * MS, 3 * MS, 0), (8 * MS, 3 * MS, 1)],
                      [Unit.user("a", 0), Unit.user("b", 0)])  # fmt: skip
        with process(worker(calendar, 0, spin_in=3)) as pid, process(worker(calendar, 1)):
            until(lambda: counts(calendar, 0).tid and counts(calendar, 1).tid)
            calendar.start()
            poll = select.poll()
            poll.register(calendar.fd, select.POLLPRI)
            assert poll.poll(60_000)
            until(lambda: counts(calendar, 0).overran >= 5)
            until(lambda: counts(calendar, 1).run >= 5)
            assert not poll.poll(0) or counts(calendar, 0).overran > 5
            # Parked threads can be killed.
            os.kill(pid, signal.SIGKILL)
            assert ended(pid) == -signal.SIGKILL
            missed = counts(calendar, 0).missed
            until(lambda: counts(calendar, 0).missed > missed)


def policies() -> None:
    """Overruns cause a signal, a kill or a lost window, as the unit says, and no late breaks."""
    before = set_parameter("backstop_us", 200_000)
    try:
        acted()
    finally:
        set_parameter("backstop_us", before)
    skipped()


def acted() -> None:
    """A signal and a kill take effect within the time that backstop_us gives."""
    for policy, signo in ((apic_calendar.SIGNAL, signal.SIGUSR1), (apic_calendar.KILL, 0)):
        with Calendar() as calendar:
            calendar.load(MAJOR, PLAIN, [Unit.user("a", 0, policy, signo)])
            with process(worker(calendar, 0, spin_in=2)) as pid:
                until(lambda calendar=calendar: counts(calendar).tid)
                calendar.start()
                assert ended(pid) == -(signo or signal.SIGKILL)
                time.sleep(0.4)
                found = counts(calendar)
                assert (found.overran, found.late_breaks) == (1, 0)


def outlasted() -> None:
    """A thread that does not stop is handled, even if another one overruns after it, and stops."""
    before = set_parameter("backstop_us", 50_000)
    mine, theirs = os.pipe()
    traced = TRACING / "events/apic_calendar/apic_calendar_late_break/enable"
    traced.write_text("1")
    (TRACING / "trace").write_text("")
    try:
        for policy in (apic_calendar.KILL, apic_calendar.PARK):
            with Calendar() as calendar:
                calendar.load(MAJOR, [(2 * MS, 3 * MS, 0), (8 * MS, 3 * MS, 1)],
                              [Unit.user("a", 0, policy), Unit.user("b", 0)])  # fmt: skip

                def waits(calendar=calendar) -> None:
                    calendar.bind(0)
                    calendar.wait(0)
                    os.read(mine, 1)

                with process(waits) as pid, process(worker(calendar, 1, spin_in=1)):
                    until(lambda calendar=calendar: all(counts(calendar, u).tid for u in (0, 1)))
                    calendar.start()
                    until(lambda calendar=calendar: counts(calendar, 0).late_breaks == 1, 20)
                    assert counts(calendar, 1).late_breaks == 0
                    if policy == apic_calendar.KILL:
                        assert ended(pid) == -signal.SIGKILL
        found = re.findall(r"apic_calendar_late_break: unit=(\d+) cycle=\d+ late=(\d+)$",
                           (TRACING / "trace").read_text(), re.M)  # fmt: skip
        assert [unit for unit, _ in found] == ["0", "0"], found
        with Calendar() as calendar:
            assert all(int(late) >= cycles_of(calendar, 50 * MS) for _, late in found), found
    finally:
        traced.write_text("0")
        os.close(theirs)
        os.close(mine)
        set_parameter("backstop_us", before)


def spared() -> None:
    """A late thread that is to be signalled keeps its priority, and is counted.

    One that is not to be stopped is not late.
    """
    mine, theirs = os.pipe()
    for action, signo, breaks in ((apic_calendar.SIGNAL, signal.SIGURG, 1),
                                  (apic_calendar.SKIP, 0, 0)):  # fmt: skip
        with Calendar() as calendar:
            calendar.load(5_000 * MS, PLAIN, [Unit.user("a", 0, action, signo)])

            def reads(calendar=calendar) -> None:
                calendar.bind(0)
                calendar.wait(0)
                os.read(mine, 1)

            with process(reads) as pid:
                until(lambda calendar=calendar, pid=pid: counts(calendar).tid and state(pid) == "S")
                calendar.start()
                until(lambda calendar=calendar: counts(calendar).overran)
                time.sleep(0.3)
                assert (counts(calendar).late_breaks, policy(pid)) == (breaks, os.SCHED_FIFO)
                os.write(theirs, b"x")
                assert ended(pid) == 0
    os.close(mine)
    os.close(theirs)


FUTEX_LOCK_PI, FUTEX_UNLOCK_PI = 6, 7


class Loan:
    """A lock of user space by which its owner inherits the priority of those who wait for it."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.shared = mmap.mmap(-1, 4096)
        self.lock = ctypes.c_uint32.from_buffer(self.shared)

    def futex(self, operation: int) -> None:
        found = self.libc.syscall(202, ctypes.byref(self.lock), operation, 0, None)
        assert found == 0, ctypes.get_errno()

    def take(self) -> None:
        self.lock.value = os.getpid()

    def give_back(self) -> None:
        self.futex(FUTEX_UNLOCK_PI)

    def lend(self) -> None:
        """Wait for the lock as a thread of SCHED_DEADLINE."""
        # struct sched_attr: SCHED_DEADLINE, runtime, deadline and period
        asked = struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10 * MS, 100 * MS, 100 * MS)
        assert self.libc.syscall(314, 0, asked, 0) == 0, ctypes.get_errno()
        self.futex(FUTEX_LOCK_PI)


def priority(pid: int) -> int:
    """Return a thread's present priority; -101 is that of SCHED_DEADLINE."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[15])


def lent() -> None:
    """A thread to which a thread of SCHED_DEADLINE lends its priority overruns as any other."""
    loan, (mine, theirs) = Loan(), os.pipe()

    def borrows(calendar: Calendar) -> None:
        calendar.bind(0)
        loan.take()
        calendar.wait(0)
        os.read(mine, 1)
        calendar.wait(0)
        loan.give_back()
        while True:
            calendar.wait(0)

    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
        with process(lambda: borrows(calendar)) as pid:
            until(lambda: loan.lock.value and state(pid) == "S")
            with process(loan.lend) as lender:
                until(lambda: priority(pid) == -101)
                calendar.start()
                until(lambda: counts(calendar).late_breaks)
                os.write(theirs, b"x")
                assert ended(lender) == 0
            before = counts(calendar)
            until(lambda: counts(calendar).run > before.run + 2)
            assert policy(pid) == os.SCHED_FIFO


def repaid() -> None:
    """A thread that has kept its priority because of such a loan loses it when the loan ends."""
    mine, theirs = os.pipe()

    def calls(calendar: Calendar, loan: Loan) -> None:
        calendar.bind(0)
        loan.take()
        calendar.wait(0)
        os.read(mine, 1)
        while True:
            calendar.wait(0)

    def spins(calendar: Calendar, loan: Loan) -> None:
        calendar.bind(0)
        loan.take()
        calendar.wait(0)
        while True:
            pass

    for borrows in (calls, spins):
        cpus, loan = os.sched_getaffinity(0), Loan()
        with Calendar() as calendar, contextlib.ExitStack() as last:
            calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
            with process(functools.partial(borrows, calendar, loan)) as pid:
                until(lambda loan=loan, pid=pid: loan.lock.value and state(pid) == "S")
                with process(loan.lend):
                    until(lambda pid=pid: priority(pid) == -101)
                    last.callback(os.sched_setaffinity, 0, cpus)
                    os.sched_setaffinity(0, {LAST_CPU})
                    calendar.start()
                    if borrows is calls:
                        until(lambda calendar=calendar: counts(calendar).late_breaks)
                    else:  # parked most of the time: the stop finds it there
                        until(lambda calendar=calendar, pid=pid: counts(calendar).overran
                              and state(pid) == "S")  # fmt: skip
                        calendar.stop()
                    assert policy(pid) == os.SCHED_FIFO
                until(lambda pid=pid: policy(pid) == os.SCHED_OTHER, 10)
                if borrows is calls:
                    os.write(theirs, b"x")
                    before = counts(calendar)
                    until(lambda calendar=calendar, run=before.run: counts(calendar).run > run + 2)
                    assert policy(pid) == os.SCHED_FIFO
    os.close(mine)
    os.close(theirs)


def skipped() -> None:
    """A window that is too long costs the unit a later window."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0, apic_calendar.SKIP)])

        def late() -> None:
            calendar.bind(0)
            for n in range(6):
                window = calendar.wait(0)
                while n == 2 and not late_enough(window):
                    pass

        def late_enough(window) -> bool:
            return calendar.status(0).overran

        with process(late) as pid:
            until(lambda: counts(calendar).tid)
            calendar.start()
            assert ended(pid) == 0
            found = counts(calendar)
            assert 1 <= found.skipped <= found.overran


def renewed() -> None:
    """A window that an overrun has cost is not lost when the calendar is stopped before it."""
    with Calendar() as calendar:
        calendar.load(20_000 * MS, PLAIN, [Unit.user("a", 0, apic_calendar.SKIP)])

        def late() -> None:
            calendar.bind(0)
            calendar.wait(0)
            while not counts(calendar).overran:
                pass
            while True:
                with contextlib.suppress(OSError):
                    calendar.wait(0)

        with process(late) as pid:
            until(lambda: counts(calendar).tid and state(pid) == "S")
            calendar.start()
            until(lambda: counts(calendar).overran)
            calendar.stop()
            until(lambda: state(pid) == "S")
            calendar.start()
            until(lambda: counts(calendar).run > 1 or counts(calendar).skipped, 20)
            results = [r.result for r in calendar.receipts()]
            assert results == [apic_calendar.TIMED_OUT, apic_calendar.RAN], results


def vacated() -> None:
    """UNBIND in a window ends it as WAIT does, and leaves its rest to the next wake-up."""
    gap = int((PARAMETERS / "gap_ns").read_text())
    with Calendar() as calendar:
        calendar.load(MAJOR, [(2 * MS, 8 * MS, 0), (10 * MS + gap, 4 * MS, 1)],
                      [Unit.user("a", LAST_CPU), Unit.user("b", LAST_CPU)])  # fmt: skip

        def leaves() -> None:
            calendar.bind(0)
            calendar.wait(0)
            calendar.unbind(0)

        def follows() -> None:
            calendar.bind(1)
            window = calendar.wait(1)
            # Until it has learnt, it is woken 10 us before its window.
            assert window.lead > cycles_of(calendar, gap + gap // 2), window.lead

        with process(leaves) as first, process(follows) as second:
            until(lambda: all(counts(calendar, u).tid for u in (0, 1)))
            until(lambda: state(first) == state(second) == "S")
            calendar.start()
            assert (ended(first), ended(second)) == (0, 0)
            receipt = next(calendar.receipts())
            assert (receipt.unit, receipt.result) == (0, apic_calendar.RAN), receipt.result


def degraded() -> None:
    """After the given number of overruns the other table takes over, even on an idle CPU."""
    with Calendar() as calendar:
        calendar.load(MAJOR, [(5 * MS, 2 * MS, 1)], [Unit.user("a", 0), Unit.user("b", LAST_CPU)])
        calendar.load(MAJOR, PLAIN, max_overruns=3, degraded=0)
        fails(errno.EINVAL, calendar.load, MAJOR, PLAIN, None, 3, 9)
        with process(worker(calendar, 0, spin_in=2)), process(worker(calendar, 1)):
            until(lambda: counts(calendar, 0).tid and counts(calendar, 1).tid)
            calendar.start(1)
            until(lambda: counts(calendar).table == 0)
            until(lambda: counts(calendar, 1).run > 2)
    # On time, although the overrunning thread keeps its CPU until long after the boundary.
    with Calendar() as calendar:
        calendar.load(MAJOR, [(5 * MS, 2 * MS, 1)],
                      [Unit.user("a", 0, apic_calendar.SKIP),
                       Unit.user("b", LAST_CPU)])  # fmt: skip
        calendar.load(MAJOR, PLAIN, max_overruns=1, degraded=0)
        with (process(worker(calendar, 0, spin_in=2, seconds=0.3)),
              process(worker(calendar, 1))):  # fmt: skip
            until(lambda: counts(calendar, 0).tid and counts(calendar, 1).tid)
            calendar.start(1)
            until(lambda: counts(calendar, 1).run > 2)
            first = next(r for r in calendar.receipts() if r.cpu == LAST_CPU)
            assert first.result != apic_calendar.PASSED, first.count


def recovered() -> None:
    """Overruns of the table before a switch do not count for the table after it."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0), Unit.function_of("b", 0, "step")])
        calendar.load(MAJOR, [(2 * MS, MS, 1)], max_overruns=1, degraded=0)
        with process(worker(calendar, spin_in=1)):
            until(lambda: counts(calendar).tid)
            calendar.start()
            until(lambda: counts(calendar).overran)
            # The last window of table 0 ends when the switch is complete.
            calendar.switch(1)
            until(lambda: counts(calendar, 1).run > 10, 20)
            found = counts(calendar)
            assert (found.table, found.next) == (1, apic_calendar.NONE), (found.table, found.next)


def notified() -> None:
    """A completion of io_uring does not resume a parked thread, because no signal came."""
    mine, theirs = os.pipe()
    with Calendar() as calendar:
        # Its next window is far away.
        calendar.load(5_000 * MS, PLAIN, [Unit.user("a", 0)])

        def polls() -> None:
            uring.Ring().poll(mine, select.POLLIN)
            worker(calendar, spin_in=1)()

        with process(polls) as pid:
            # A thread that does not wait yet would miss its window; the next one is far away.
            until(lambda: counts(calendar).tid and state(pid) == "S")
            calendar.start()
            until(lambda: counts(calendar).overran and state(pid) == "S")
            os.write(theirs, b"x")
            time.sleep(0.3)
            assert state(pid) == "S", state(pid)
            # A signal does resume it.
            os.kill(pid, signal.SIGKILL)
            assert ended(pid) == -signal.SIGKILL


def has_ended(end: int) -> bool:
    """Tell whether a pipe's other end is closed, for its reader."""
    return bool(select.select([end], [], [], 0)[0])


def locked() -> int:
    """Return a file with many locks of this process, which others search when they close it."""
    file = os.memfd_create("locked")
    for n in range(2000):
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * n)
    return file


def closing(file: int, ns: int) -> range:
    """Duplicate a file until it takes at least so long to close all; return their numbers."""
    for number in (2**n for n in itertools.count(7)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (number + 1000, number + 1000))
        for n in range(number):
            assert fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 100) == 100 + n
        before = time.monotonic_ns()
        os.closerange(100, 100 + number)
        if time.monotonic_ns() - before > ns:
            break
    for _ in range(number):
        fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 100)
    return range(100, 100 + number)


def closes() -> None:
    """A file that a thread has closed is gone soon after it is parked, not when it continues."""
    (mine, theirs), file = os.pipe(), locked()
    with Calendar() as calendar:
        calendar.load(3_600_000 * MS, [(2 * MS, 50 * MS, 0)], [Unit.user("a", 0)])

        def closer() -> None:
            # The work that releases it is queued before the window ends, in one system call.
            files = closing(file, 150 * MS)
            os.dup2(theirs, files[0])
            os.close(theirs)
            calendar.bind(0)
            calendar.wait(0)
            os.closerange(files[0], files[-1] + 1)
            while True:
                pass

        with process(closer) as pid:
            os.close(theirs)
            until(lambda: counts(calendar).tid and state(pid) == "S")
            calendar.start()
            until(lambda: counts(calendar).overran and state(pid) == "S")
            until(lambda: has_ended(mine), 10)
            assert (state(pid), policy(pid)) == ("S", os.SCHED_FIFO)
    os.close(mine)
    os.close(file)


def leaves() -> None:
    """A ring that others close is gone while a thread that has used it stays parked.

    Even if the thread has no window any more. It keeps its priority, and continues in the first
    window that it gets again.
    """
    (mine, theirs), pipe = os.pipe(), os.pipe()
    ring = uring.Ring()
    ring.register(theirs)
    os.close(theirs)
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0), Unit.function_of("b", 0, "step")])
        calendar.load(MAJOR, [(2 * MS, MS, 1)])

        def user() -> None:
            ring.poll(pipe[0], select.POLLIN)
            ring.close()
            worker(calendar, spin_in=1)()

        with process(user) as pid:
            until(lambda: counts(calendar).tid)
            calendar.start()
            until(lambda: counts(calendar).overran)
            calendar.switch(1)
            until(lambda: counts(calendar).table == 1 and state(pid) == "S")
            ring.close()
            until(lambda: has_ended(mine), 10)
            until(lambda: (state(pid), policy(pid)) == ("S", os.SCHED_FIFO), 10)
            before = counts(calendar).run
            calendar.switch(0)
            until(lambda: counts(calendar).run > before + 2)
            # It loses it for a moment if the host stops its CPU in a window.
            until(lambda: policy(pid) == os.SCHED_FIFO)
    for end in mine, *pipe:
        os.close(end)


def stopped() -> None:
    """SIGSTOP and SIGCONT cost a unit only its windows; so does a debugger."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", LAST_CPU)])
        with process(worker(calendar)) as pid:
            until(lambda: counts(calendar).tid)
            calendar.start()
            for _ in range(2):
                before = counts(calendar)
                until(lambda before=before: counts(calendar).run > before.run)
                os.kill(pid, signal.SIGSTOP)
                until(lambda: state(pid) == "T")
                before = counts(calendar)
                until(lambda before=before: counts(calendar).missed > before.missed + 1)
                os.kill(pid, signal.SIGCONT)
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.ptrace(0x4206, pid, 0, 0) == 0, ctypes.get_errno()  # PTRACE_SEIZE
            assert libc.ptrace(0x4207, pid, 0, 0) == 0  # PTRACE_INTERRUPT
            os.waitpid(pid, 0x40000000)
            before = counts(calendar)
            until(lambda: counts(calendar).missed > before.missed + 1)
            assert libc.ptrace(17, pid, 0, 0) == 0  # PTRACE_DETACH
            before = counts(calendar)
            until(lambda: counts(calendar).run > before.run + 2)


def killed() -> None:
    """A thread that dies in any state misses its windows; another one may take its place."""
    for spin_in in (0, 1):
        with Calendar() as calendar:
            calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
            with process(worker(calendar, spin_in=spin_in)) as pid:
                until(lambda calendar=calendar: counts(calendar).tid)
                fails(errno.EBUSY, calendar.bind, 0)
                calendar.start()
                until(lambda calendar=calendar: counts(calendar).run > 1)
                os.kill(pid, signal.SIGKILL)
                assert ended(pid) == -signal.SIGKILL
            before = counts(calendar)
            until(lambda calendar=calendar, before=before: counts(calendar).missed > before.missed)
            with process(worker(calendar)):
                before = counts(calendar)
                until(lambda calendar=calendar, before=before: counts(calendar).run > before.run)


def succeeded() -> None:
    """The successor of a thread that is about to end is stopped as any other thread.

    A thread's last window ends while the kernel still frees its memory.
    """
    stop = mmap.mmap(-1, 4096)
    major = 2 * MS
    with Calendar() as calendar:
        calendar.load(major, [(MS // 5, MS, 0)], [Unit.user("a", LAST_CPU)])

        def ends() -> None:
            much = mmap.mmap(-1, 384 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError):  # PREEMPT_RT has no huge pages
                much.madvise(mmap.MADV_NOHUGEPAGE)
            much.madvise(MADV_POPULATE_WRITE)
            calendar.bind(0)
            calendar.wait(0)
            os._exit(0)

        def follows() -> None:
            os.sched_setaffinity(0, {0})
            # By then the other thread has lost its priority, and leaves the CPU to this one.
            while not counts(calendar).late_breaks:
                pass
            time.sleep(0.0001)
            while fcntl_error(lambda: calendar.bind(0)):
                pass
            calendar.wait(0)
            while not stop[0]:
                pass
            status = calendar.wait(0).status
            assert status & apic_calendar.BROKE, status

        with process(ends), process(follows) as pid:
            until(lambda: counts(calendar).tid)
            calendar.start()
            until(lambda: counts(calendar).tid == pid)
            time.sleep(0.3)
            stop[0] = 1
            assert ended(pid) == 0


def executed() -> None:
    """exec() closes the file; closing the last file stops the calendar.

    This also holds for exec() by a thread whose sibling is parked and cannot resume by itself.
    """

    def itself(calendar: Calendar) -> None:
        calendar.bind(0)
        calendar.start()
        calendar.wait(0)

    nothing = mmap.mmap(-1, 1 << 33, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)

    def sister(calendar: Calendar) -> None:
        def spins() -> None:
            calendar.bind(0)
            calendar.wait(0)
            zlib.crc32(nothing)  # this takes long, and meanwhile Python runs other threads

        threading.Thread(target=spins, daemon=True).start()
        tid = until(lambda: counts(calendar).tid)
        until(lambda: state(tid) == "S")  # it waits for its window: the next one is far away
        calendar.start()
        until(lambda: counts(calendar).overran and state(tid) == "S")

    for how, major in ((itself, MAJOR), (sister, 5_000 * MS)):
        executes(how, major)


def executes(how, major: int) -> None:
    """Have a process use a calendar and exec(); check what is left of the calendar."""
    mine, theirs = os.pipe()

    def begins() -> None:
        calendar = Calendar()
        calendar.load(major, PLAIN, [Unit.user("a", 0)])
        how(calendar)
        os.set_inheritable(theirs, True)
        os.execv("/bin/sh", ["sh", "-c", f"chrt -p $$ >&{theirs}; sleep 1000"])

    with process(begins):
        os.close(theirs)  # if the process fails it writes nothing, and the read ends
        text = os.read(mine, 1000).decode()
        os.close(mine)
        assert "SCHED_OTHER" in text, text
        with Calendar() as calendar:
            calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
            until(lambda: not fcntl_error(calendar.start))


BEATS = 100 * MS
CYCLE = [(2 * MS, 40 * MS, 0), (60 * MS, 20 * MS, 1)]
PTRACE_CONT, PTRACE_ATTACH, PTRACE_DETACH = 7, 16, 17


@contextlib.contextmanager
def neighbours(does):
    """Run a calendar with two units on one CPU: a process that runs does(), and a neighbour.

    Yield the calendar, the first process, and a function that waits until the second unit has had
    three windows in a row.
    """
    with Calendar() as calendar:
        calendar.load(BEATS, CYCLE, [Unit.user("a", LAST_CPU), Unit.user("b", LAST_CPU)])

        def in_a_row() -> bool:
            before = counts(calendar, 1)
            until(lambda: counts(calendar, 1).run > before.run + 2, 10)
            found = counts(calendar, 1)
            return (found.missed, found.never_ran) == (before.missed, before.never_ran)

        def beats() -> None:
            # The emulator sometimes delays CPUs, and units miss windows.
            until(in_a_row, 30)

        with process(lambda: does(calendar)) as pid, process(worker(calendar, 1)):
            until(lambda: counts(calendar, 0).tid and counts(calendar, 1).tid)
            calendar.start()
            until(lambda: counts(calendar, 1).run)
            try:
                yield calendar, pid, beats
            finally:
                # If it keeps the CPU, even the other process can't die.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def in_states():
    """Yield a state, a unit's function that enters it, how to leave it, and a check of it."""
    free, pipe = mmap.mmap(-1, 4096), os.pipe()

    def spins() -> None:
        while not free[0]:
            pass

    def leave() -> None:
        free[0] = 1

    for name, works, there, leaves in (
        ("waits", lambda: None, lambda pid, found: found.run and state(pid) == "S", leave),
        ("runs", spins, lambda pid, found: found.overran and state(pid) == "R", leave),
        ("parked", spins, lambda pid, found: found.overran and state(pid) == "S", leave),
        ("reads", lambda: os.read(pipe[0], 1), lambda _, found: found.late_breaks,
         lambda: os.write(pipe[1], b"x")),
    ):  # fmt: skip

        def does(calendar: Calendar, works=works) -> None:
            calendar.bind(0)
            calendar.wait(0)
            works()
            while True:
                calendar.wait(0)

        free[0] = 0
        yield name, does, leaves, there
    for end in pipe:
        os.close(end)


def stop_it(pid: int, beats) -> None:
    """Stop a process, then continue it."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")
    beats()
    os.kill(pid, signal.SIGCONT)


def debug_it(pid: int, beats) -> None:
    """Attach to a process as a debugger does, continue it, stop it again, and detach."""
    libc = ctypes.CDLL(None, use_errno=True)

    def asks(request: int) -> None:
        assert libc.ptrace(request, pid, 0, 0) == 0, (request, ctypes.get_errno())

    asks(PTRACE_ATTACH)
    os.waitpid(pid, 0)
    beats()
    asks(PTRACE_CONT)
    beats()
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, 0)
    asks(PTRACE_DETACH)


def freeze_it(pid: int, beats) -> None:
    """Freeze a process with a cgroup, then thaw it."""
    top = Path("/dev/shm/cgroup")
    group, home = top / "frozen", top / "cgroup.procs"
    top.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", str(top)], check=True)
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(pid))
        (group / "cgroup.freeze").write_text("1")
        until(lambda: "frozen 1" in (group / "cgroup.events").read_text())
        beats()
        (group / "cgroup.freeze").write_text("0")
        home.write_text(str(pid))
    finally:
        group.rmdir()
        subprocess.run(["umount", str(top)], check=True)
        top.rmdir()


def undisturbed() -> None:
    """Stopping, debugging or freezing a unit in any state leaves its neighbour's windows alone.

    When the unit calls again, it is a unit as before.
    """
    for how in (stop_it, debug_it, freeze_it):
        for name, does, leave, there in in_states():
            print(how.__name__, name, flush=True)
            with neighbours(does) as (calendar, pid, beats):
                until(lambda pid=pid, there=there: there(pid, counts(calendar)))  # noqa: B023
                how(pid, beats)
                beats()
                leave()
                before = counts(calendar)
                until(lambda before=before: counts(calendar).run > before.run + 2, 20)  # noqa: B023
                assert os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
                beats()


def died() -> None:
    """Killing a unit in any state leaves its neighbour's windows alone, and allows a successor."""
    for name, does, _, there in in_states():
        print(name, flush=True)
        with neighbours(does) as (calendar, pid, beats):
            until(lambda pid=pid, there=there: there(pid, counts(calendar)))  # noqa: B023
            os.kill(pid, signal.SIGKILL)
            assert ended(pid) == -signal.SIGKILL
            beats()
            with process(worker(calendar)):
                before = counts(calendar)
                until(lambda before=before: counts(calendar).run > before.run + 2, 20)  # noqa: B023
                beats()


def handled() -> None:
    """A signal's handler in a unit that waits leaves its neighbour's windows alone.

    When the unit waits again, it is a unit as before.
    """
    goes_on = mmap.mmap(-1, 4096)

    def does(calendar: Calendar) -> None:
        def spins(*_) -> None:
            while not goes_on[0]:
                pass

        signal.signal(signal.SIGUSR1, spins)
        calendar.bind(0)
        while True:
            with contextlib.suppress(InterruptedError):
                calendar.wait(0)

    with neighbours(does) as (calendar, pid, beats):
        until(lambda: counts(calendar).run and state(pid) == "S")
        os.kill(pid, signal.SIGUSR1)
        until(lambda: state(pid) == "R")
        beats()
        goes_on[0] = 1
        before = counts(calendar)
        until(lambda: counts(calendar).run > before.run + 2, 20)
        assert policy(pid) == os.SCHED_FIFO
        beats()


@contextlib.contextmanager
def hogged(cpu: int):
    """Have a process of SCHED_FIFO keep a CPU from all that do not outrank it, without limit."""
    limits = {Path("/proc/sys/kernel/sched_rt_runtime_us"): "-1",
              Path(f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"): "0"}  # fmt: skip
    before = {limit: limit.read_text() for limit in limits if limit.exists()}
    spins = mmap.mmap(-1, 4096)

    def hogs() -> None:
        os.closerange(3, 1000)  # others close theirs meanwhile
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        spins[0] = 1
        while True:
            pass

    try:
        for limit in before:
            limit.write_text(limits[limit])
        with process(hogs):
            until(lambda: spins[0])
            yield
    finally:
        # The other way round, 6.12 fails with EBUSY.
        for limit, text in reversed(before.items()):
            limit.write_text(text)


def preempted() -> None:
    """A unit that loses the CPU as it gives up its priority delays nothing on other CPUs.

    Other units are parked and continue, and late ones lose their priority. START does not wait for
    it. On kernels that preempt themselves.
    """
    cpus, (mine, theirs), blocks = os.sched_getaffinity(0), os.pipe(), mmap.mmap(-1, 4096)
    with Calendar() as calendar:
        calendar.load(MAJOR, [(2 * MS, 3 * MS, 1), (10 * MS, 3 * MS, 2)],
                      [Unit.user("a", 0), Unit.user("b", LAST_CPU),
                       Unit.user("c", LAST_CPU)])  # fmt: skip

        def waits() -> None:
            signal.signal(signal.SIGUSR1, lambda *_: None)
            calendar.bind(0)
            while True:
                with contextlib.suppress(OSError):
                    calendar.wait(0)

        def reads() -> None:
            calendar.bind(2)
            while not blocks[0]:
                calendar.wait(2)
            os.read(mine, 1)
            while True:
                with contextlib.suppress(OSError):
                    calendar.wait(2)

        with (process(waits) as pid, process(worker(calendar, 1, spin_in=1)),
              process(reads) as late, contextlib.ExitStack() as last):  # fmt: skip
            until(lambda: all(counts(calendar, unit).tid for unit in range(3)))
            calendar.start()
            until(lambda: counts(calendar, 1).overran and counts(calendar, 2).run)
            last.callback(os.sched_setaffinity, 0, cpus)
            os.sched_setaffinity(0, {LAST_CPU})
            with hogged(0):
                os.kill(pid, signal.SIGUSR1)
                until(lambda: policy(pid) == os.SCHED_OTHER, 10)
                blocks[0] = 1
                until(lambda: counts(calendar, 2).late_breaks, 10)
                until(lambda: policy(late) == os.SCHED_OTHER, 10)
                before = counts(calendar, 1).overran
                until(lambda: counts(calendar, 1).overran > before + 5, 10)
                calendar.stop()
                # Even at no priority. It can't be killed before the CPU is free.
                starter = last.enter_context(process(calendar.start))
                until(lambda: counts(calendar).state, 10)
                assert ended(starter) == 0
            os.write(theirs, b"x")
            until(lambda: policy(pid) == policy(late) == os.SCHED_FIFO, 20)
    os.close(mine)
    os.close(theirs)


def abandoned() -> None:
    """Closing the file waits for no unit that loses the CPU as it gives up its priority.

    The unit gets its CPUs back, and continues on another one. On kernels that preempt themselves.
    """
    cpus, calendar = os.sched_getaffinity(0), Calendar()
    # The next window is hours away.
    calendar.load(10_000_000 * MS, [(2 * MS, 500 * MS, 0)], [Unit.user("a", 0)])
    runs_on, signalled = mmap.mmap(-1, 4096), mmap.mmap(-1, 4096)

    def handler(*_) -> None:
        signalled[0] = 1

    def does() -> None:
        signal.signal(signal.SIGUSR1, handler)
        calendar.bind(0)
        calendar.wait(0)
        calendar.close()
        while True:
            runs_on[0] += not runs_on[0]

    with process(does) as pid, contextlib.ExitStack() as last:
        until(lambda: counts(calendar).tid and state(pid) == "S")
        calendar.start()
        until(lambda: counts(calendar).overran and state(pid) == "S")
        last.callback(os.sched_setaffinity, 0, cpus)
        os.sched_setaffinity(0, {LAST_CPU})
        with hogged(0):
            os.kill(pid, signal.SIGUSR1)
            until(lambda: policy(pid) == os.SCHED_OTHER, 10)
            closes = background(calendar.close)
            until(lambda: not closes.is_alive(), 10)
            assert os.sched_getaffinity(pid) == cpus
            runs_on[0] = 0
            until(lambda: runs_on[0] and signalled[0], 20)


def resigned() -> None:
    """A thread that loses the CPU in UNBIND delays nobody, and frees its unit when it goes on.

    BIND gets a thread to its CPU although another one, below the priority of units, keeps it.
    """
    cpus, asked = os.sched_getaffinity(0), mmap.mmap(-1, 4096)
    with Calendar() as calendar, contextlib.ExitStack() as last:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0), Unit.user("b", LAST_CPU),
                                     Unit.user("c", 0)])  # fmt: skip

        def resigns() -> None:
            calendar.bind(0)
            while not asked[0]:
                time.sleep(0.01)
            calendar.unbind(0)

        with process(resigns) as pid:
            until(lambda: counts(calendar).tid)
            last.callback(os.sched_setaffinity, 0, cpus)
            os.sched_setaffinity(0, {LAST_CPU})
            with hogged(0):
                asked[0] = 1
                until(lambda: policy(pid) == os.SCHED_OTHER, 10)
                loads = background(lambda: calendar.load(MAJOR, PLAIN))
                until(lambda: not loads.is_alive(), 10)
                for unit in (1, 2):
                    # Killed later: a signal takes its priority.
                    other = last.enter_context(process(worker(calendar, unit)))
                    until(lambda other=other, unit=unit: counts(calendar, unit).tid
                          and state(other) == "S", 10)  # fmt: skip
                # A kernel that does not preempt itself has ended UNBIND by now.
                with process(lambda: calendar.bind(0)) as other:
                    assert ended(other) in (0, errno.EBUSY)
            assert ended(pid) == 0
            calendar.bind(0)
            calendar.unbind(0)


def keeper() -> int:
    """Return the number of the kernel thread of the only calendar that is open."""
    for file in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if file.read_text() == "apic_cal/keeper\n":
                return int(file.parent.name)
    raise AssertionError("it has none")


def halted() -> None:
    """A unit that stops the calendar in its window has stopped it before it loses its priority.

    Then it may lose the CPU, on kernels that preempt themselves.
    """
    cpus = os.sched_getaffinity(0)
    with Calendar() as calendar, contextlib.ExitStack() as last:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])

        def stops() -> None:
            calendar.bind(0)
            calendar.wait(0)
            calendar.stop()
            while True:
                pass

        # So that it takes the unit's priority at once.
        os.sched_setaffinity(keeper(), {0})
        with process(stops) as pid:
            until(lambda: counts(calendar).tid and state(pid) == "S")
            last.callback(os.sched_setaffinity, 0, cpus)
            os.sched_setaffinity(0, {LAST_CPU})
            with hogged(0):
                calendar.start()
                until(lambda: policy(pid) == os.SCHED_OTHER, 20)
                again = background(lambda: fcntl_error(calendar.stop))
                until(lambda: not again.is_alive(), 10)
                assert fcntl_error(calendar.start) == 0


def pinned() -> None:
    """Closing the file waits for a thread that can't be moved at the moment, but not for others.

    Another one, below the priority of units, wants its CPU. On kernels that preempt themselves.
    """
    cpus, calendar, pins = os.sched_getaffinity(0), Calendar(), mmap.mmap(-1, 4096)
    calendar.load(MAJOR, PLAIN, [Unit.user("a", LAST_CPU)])

    def does() -> None:
        os.sched_setaffinity(0, {0})
        calendar.bind(0)
        calendar.close()
        while not pins[0]:
            time.sleep(0.01)
        with open(f"/sys/module/{PULSE}/parameters/pin_ms", "w") as pin:
            pins[1] = 1
            pin.write("500")
            pin.flush()
        pins[1] = 0
        while True:
            time.sleep(1)

    with process(does) as pid, contextlib.ExitStack() as last:
        until(lambda: counts(calendar).tid and state(pid) == "S")
        last.callback(os.sched_setaffinity, 0, cpus)
        os.sched_setaffinity(0, {0})
        with hogged(LAST_CPU):
            pins[0] = 1
            until(lambda: pins[1])
            time.sleep(0.05)
            closes = background(calendar.close)
            until(lambda: not closes.is_alive(), 10)
            assert (os.sched_getaffinity(pid), policy(pid)) == ({0}, os.SCHED_OTHER)
            until(lambda: not pins[1], 20)


def unhindered() -> None:
    """A CPU goes offline although a unit of it, on another, loses the CPU with its priority.

    On kernels that preempt themselves.
    """
    online = Path(f"/sys/devices/system/cpu/cpu{LAST_CPU}/online")
    cpus = os.sched_getaffinity(0)
    with Calendar() as calendar, contextlib.ExitStack() as last:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", LAST_CPU)])

        def strays() -> None:
            signal.signal(signal.SIGUSR1, lambda *_: None)
            calendar.bind(0)
            os.sched_setaffinity(0, {1})
            while True:
                with contextlib.suppress(OSError):
                    calendar.wait(0)

        with process(strays) as pid:
            until(lambda: os.sched_getaffinity(pid) == {1} and state(pid) == "S")
            last.callback(os.sched_setaffinity, 0, cpus)
            last.callback(online.write_text, "1")
            os.sched_setaffinity(0, cpus - {1})
            with hogged(1):
                os.kill(pid, signal.SIGUSR1)
                until(lambda: policy(pid) == os.SCHED_OTHER, 10)
                goes = background(lambda: online.write_text("0"))
                until(lambda: not goes.is_alive(), 10)


PTRACE_SYSCALL, PTRACE_SEIZE, PTRACE_INTERRUPT = 24, 0x4206, 0x4207
PTRACE_O_TRACEEXIT = 0x40


def traced() -> None:
    """A thread that has begun to exit is not parked, although its tracer has task work run."""
    libc = ctypes.CDLL(None, use_errno=True)
    ends = mmap.mmap(-1, 4096)

    def does(calendar: Calendar) -> None:
        calendar.bind(0)
        calendar.wait(0)
        ends[0] = 1
        while ends[0] == 1:
            pass
        os._exit(0)

    with Calendar() as calendar:
        # The next window is hours away.
        calendar.load(10_000_000 * MS, [(2 * MS, 2_000 * MS, 0)], [Unit.user("a", LAST_CPU)])
        with process(lambda: does(calendar)) as pid:

            def asks(request: int, data: int = 0) -> None:
                assert libc.ptrace(request, pid, 0, data) == 0, (request, ctypes.get_errno())

            def stops() -> None:
                until(lambda: os.waitpid(pid, os.WNOHANG)[0], 20)

            until(lambda: counts(calendar).tid)
            calendar.start()
            until(lambda: ends[0])
            asks(PTRACE_SEIZE, PTRACE_O_TRACEEXIT)
            asks(PTRACE_INTERRUPT)
            stops()
            ends[0] = 2
            # It stops as it enters exit_group(), the only system call that is left.
            asks(PTRACE_SYSCALL)
            stops()
            assert not counts(calendar).overran
            until(lambda: counts(calendar).overran)
            asks(PTRACE_CONT)
            try:
                stops()  # before it exits
                asks(PTRACE_CONT)
                until(lambda: state(pid) == "Z", 20)
            finally:
                calendar.stop()  # nothing else would end a park


def crashed() -> None:
    """A thread that ends early in its window has not overrun."""
    with Calendar() as calendar:
        calendar.load(MAJOR, [(5 * MS, 2 * MS, 1)], [Unit.user("a", LAST_CPU), Unit.user("b", 0)])
        calendar.load(5_000 * MS, [(2 * MS, 4_000 * MS, 0)], max_overruns=1, degraded=0)

        def does() -> None:
            calendar.bind(0)
            calendar.wait(0)
            os._exit(0)

        with process(does) as pid:
            until(lambda: counts(calendar).tid)
            calendar.start(1)
            until(lambda: state(pid) == "Z")
            until(lambda: counts(calendar).run)
            found = counts(calendar)
            assert (found.overran, found.late_breaks, found.table) == (0, 0, 1), found
            assert next(r for r in calendar.receipts() if r.unit == 0).result == apic_calendar.RAN


def filtered() -> None:
    """A unit that breaks its seccomp filter is killed, and its neighbour is not."""

    def does(calendar: Calendar, action: int) -> None:
        calendar.bind(0)
        calendar.wait(0)
        filter_calls(
            (0x20, 0, 0, 0),  # number of the system call
            (0x15, 0, 1, 110),  # getppid
            (0x06, 0, 0, action),
            (0x06, 0, 0, 0x7FFF0000),
        )  # fmt: skip
        calendar.wait(0)
        os.getppid()

    for action in (0x80000000, 0):  # kill the process, or the thread
        with neighbours(lambda calendar, action=action: does(calendar, action)) as (
            calendar, pid, beats,
        ):  # fmt: skip
            assert ended(pid) == -signal.SIGSYS
            beats()
            before = counts(calendar)
            until(lambda before=before: counts(calendar).missed > before.missed)  # noqa: B023


def begot() -> None:
    """A unit's child is no unit: it has no priority and no window, and costs its parent none."""
    found = mmap.mmap(-1, 4096)

    def does(calendar: Calendar) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the child leaves no zombie
        calendar.bind(0)
        calendar.wait(0)
        if os.fork():
            while True:
                calendar.wait(0)
        assert policy() == os.SCHED_OTHER
        fails(errno.ESRCH, calendar.wait, 0)
        fails(errno.ESRCH, calendar.unbind, 0)
        struct.pack_into("I", found, 0, os.getpid())
        while True:
            pass

    with neighbours(does) as (calendar, _, beats):
        pid = until(lambda: struct.unpack_from("I", found)[0])

        def runs_in_each() -> bool:
            before = counts(calendar)
            beats()
            found = counts(calendar)
            return found.run > before.run and found.missed == before.missed

        try:
            # Windows end during the fork, which takes long on a kernel with run-time checks.
            until(runs_in_each, 60)
        finally:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists())


def replaced() -> None:
    """A program that a unit executes stays the unit while another process has the file open.

    It runs in the unit's windows only.
    """

    def does(calendar: Calendar) -> None:
        calendar.bind(0)
        calendar.wait(0)
        os.execv("/bin/sh", ["sh", "-c", "while :; do :; done"])

    with neighbours(does) as (calendar, pid, beats):
        until(lambda: counts(calendar).overran > 2)
        assert counts(calendar).tid == pid
        beats()
        until(lambda: state(pid) == "S")
        os.kill(pid, signal.SIGKILL)
        assert ended(pid) == -signal.SIGKILL
        beats()


def strayed() -> None:
    """A unit that changes its CPU or its priority is stopped as any other.

    Its neighbour has its windows. The unit keeps what it has set, but START moves it back to its
    CPU.
    """
    spins = mmap.mmap(-1, 4096)

    def goes() -> None:
        os.sched_setaffinity(0, {0})

    def sinks() -> None:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    for leaves in (goes, sinks):

        def does(calendar: Calendar, leaves=leaves) -> None:
            calendar.bind(0)
            calendar.wait(0)
            leaves()
            while spins[0]:
                pass
            while True:
                with contextlib.suppress(OSError):
                    calendar.wait(0)
                    leaves()

        print(leaves.__name__, flush=True)
        spins[0] = 1
        with neighbours(does) as (calendar, pid, beats):
            for n in range(3):
                until(lambda n=n: counts(calendar).overran > n and state(pid) == "S")  # noqa: B023
            beats()
            spins[0] = 0
            before = counts(calendar)
            until(lambda before=before: counts(calendar).run > before.run + 2, 20)  # noqa: B023
            beats()
            assert os.sched_getaffinity(pid) == ({0} if leaves == goes else {LAST_CPU})
            calendar.stop()
            until(lambda: state(pid) == "S")  # noqa: B023
            start_soon(calendar)
            assert os.sched_getaffinity(pid) == {LAST_CPU}


def fcntl_error(function) -> int:
    """Return the errno of a function, or 0."""
    try:
        function()
    except OSError as error:
        return error.errno
    return 0


def owned() -> None:
    """A CPU runs one calendar at a time, until that one stops or is closed."""
    first, second = Calendar(), Calendar()
    for calendar in (first, second):
        calendar.load(MAJOR, [(2 * MS, MS, 0)], [Unit.function_of("a", 0, "step")])
    first.start()
    fails(errno.EBUSY, first.start)
    fails(errno.EBUSY, second.start)
    first.stop()
    second.start()
    fails(errno.EBUSY, first.start)
    second.close()
    first.start()
    until(lambda: counts(first).run > 2)
    first.close()


def restarted() -> None:
    """A thread that calls again right after a stop has windows after the next start."""
    cpus = range(LAST_CPU + 1)
    major, window = MS // 5, MS // 100
    # This makes stopping all CPUs take longer.
    trigger = TRACING / "events/apic_calendar/apic_calendar_stop/trigger"
    trigger.write_text("stacktrace")
    os.sched_setaffinity(0, {0})
    try:
        with Calendar() as calendar:
            units = [Unit.function_of(f"u{n}", n, "step") for n in cpus]
            units.append(Unit.function_of("a", LAST_CPU, "toil", apic_calendar.THREAD))
            last = len(units) - 1
            entries = [(2 * window * n, window, last) for n in range(2, 9)]
            calendar.load(major, [(0, window, 0), *entries], units)
            for _ in range(1000):
                before = counts(calendar, last).run
                calendar.start()
                until(lambda before=before: counts(calendar, last).run > before, 10)
                calendar.stop()
    finally:
        os.sched_setaffinity(0, set(cpus))
        trigger.write_text("!stacktrace")


def announced() -> None:
    """POLLPRI reports that a calendar has stopped, for any reason, until the next STATUS."""
    poll = select.poll()
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.function_of("a", 0, "step")])
        poll.register(calendar.fd, select.POLLPRI)
        for stop in (calendar.stop, lambda: calendar.stop(apic_calendar.AT_BOUNDARY)):
            calendar.start()
            until(lambda: counts(calendar).run and not poll.poll(0))
            stop()
            assert poll.poll(60_000)
            found = counts(calendar)
            assert (found.state, found.error) == (0, errno.ECANCELED)
            assert not poll.poll(0)
            # Nothing delays the next start any more.
            calendar.start()
            calendar.stop()


def adrift() -> None:
    """A thread whose window a stop has ended keeps no other from its CPU in the next run.

    It has its priority again when it calls.
    """
    spins = mmap.mmap(-1, 4096)
    with Calendar() as calendar:
        calendar.load(20_000 * MS, [(2 * MS, 15_000 * MS, 0)],
                      [Unit.user("a", LAST_CPU, apic_calendar.KILL),
                       Unit.function_of("b", LAST_CPU, "toil", apic_calendar.THREAD)])  # fmt: skip
        calendar.load(MAJOR, [(2 * MS, 8 * MS, 1)])

        def works() -> None:
            calendar.bind(0)
            calendar.wait(0)
            spins[0] = 1
            while spins[0]:
                pass
            fails(errno.ECANCELED, calendar.wait, 0)
            assert policy() == os.SCHED_FIFO

        with process(works) as pid:
            until(lambda: counts(calendar).tid)
            calendar.start()
            until(lambda: spins[0])
            calendar.stop()
            calendar.start(1)
            until(lambda: counts(calendar, 1).run > 2, 20)
            assert os.sched_getscheduler(pid) == os.SCHED_OTHER
            spins[0] = 0
            assert ended(pid) == 0


def asleep() -> None:
    """A stop, or closing the file, wakes no thread that sleeps elsewhere than in WAIT."""
    libc, signals, done = ctypes.CDLL(None, use_errno=True), bytearray(128), mmap.mmap(-1, 4096)
    signals[(signal.SIGUSR1 - 1) // 8] |= 1 << (signal.SIGUSR1 - 1) % 8
    asked = (ctypes.c_char * 128).from_buffer(signals)

    def waits(fd: int) -> None:
        fcntl.ioctl(fd, apic_calendar.BIND, apic_calendar.Bind(size=8, unit=0))
        os.close(fd)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        while not done[0]:
            assert libc.sigtimedwait(asked, None, struct.pack("qq", 0, 200 * MS)) == -1
            assert ctypes.get_errno() == errno.EAGAIN, ctypes.get_errno()

    calendar = Calendar()
    calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
    with process(lambda: waits(calendar.fd)) as pid:
        until(lambda: counts(calendar).tid and state(pid) == "S")
        for _ in range(5):
            calendar.start()
            time.sleep(0.05)
            calendar.stop()
        calendar.close()
        time.sleep(0.05)
        done[0] = 1
        assert ended(pid) == 0


def reported() -> None:
    """A stop is reported to a thread that gets the CPU only when the calendar runs again.

    A parked thread continues then, without its priority.
    """
    spins, major, cpus = mmap.mmap(-1, 4096), 20_000 * MS, range(LAST_CPU + 1)
    for parks in (0, 1):
        spins[0] = parks
        with Calendar() as calendar:
            calendar.load(major, PLAIN, [Unit.user("a", LAST_CPU)])
            calendar.load(major, [(2 * MS, 15_000 * MS, 0)])

            def works(calendar=calendar) -> None:
                calendar.bind(0)
                calendar.wait(0)
                while spins[0]:
                    pass
                calendar.wait(0)

            with process(works) as pid:
                until(lambda calendar=calendar: counts(calendar).tid)
                calendar.start()
                until(lambda calendar=calendar, pid=pid: counts(calendar).run
                      and state(pid) == "S")  # fmt: skip
                os.sched_setaffinity(0, {LAST_CPU})
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
                try:
                    calendar.stop()
                    calendar.start(1)
                    end = time.monotonic() + 0.1
                    while time.monotonic() < end:
                        pass
                finally:
                    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
                    os.sched_setaffinity(0, set(cpus))
                if parks:
                    until(lambda pid=pid: os.sched_getscheduler(pid) == os.SCHED_OTHER, 10)
                spins[0] = 0
                assert ended(pid) == errno.ECANCELED


def closed() -> None:
    """A calendar may be closed while it reaches the boundary where it stops."""
    major, window, rng = MS // 5, MS // 100, random.Random(1)
    units = [Unit.function_of(f"u{n}", n % (LAST_CPU + 1), "toil", apic_calendar.THREAD)
             for n in range(8)]  # fmt: skip
    entries = [(2 * window * n, window, n) for n in range(8)]
    for _ in range(50):
        with Calendar() as calendar:
            calendar.load(major, entries, units)
            calendar.start()
            calendar.stop(apic_calendar.AT_BOUNDARY)
            # That boundary is two or three major cycles after now, or after the start.
            end = time.monotonic_ns() + rng.randrange(MS + 4 * major)
            while time.monotonic_ns() < end:
                pass
        with Calendar() as calendar:
            calendar.load(major, entries[:1], units[:1])
            calendar.start()


def everywhere() -> None:
    """Windows on all CPUs leave a part of each CPU to others; killing the holders stops them.

    The units never call again: each one is stopped at the end of each window.
    """
    cpus, cycles = range(LAST_CPU + 1), mmap.mmap(-1, 4096)

    def holds() -> None:
        os.setsid()
        calendar = Calendar()
        calendar.load(MAJOR, [(2 * MS, 17 * MS, n) for n in cpus],
                      [Unit.user(f"u{n}", n) for n in cpus])  # fmt: skip
        for n in cpus:
            if not os.fork():
                calendar.bind(n)
                calendar.wait(n)
                while True:
                    pass
        until(lambda: all(counts(calendar, n).tid for n in cpus))
        calendar.start()
        while True:
            cycles[0] = min(255, min(counts(calendar, n).overran for n in cpus))
            time.sleep(0.01)

    with process(holds) as pid, Calendar() as calendar:
        calendar.load(MAJOR, PLAIN[:1], [Unit.function_of("a", LAST_CPU, "step")])
        try:
            until(lambda: cycles[0] > 10)
            fails(errno.EBUSY, calendar.start)
        finally:
            os.killpg(pid, signal.SIGKILL)
        until(lambda: not fcntl_error(calendar.start))


def unstable() -> None:
    """If the TSC is unstable, only calendars of one CPU can start.

    The parameter allow_unstable lifts this rule.
    """
    allow, expected = PARAMETERS / "allow_unstable", ", unstable" in INFO.read_text()
    print("unstable" if expected else "stable")
    allow.write_text("N")
    try:
        for cpu in (0, LAST_CPU):
            with Calendar() as calendar:
                calendar.load(MAJOR, [(2 * MS, MS, 0), (8 * MS, MS, 1)],
                              [Unit.function_of("a", 0, "step"),
                               Unit.function_of("b", cpu, "step")])  # fmt: skip
                refused = expected and cpu
                assert fcntl_error(calendar.start) == (errno.ENXIO if refused else 0)
                assert counts(calendar).state == (not refused)
    finally:
        allow.write_text("Y")
    with Calendar() as calendar:
        calendar.load(MAJOR, [(2 * MS, MS, 0), (8 * MS, MS, 1)],
                      [Unit.function_of("a", 0, "step"),
                       Unit.function_of("b", LAST_CPU, "step")])  # fmt: skip
        calendar.start()


def marked() -> None:
    """When the kernel marks the TSC unstable, calendars of several CPUs stop, and say why.

    An open window ends then. These calendars can start again where that is allowed; calendars of
    one CPU are not affected. Sleepers of /dev/apic_timer wake at their moments, and the time page
    reports the mark. The mark lasts until the next boot.
    """
    allow, stable = PARAMETERS / "allow_unstable", ", unstable" not in INFO.read_text()
    units = [Unit.user("a", 0), Unit.function_of("b", LAST_CPU, "step"), Unit.user("c", LAST_CPU)]
    entries = [(2 * MS, MS, 0), (8 * MS, MS, 1)]
    spins = mmap.mmap(-1, 4096)

    def spends(calendar: Calendar) -> None:
        calendar.bind(2)
        calendar.wait(2)
        spins[0] = 1
        while spins[0]:
            pass
        calendar.wait(2)

    def sleeps(clock: int) -> None:
        with Timer() as timer:
            now = time.monotonic_ns if clock == MONOTONIC else timer.now
            when = now() + (3000 * MS if clock == MONOTONIC else timer.cycles(3000 * MS))
            timer.sleep_until(when, clock)
            assert now() >= when

    print("stable" if stable else "unstable")
    with Calendar() as calendar, contextlib.ExitStack() as stack:
        calendar.load(20_000 * MS, [*entries, (20 * MS, 15_000 * MS, 2)], units)
        calendar.load(MAJOR, entries)
        with process(worker(calendar)) as pid, process(lambda: spends(calendar)) as other:
            until(lambda: counts(calendar, 0).tid and counts(calendar, 2).tid)
            until(lambda: state(pid) == state(other) == "S")
            if stable:
                calendar.start()
                until(lambda: counts(calendar, 0).run and counts(calendar, 1).run and spins[0])
            sleepers = [stack.enter_context(process(lambda clock=clock: sleeps(clock)))
                        for clock in (0, MONOTONIC)]  # fmt: skip
            (MARKS / "arm").write_text("1500")
            time.sleep(0.2)
            (MARKS / "unstable").write_text("1")
            if stable:
                assert ended(pid) == errno.ENXIO
                found = counts(calendar)
                assert (found.state, found.error) == (0, errno.ENXIO)
                results = [r.result for r in calendar.receipts() if r.unit == 2]
                assert results[-1] == apic_calendar.STOPPED, results
                spins[0] = 0
                assert ended(other) == errno.ENXIO
        fails(errno.ENXIO, calendar.start)
        assert [ended(pid) for pid in sleepers] == [0, 0]
        with Timer() as timer:
            until(lambda: not timer.page().flags & apic_timer.STABLE)
        allow.write_text("Y")
        before = counts(calendar, 1).run
        calendar.start(1)
        until(lambda: counts(calendar, 1).run > before + 5)
        allow.write_text("N")
        calendar.stop()
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.function_of("a", LAST_CPU, "step")])
        calendar.start()
        until(lambda: counts(calendar).run > 5)


def marked_in_start(refusal: int, error: int) -> None:
    """Have the TSC marked during START, which then fails: nothing runs."""
    assert ", unstable" not in INFO.read_text()
    # Another CPU notifies.
    os.sched_setaffinity(0, {LAST_CPU})
    with Calendar() as calendar:
        calendar.load(MAJOR, [(2 * MS, MS, 0), (8 * MS, MS, 1)],
                      [Unit.user("a", 0), Unit.function_of("b", LAST_CPU, "step")])  # fmt: skip
        with process(worker(calendar)) as pid:
            until(lambda: counts(calendar, 0).tid)
            fails(refusal, calendar.start)
            assert ", unstable" in INFO.read_text()
            assert ended(pid) == error
        time.sleep(1)
        found = counts(calendar, 1)
        assert (found.state, found.error, found.run) == (0, error, 0)
        assert not list(calendar.receipts())
        fails(errno.ENXIO, calendar.start)


def marked_before_start() -> None:
    """The mark is notified after START has checked the TSC, and before the calendar runs."""
    marked_in_start(errno.ENXIO, errno.ECANCELED)


def marked_before_armed() -> None:
    """The mark is notified once the calendar runs, and before START arms a CPU."""
    marked_in_start(errno.ECANCELED, errno.ENXIO)


def shifted() -> None:
    """A moment of CLOCK_MONOTONIC is one of the caller's time namespace."""
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.function_of("a", 0, "step")])

        def shifts(seconds: int) -> None:
            Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} 0")

        def starts() -> None:
            soon = calendar.start()
            calendar.stop()
            start = calendar.start(0, time.monotonic_ns() + 2000 * MS, MONOTONIC)
            calendar.stop()
            assert 0 < start - soon < cycles_of(calendar, 20_000 * MS), start - soon

        for seconds in (100_000, -int(time.monotonic()) // 2):
            enters = functools.partial(shifts, seconds)
            assert in_namespace(0x80, starts, enters) == 0  # CLONE_NEWTIME


def tai() -> None:
    """A moment of CLOCK_TAI equals that of CLOCK_MONOTONIC, also with an offset of leap seconds."""

    def skipped_by_utc(seconds: int) -> None:
        # struct timex: modes is ADJ_TAI, constant is the value.
        asked = bytearray(struct.pack("I44xq", 0x80, seconds) + bytes(200))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.adjtimex((ctypes.c_char * len(asked)).from_buffer(asked)) >= 0

    skipped_by_utc(37)
    try:
        with Calendar() as first, Calendar() as second:
            for calendar, cpu in ((first, 0), (second, LAST_CPU)):
                calendar.load(MAJOR, PLAIN, [Unit.function_of("a", cpu, "step")])
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            moment = time.clock_gettime_ns(time.CLOCK_TAI)
            after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            there = first.start(0, moment + 1000 * MS, TAI)
            here = second.start(0, before + 1000 * MS, MONOTONIC)
            error = cycles_of(first, MS)  # rounding of conversions, and more
            found = there - here, cycles_of(first, after - before), error
            assert -error < there - here < cycles_of(first, after - before) + error, found
            until(lambda: counts(first).run and counts(second).run)
            assert next(first.receipts()).start - there - cycles_of(first, 2 * MS) in (-1, 0, 1)
    finally:
        skipped_by_utc(0)


def restored() -> None:
    """UNBIND, or closing the file, gives a thread its priority and CPUs back.

    Its children do not inherit the unit's priority.
    """

    def bound() -> None:
        calendar = Calendar()
        calendar.load(MAJOR, PLAIN, [Unit.user("a", LAST_CPU), Unit.user("b", 0)])
        second = Calendar()
        second.load(MAJOR, PLAIN, [Unit.user("a", 0)])
        os.nice(3)
        for flag, release in ((0, lambda: calendar.unbind(0)),
                              (os.SCHED_RESET_ON_FORK, calendar.close)):  # fmt: skip
            os.sched_setscheduler(0, os.SCHED_OTHER | flag, os.sched_param(0))
            before = schedule()
            calendar.bind(0)
            assert policy() == os.SCHED_FIFO
            assert os.sched_getparam(0).sched_priority == 98
            assert os.sched_getaffinity(0) == {LAST_CPU}
            assert child(inherits) == 0
            fails(errno.EBUSY, calendar.bind, 1)
            fails(errno.EBUSY, second.bind, 0)  # also to a unit of another calendar
            fails(errno.ESRCH, calendar.unbind, 1)
            release()
            assert schedule() == before

    def inherits() -> None:
        assert policy() == os.SCHED_OTHER, policy()

    def schedule():
        return (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0),
                os.sched_getaffinity(0))  # fmt: skip

    assert child(bound) == 0


def offline() -> None:
    """A CPU that goes offline stops the calendar, which can start when the CPU is back online.

    Programs' threads get their previous CPUs back. START moves all to the units' CPUs again.
    """
    online = Path(f"/sys/devices/system/cpu/cpu{LAST_CPU}/online")
    with Calendar() as calendar:
        calendar.load(MAJOR, [(2 * MS, MS, 0), (2 * MS, MS, 1), (6 * MS, MS, 2), (10 * MS, MS, 3)],
                      [Unit.user("a", 0), Unit.function_of("b", LAST_CPU, "step"),
                       Unit.function_of("c", LAST_CPU, "toil", apic_calendar.THREAD),
                       Unit.user("d", LAST_CPU)])  # fmt: skip

        def stays() -> None:
            os.sched_setaffinity(0, {0})
            calendar.bind(3)
            while True:
                with contextlib.suppress(OSError):
                    calendar.wait(3)

        with process(stays), process(worker(calendar)) as pid:
            until(lambda: counts(calendar, 0).tid and counts(calendar, 3).tid)
            threads = [counts(calendar, unit).tid for unit in (2, 3)]
            poll = select.poll()
            poll.register(calendar.fd, select.POLLPRI)
            assert [os.sched_getaffinity(tid) for tid in threads] == [{LAST_CPU}] * 2
            calendar.start()
            until(lambda: all(counts(calendar, unit).run > 2 for unit in (1, 2, 3)))
            online.write_text("0")
            try:
                assert ended(pid) == errno.ENODEV
                assert poll.poll(60_000)
                found = counts(calendar)
                assert (found.state, found.error) == (0, errno.ENODEV)
                fails(errno.ENODEV, calendar.start)
            finally:
                online.write_text("1")
            assert os.sched_getaffinity(threads[1]) == {0}
            before = [counts(calendar, unit).run for unit in (1, 2, 3)]
            until(lambda: not fcntl_error(calendar.start))
            assert [os.sched_getaffinity(tid) for tid in threads] == [{LAST_CPU}] * 2
            until(lambda: all(counts(calendar, unit).run > had
                              for unit, had in zip((1, 2, 3), before, strict=True)))  # fmt: skip


def departed() -> None:
    """A thread gets its CPUs back even if it leaves its unit while the CPU goes offline.

    The kernel lets it run on all CPUs before it tells the module.
    """
    online = Path(f"/sys/devices/system/cpu/cpu{LAST_CPU}/online")
    assert insert("ms=300", module=SLOW_OFF).wait() == 0
    try:
        for unbinds in (True, False):
            calendar, asked = Calendar(), mmap.mmap(-1, 4096)
            calendar.load(MAJOR, PLAIN, [Unit.user("a", LAST_CPU)])

            def leaves(calendar=calendar, asked=asked, unbinds=unbinds) -> None:
                os.sched_setaffinity(0, {0})
                calendar.bind(0)
                while not asked[0]:
                    time.sleep(0.01)
                if unbinds:
                    calendar.unbind(0)
                calendar.close()
                asked[1] = 1
                while True:
                    time.sleep(1)

            with process(leaves) as pid:
                until(lambda calendar=calendar: counts(calendar).tid)
                goes = background(lambda: online.write_text("0"))
                until(lambda pid=pid: 0 in os.sched_getaffinity(pid))
                asked[0] = 1
                until(lambda asked=asked: asked[1])
                calendar.close()
                goes.join()
                online.write_text("1")
                assert os.sched_getaffinity(pid) == {0}
    finally:
        online.write_text("1")
        subprocess.run(["rmmod", SLOW_OFF], check=True)


def hurried() -> None:
    """START that is held up, as while a CPU goes offline, never begins in the past."""
    cpu = Path(f"/sys/devices/system/cpu/cpu{LAST_CPU}")
    online, reached = cpu / "online", cpu / "hotplug/state"
    assert insert("ms=300", module=SLOW_OFF).wait() == 0
    try:
        with Calendar() as calendar:
            calendar.load(MAJOR, PLAIN, [Unit.function_of("a", 0, "step")])
            before = reached.read_text()
            for ms in (0, 50):
                with process(lambda: online.write_text("0")) as pid:
                    until(lambda: reached.read_text() != before)
                    when = ms and time.monotonic_ns() + ms * MS
                    code = fcntl_error(lambda when=when: calendar.start(0, when, MONOTONIC))
                    assert ended(pid) == 0
                assert code == (errno.ETIME if ms else 0), code
                if not ms:
                    first = until(lambda: next(calendar.receipts(), None), 20)
                    calendar.stop()
                    assert (first.cycle, first.result) == (0, apic_calendar.RAN), first.result
                online.write_text("1")
    finally:
        online.write_text("1")
        subprocess.run(["rmmod", SLOW_OFF], check=True)


def sleeps() -> None:
    """Suspend stops calendars; units, even parked ones, are notified."""
    power, test = Path("/sys/power/state"), Path("/sys/power/pm_test")
    if not test.exists():
        return
    Path("/sys/module/suspend/parameters/pm_test_delay").write_text("1")
    test.write_text("freezer")
    try:
        for spin_in in (0, 1):
            with Calendar() as calendar:
                calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])
                with process(worker(calendar, spin_in=spin_in)) as pid:
                    until(lambda calendar=calendar: counts(calendar).tid)
                    calendar.start()
                    until(lambda calendar=calendar: counts(calendar).run > 1)
                    power.write_text("freeze")
                    found = counts(calendar)
                    assert (found.state, found.error) == (0, errno.ECANCELED)
                    if not spin_in:
                        assert ended(pid) == errno.ECANCELED
                    calendar.start()
    finally:
        test.write_text("none")


def syscall() -> None:
    """A thread in a system call is stopped at the end of the call, and counted.

    Afterwards it still has the priority from BIND, and UNBIND removes it. Its nice value stays.
    """
    with Calendar() as calendar:
        calendar.load(MAJOR, PLAIN, [Unit.user("a", 0)])

        def nice() -> int:
            return os.getpriority(os.PRIO_PROCESS, 0)

        def busy() -> None:
            os.nice(3)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            calendar.bind(0)
            calendar.wait(0)
            # This affects threads that bind from now on.
            set_parameter("priority", 50)
            # This takes some hundred milliseconds in the kernel.
            with open("/dev/urandom", "rb", buffering=0) as source:
                source.readinto(bytearray(1 << 25))
            calendar.wait(0)
            calendar.wait(0)
            assert (os.sched_getparam(0).sched_priority, nice()) == (before, 3), nice()
            calendar.unbind(0)
            assert (policy(), os.sched_getparam(0).sched_priority) == (os.SCHED_FIFO, 1)
            assert nice() == 3

        before = calendar.query().priority
        try:
            with process(busy) as pid:
                until(lambda: counts(calendar).tid)
                calendar.start()
                assert ended(pid) == 0
        finally:
            set_parameter("priority", before)
        found = counts(calendar)
        assert found.overran and found.late_breaks


def unload() -> None:
    """The module stays while a file is open, and so does a module whose function is in use."""

    def kept(name: str) -> bool:
        return subprocess.run(["rmmod", name], capture_output=True).returncode != 0

    calendar = Calendar()
    assert kept(MODULE)
    calendar.load(MAJOR, [(2 * MS, MS, 0), (5 * MS, MS, 1)],
                  [Unit.function_of("a", 0, "step"), Unit.user("b", 0)])  # fmt: skip
    assert kept("apic_calendar_pulse")
    with process(worker(calendar, 1, spin_in=2)):
        until(lambda: counts(calendar, 1).tid)
        calendar.start()
        until(lambda: counts(calendar, 1).overran)
    calendar.close()
    assert not kept("apic_calendar_pulse")
    assert not kept(MODULE)


def insert(*parameters: str, module: str = PULSE) -> subprocess.Popen:
    """Load a module, by default that of functions."""
    modules = next(path for path in (Path("/modules"), Path("/dev/shm/modules")) if path.is_dir())
    return subprocess.Popen(["insmod", modules / f"{module}.ko", *parameters])


def knows(name: str) -> bool:
    """Tell whether LOAD accepts a function."""
    with Calendar() as calendar:
        try:
            calendar.load(MAJOR, PLAIN, [Unit.function_of("a", 0, name)])
        except Refused as found:
            assert (found.reason, found.bad) == (apic_calendar.BAD_FUNCTION, 0)
            return False
    return True


@contextlib.contextmanager
def logged():
    """Return the list of functions that modules left meanwhile, filled in at the end."""
    found = []
    with open("/dev/kmsg", "rb", buffering=0, opener=lambda path, flags: os.open(
            path, flags | os.O_NONBLOCK)) as log:  # fmt: skip
        log.seek(0, os.SEEK_END)
        yield found
        while line := log.read(8192):
            found += re.findall(r"apic_calendar: module (\S+) left function (\S+) ", line.decode())


def forgotten() -> None:
    """A function that its module leaves registered is unregistered when that is unloaded."""
    subprocess.run(["rmmod", PULSE], check=True)
    assert insert("leave=1").wait() == 0
    assert knows("step")
    with logged() as found:
        subprocess.run(["rmmod", PULSE], check=True)
        assert not knows("step")
    assert found == [(PULSE, name) for name in ("pulse", "step", "toil")], found
    with logged() as found:
        assert insert().wait() == 0
        assert knows("step")
        subprocess.run(["rmmod", PULSE], check=True)
    assert not found, found
    assert insert().wait() == 0


def unfinished() -> None:
    """No calendar uses a function of a module that may still fail to load."""
    fail = Path(f"/sys/module/{PULSE}/parameters/fail")
    starts = Path("/sys/kernel/debug/apic_calendar_pulse/starts")
    subprocess.run(["rmmod", PULSE], check=True)
    for leave in ((), ("leave=1",)):
        with logged() as found, insert("fail=1", *leave) as loads:
            try:
                until(starts.exists)
                assert not knows("step")
            finally:
                # When finit_module() has failed, busybox tries init_module().
                while loads.poll() is None:
                    time.sleep(0.01)
                    # Before that it would not fail.
                    if starts.exists():
                        time.sleep(0.01)
                        with contextlib.suppress(OSError):  # it is gone meanwhile
                            fail.write_text("0")
            assert loads.returncode != 0
            assert not knows("step")
        assert {name for _, name in found} == {"pulse", "step", "toil"} if leave else not found
    assert insert().wait() == 0
    assert knows("step")


def torture(rounds: int = 3, seed: int = 1) -> None:
    """Random tables and switches on all CPUs leave each window accounted for."""
    rng = random.Random(seed)
    for _ in range(rounds):
        with Calendar() as calendar:
            units = [Unit.user(f"u{n}", rng.randrange(LAST_CPU + 1)) for n in range(3)]
            units += [Unit.function_of(f"f{n}", rng.randrange(LAST_CPU + 1), "step")
                      for n in range(3)]  # fmt: skip
            units += [Unit.function_of(f"t{n}", rng.randrange(LAST_CPU + 1), "toil",
                                       apic_calendar.THREAD) for n in range(2)]  # fmt: skip
            tables = {}
            while len(tables) < 4:
                major = rng.randrange(5, 20) * MS
                count = rng.randrange(1, 9)
                entries = sorted((rng.randrange(0, major), rng.randrange(10_000, MS),
                                  rng.randrange(len(units))) for _ in range(count))  # fmt: skip
                try:
                    number = calendar.load(major, entries, None if tables else units)
                except Refused:
                    continue
                tables[number] = (cycles_of(calendar, major), [
                    (cycles_of(calendar, o), units[u].cpu) for o, _, u in entries])  # fmt: skip
            with contextlib.ExitStack() as stack:
                for unit in range(3):
                    stack.enter_context(process(worker(calendar, unit,
                                                       spin_in=rng.randrange(20),
                                                       seconds=0.2)))  # fmt: skip
                until(lambda calendar=calendar: all(counts(calendar, u).tid for u in range(3)))
                first = rng.randrange(4)
                start = calendar.start(first)
                changes, seen = [(start, first)], []
                for _ in range(6):
                    time.sleep(rng.random() / 10)
                    seen += calendar.receipts()
                    try:
                        table = rng.randrange(4)
                        changes.append((calendar.switch(table), table))
                    except OSError as error:
                        assert error.errno == errno.EBUSY
                end = until(lambda calendar=calendar: stop_at_boundary(calendar))
                until(lambda calendar=calendar: not counts(calendar).state)
                seen += calendar.receipts()
                # Even after the machine was held up, no handler waits for a window far ahead.
                early = max((r.start - r.woken for r in seen if r.result != apic_calendar.PASSED),
                            default=0)  # fmt: skip
                assert early < cycles_of(calendar, MS // 4), early
                print(account(seen, tables, start, changes, end), "windows")


def stop_at_boundary(calendar: Calendar) -> int:
    """Stop at a boundary; return the moment, or 0 if a switch is under way."""
    try:
        return calendar.stop(apic_calendar.AT_BOUNDARY)
    except OSError as error:
        assert error.errno == errno.EBUSY
        return 0


def torture_long() -> None:
    """Run torture for longer, with more seeds."""
    for seed in range(2, 12):
        torture(10, seed)
