"""Rules for holders of /dev/apic_timer, run by rules.py in a guest, as root.

Each case is a rule of docs/reference/user-device.md, and ends with an AssertionError if the rule is
broken. None depends on the machine's speed.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import itertools
import mmap
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import apic_timer
import uring
from apic_timer import ARM_COMMAND as ARM
from apic_timer import MONOTONIC, TAI, Arm, Query, Sleep, Timer
from apic_timer import QUERY_COMMAND as QUERY
from apic_timer import SLEEP_COMMAND as SLEEP

PARAMETERS = Path("/sys/module/apic_timer_dev/parameters")
INFO = Path("/sys/kernel/debug/apic_timer/info")
NOBODY = 65534
SLEPT = 1  # APIC_TIMER_SLEPT
MS = 1_000_000  # ns


def fails(code: int, function, *arguments, **more) -> None:
    """Expect an OSError."""
    try:
        function(*arguments, **more)
    except OSError as error:
        assert error.errno == code, f"{errno.errorcode[error.errno]}, not {errno.errorcode[code]}"
        return
    raise AssertionError(f"no {errno.errorcode[code]}")


def parameter(name: str, value: int) -> int:
    """Set a parameter of the module; return the previous value."""
    before = int((PARAMETERS / name).read_text())
    (PARAMETERS / name).write_text(str(value))
    return before


def soon(ms: int = 50) -> int:
    """Return a moment of CLOCK_MONOTONIC this far ahead."""
    return time.monotonic_ns() + ms * MS


def child(function) -> int:
    """Run a function in another process; return its exit status: 0 if nothing was raised."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - it must end here
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)


def as_nobody(function) -> int:
    """Run a function in a process of another user."""

    def run() -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        function()

    return child(run)


def node() -> None:
    """The node belongs to root, and another user may not open it."""
    status = os.stat(apic_timer.DEVICE)
    assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (0o600, 0, 0)
    assert as_nobody(lambda: fails(errno.EACCES, os.open, apic_timer.DEVICE, os.O_RDWR)) == 0


def shown(clock: int = time.CLOCK_MONOTONIC) -> int:
    """Return the current time of a clock, in ns.

    CPUs that read an HPET at the same time share one read, which may predate the call. The next
    value does not.
    """
    first = found = time.clock_gettime_ns(clock)
    while found == first:
        found = time.clock_gettime_ns(clock)
    return found


def never_early() -> None:
    """On each clock the moment has come when the sleep ends."""
    with Timer() as timer:
        for flags in (0, apic_timer.KERNEL_FINISH, apic_timer.NO_FENCE):
            for ns in (0, 1000, 30_000, *[MS] * 20, 3 * MS):
                when = timer.now() + timer.cycles(ns)
                timer.sleep_until(when, flags=flags)
                assert timer.now() >= when
                when = time.monotonic_ns() + ns
                timer.sleep_until(when, MONOTONIC, flags)
                assert shown() >= when
        when = time.clock_gettime_ns(time.CLOCK_TAI) + MS
        timer.sleep_until(when, TAI)
        assert shown(time.CLOCK_TAI) >= when


def shared_clock() -> None:
    """While all CPUs read the clock, nothing expires early or is counted too soon."""
    readers = []
    for _ in range(os.cpu_count()):
        if not (pid := os.fork()):
            while True:
                time.monotonic_ns()
        readers.append(pid)
    try:
        with Timer() as timer:
            for us in (100, 300, 2000) * 50:
                when = time.monotonic_ns() + us * 1000
                timer.arm(when, clock=MONOTONIC)
                assert timer.read() == 1
                assert shown() >= when
            first, interval, passed = time.monotonic_ns() + MS, 200_000, 0
            timer.arm(first, interval, MONOTONIC)
            for _ in range(300):
                passed += timer.read()
                assert first + (passed - 1) * interval <= shown()
    finally:
        for pid in readers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def page() -> None:
    """The page's clock is the kernel's, and nobody can write to the mappings."""
    with Timer() as timer:
        found = timer.page()
        assert found.version == 1
        assert found.epoch == timer.query().epoch > 0
        assert found.tsc_khz == timer.query().tsc_khz > 1000
        assert found.mono_shifted >> found.shift == 0
        if found.flags & apic_timer.CLOCK:
            for _ in range(1000):
                before, tsc, after = time.monotonic_ns(), timer.now(), time.monotonic_ns()
                assert before <= timer.monotonic(tsc) + 1 and timer.monotonic(tsc) <= after
        size, shared = 4096, mmap.MAP_SHARED
        for access in (mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_WRITE):
            fails(errno.EACCES, mmap.mmap, timer.fd, size, shared, access)
        # Where /dev is mounted noexec, the kernel refuses before the device does.
        may_execute = not os.statvfs(apic_timer.DEVICE).f_flag & os.ST_NOEXEC
        fails(errno.EACCES if may_execute else errno.EPERM, mmap.mmap, timer.fd, size, shared,
              mmap.PROT_EXEC)  # fmt: skip
        fails(errno.EINVAL, mmap.mmap, timer.fd, 2 * size, shared, mmap.PROT_READ)
        fails(errno.EINVAL, mmap.mmap, timer.fd, size, shared, mmap.PROT_READ, offset=4096)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        at = libc.mmap(None, size, mmap.PROT_READ, shared, timer.fd, 0)
        assert libc.mprotect(at, size, mmap.PROT_READ | mmap.PROT_WRITE) == -1
        assert ctypes.get_errno() == errno.EACCES
        # A child does not inherit them.
        assert child(lambda: ctypes.string_at(at, 1)) == -signal.SIGSEGV
        assert ctypes.string_at(at, 1)


def structures() -> None:
    """Sizes are negotiated; unknown or too small structures are rejected and change nothing."""
    with Timer() as timer:
        for command, kind in ((QUERY, Query), (SLEEP, Sleep), (ARM, Arm)):
            size = ctypes.sizeof(kind)

            def given(size: int, tail: bytes = b"", kind=kind) -> bytearray:
                more = {"cpu": apic_timer.CPU_THIS} if kind is Query else {}
                return bytearray(bytes(kind(size=size, **more)) + tail)

            fcntl.ioctl(timer.fd, command, given(size))
            fcntl.ioctl(timer.fd, command, given(size + 16, bytes(16)))
            fails(errno.E2BIG, fcntl.ioctl, timer.fd, command, given(size + 16, bytes(15) + b"\1"))
            fails(errno.E2BIG, fcntl.ioctl, timer.fd, command, given(1 << 20))
            for small in (0, 4, size - 1):
                fails(errno.EINVAL, fcntl.ioctl, timer.fd, command, given(small))
            fails(errno.EFAULT, fcntl.ioctl, timer.fd, command, 16)
        for wrong in ({"flags": 16}, {"clock": 3}, {"budget": 1 << 31}):
            fails(errno.EINVAL, fcntl.ioctl, timer.fd, SLEEP,
                  Sleep(size=ctypes.sizeof(Sleep), **wrong))  # fmt: skip
        for wrong in ({"flags": 1}, {"clock": 3}):
            fails(errno.EINVAL, fcntl.ioctl, timer.fd, ARM, Arm(size=ctypes.sizeof(Arm), **wrong))
        fails(errno.EINVAL, timer.query, 1 << 20)
        fails(errno.ENOTTY, fcntl.ioctl, timer.fd, ARM + 1)
        fails(errno.ETIME, timer.sleep_until, timer.now(), flags=apic_timer.SKIP_LATE)
        stale = Sleep(size=ctypes.sizeof(Sleep), expires=timer.now(), epoch=timer.epoch + 1)
        fails(errno.ESTALE, fcntl.ioctl, timer.fd, SLEEP, stale)
        assert stale.epoch == timer.epoch
        fails(errno.ESTALE, fcntl.ioctl, timer.fd, ARM,
              Arm(size=ctypes.sizeof(Arm), expires=1, epoch=timer.epoch + 1))  # fmt: skip
        # Moments of the kernel's clocks belong to no epoch.
        later = {"expires": 1, "clock": MONOTONIC, "epoch": timer.epoch + 1}
        for command, kind in ((SLEEP, Sleep), (ARM, Arm)):
            fcntl.ioctl(timer.fd, command, kind(size=ctypes.sizeof(kind), **later))
        assert timer.read() == 1
        fails(errno.EAGAIN, os.read, nonblocking(timer).fd, 8)


def nonblocking(timer: Timer) -> Timer:
    """Make read() fail instead of waiting."""
    os.set_blocking(timer.fd, False)
    return timer


def rate() -> None:
    """A user's wake-ups per second are limited, over all files; moments in the past use none."""
    before = parameter("rate", 10), parameter("burst", 5)
    try:
        with Timer() as one, Timer() as two:
            os.sched_setaffinity(0, {0})
            # A timer that is changed before it expires has used none.
            for _ in range(200):
                two.arm(soon(60_000), 0, MONOTONIC)
            two.arm(0)
            start = time.monotonic()
            taken = drain(one, two)
            # A machine that is held up for longer gets more.
            drained = time.monotonic()
            assert 5 <= taken <= 6 + 10 * (drained - start), (taken, drained - start)
            one.sleep_until(one.now())  # no wake-up
            # A timer gets fewer interrupts, and its count is right.
            time.sleep(0.2)
            first = time.monotonic_ns() + MS
            two.arm(first, MS, MONOTONIC)
            total = reads = 0
            while total < 500:
                total += two.read()
                reads += 1
            passed = time.monotonic() - drained
            assert reads <= 3 + 10 * passed, (reads, passed)
            assert total <= (time.monotonic_ns() - first) // MS + 1
    finally:
        parameter("rate", before[0])
        parameter("burst", before[1])


def turns() -> None:
    """Timers of a user stay within that limit, however far ahead the turn of each is."""
    with contextlib.ExitStack() as files:
        os.sched_setaffinity(0, {0})
        timers = [nonblocking(files.enter_context(Timer())) for _ in range(40)]
        poll = select.poll()
        for timer in timers:
            poll.register(timer.fd, select.POLLIN)
        before = int((PARAMETERS / "rate").read_text()), int((PARAMETERS / "burst").read_text())
        try:
            # All are armed before the first expires; a machine that is held up gets more time.
            for ms in (1000, 10_000):
                first = soon(ms)
                for timer in timers:
                    timer.arm(first, MS, MONOTONIC)
                parameter("rate", 10)
                parameter("burst", 1)
                if time.monotonic_ns() < first:
                    break
                parameter("rate", before[0])
                parameter("burst", before[1])
            # Once each has expired, the last one's next turn is 4 s later.
            reads = passed = 0
            while passed < 2.5:
                reads += sum(len(os.read(fd, 8)) // 8 for fd, _ in poll.poll(100))
                passed = (time.monotonic_ns() - first) / 1e9
            assert len(timers) <= reads <= len(timers) + 1 + 10 * passed, (reads, passed)
        finally:
            parameter("rate", before[0])
            parameter("burst", before[1])


def changed() -> None:
    """A timer that is changed keeps its wake-up, although the user's other timers owe some."""
    with contextlib.ExitStack() as files:
        os.sched_setaffinity(0, {0})
        one, *others = (files.enter_context(Timer()) for _ in range(21))
        far = one.cycles(60_000 * MS)
        one.arm(one.now() + far)
        for timer in others:
            timer.arm(soon(100), MS, MONOTONIC)
        before = parameter("rate", 10), parameter("burst", 1)
        try:
            # Once each has expired, the last one's next turn is 2 s later.
            for timer in others:
                timer.read()
            for _ in range(100):
                one.arm(one.now() + far)
            # It does not get another one for that.
            one.arm(one.now() + one.cycles(MS))
            assert one.read() == 1
            fails(errno.EAGAIN, one.arm, one.now() + far)
        finally:
            parameter("rate", before[0])
            parameter("burst", before[1])


def drain(*timers: Timer) -> int:
    """Sleep with these in turn until the bucket is empty; return the number of wake-ups."""
    taken = 0
    for timer in itertools.cycle(timers):
        try:
            # No wake-up if the moment had passed when the call was made.
            taken += timer.sleep_until(soon(1), MONOTONIC).result & SLEPT
        except OSError as error:
            assert error.errno == errno.EAGAIN, error
            return taken


def pending() -> None:
    """A user's sleepers and timers are limited in number, and finished ones are returned."""
    before = parameter("pending", 3)
    try:
        timers = [Timer() for _ in range(4)]
        for timer in timers[:3]:
            timer.arm(soon(60_000), 0, MONOTONIC)
        fails(errno.EBUSY, timers[3].arm, soon(60_000), 0, MONOTONIC)
        # A moment that has passed, as 50 ms may if a CPU is held up, is refused to nobody.
        fails(errno.EBUSY, timers[3].sleep_until, soon(60_000), MONOTONIC)
        # Arming a timer again takes no further place, even while others wait for one.
        if not (pid := os.fork()):
            try:
                while True:
                    fails(errno.EBUSY, timers[3].sleep_until, soon(60_000), MONOTONIC)
            finally:
                os._exit(1)
        try:
            for _ in range(3000):
                timers[0].arm(soon(60_000), 0, MONOTONIC)
            assert state(pid) != "Z"
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        timers[0].arm(0)
        timers[3].sleep_until(soon(), MONOTONIC)
        timers[1].close()
        timers[3].arm(soon(60_000), 0, MONOTONIC)
        timers[0].arm(soon(1), 0, MONOTONIC)
        assert timers[0].read() == 1
        timers[1] = Timer()
        timers[1].arm(soon(60_000), 0, MONOTONIC)
        for timer in timers:
            timer.close()
    finally:
        parameter("pending", before)


def ranges() -> None:
    """A limit cannot be removed by mistake."""
    for name, wrong in (("rate", 0), ("rate", 1_000_001), ("burst", 0), ("pending", 0)):
        try:
            (PARAMETERS / name).write_text(str(wrong))
        except OSError as error:
            assert error.errno in (errno.EINVAL, errno.ERANGE)
        else:
            raise AssertionError(f"{name} may be {wrong}")


def readers() -> None:
    """read() and poll() work as on a timerfd: one-shot, periodic, overruns, disarmed."""
    with Timer() as timer:
        poll = select.poll()
        poll.register(timer.fd, select.POLLIN)
        assert poll.poll(0) == []
        fails(errno.EINVAL, os.read, timer.fd, 7)
        timer.arm(soon(5), 0, MONOTONIC)
        assert poll.poll(20_000) == [(timer.fd, select.POLLIN)]
        assert timer.read() == 1
        fails(errno.EAGAIN, nonblocking(timer).read)
        timer.arm(1)  # in the past
        assert poll.poll(20_000) and timer.read() == 1
        os.set_blocking(timer.fd, True)
        first = soon(5)
        timer.arm(first, 2 * MS, MONOTONIC)
        total = sum(timer.read() for _ in range(5))
        # A late interrupt counts all that has passed. It comes after the read if the CPU of the
        # timer is held up, and that of the thread is not.
        for _ in range(20):
            time.sleep(0.05)
            total += (overrun := timer.read())
            if overrun >= 20:
                break
        assert overrun >= 20, overrun
        assert total <= (time.monotonic_ns() - first) // (2 * MS) + 1
        timer.arm(0)
        assert poll.poll(20) == []
        timer.arm(timer.now() + timer.cycles(MS), timer.cycles(MS))  # in TSC cycles
        assert timer.read() >= 1
        # A moment that never comes.
        timer.arm((1 << 64) - 1, (1 << 64) - 1)
        assert poll.poll(20) == []
        timer.arm(1, (1 << 64) - 1)
        assert timer.read() == 1
        assert poll.poll(20) == []


def charged(function) -> int:
    """Return how many bytes a function, run in a process, has charged to a memory cgroup."""
    top = Path("/dev/shm/cgroup")
    top.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", str(top)], check=True)
    (top / "cgroup.subtree_control").write_text("+memory")
    group = top / "holder"
    group.mkdir()
    used, (mine, theirs) = group / "memory.current", os.pipe()

    def run() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        before = int(used.read_text())
        kept = function()
        os.write(theirs, b"%d" % (int(used.read_text()) - before))
        del kept

    try:
        assert child(run) == 0
        return int(os.read(mine, 20))
    finally:
        os.close(mine)
        os.close(theirs)
        group.rmdir()
        subprocess.run(["umount", str(top)], check=True)
        top.rmdir()


def memory() -> None:
    """A file's memory is charged to the caller's memory cgroup."""

    def run() -> list[Timer]:
        timers = [Timer() for _ in range(50)]
        for timer in timers:
            list(timer.receipts())
        return timers

    with Timer() as timer:
        size = apic_timer.RING_FIRST + 64 * timer.query().ring_entries
    # The kernel charges some pages in advance.
    assert charged(run) > 50 * size - (1 << 20)


def passing() -> None:
    """A file that is passed on works for its holder, and stays on its opener's account."""
    before = parameter("pending", 1)
    try:
        mine, theirs = socket.socketpair()
        timer = Timer()
        socket.send_fds(mine, [b"x"], [timer.fd])

        def use() -> None:
            _, (fd,), _, _ = socket.recv_fds(theirs, 1, 1)
            with Timer(fd) as handed:
                handed.sleep_until(soon(), MONOTONIC)
                handed.arm(soon(60_000), 0, MONOTONIC)
                # Rights to the file are not rights to the node.
                fails(errno.EACCES, os.open, apic_timer.DEVICE, os.O_RDWR)

        assert as_nobody(use) == 0
        with Timer() as other:
            fails(errno.EBUSY, other.sleep_until, soon(60_000), MONOTONIC)
        timer.close()
    finally:
        parameter("pending", before)


def namespace() -> None:
    """A user namespace gives nobody access."""

    def run() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x10000000):  # CLONE_NEWUSER
            raise OSError(ctypes.get_errno(), "unshare")
        fails(errno.EPERM, os.open, apic_timer.DEVICE, os.O_RDWR)

    assert child(run) == 0


def shifted() -> None:
    """A moment of CLOCK_MONOTONIC is one of the caller's time namespace."""

    def waits() -> None:
        signal.alarm(20)
        with Timer() as timer:
            for flags in (0, apic_timer.KERNEL_FINISH):
                when = soon(200)
                timer.sleep_until(when, MONOTONIC, flags)
                assert shown() >= when
                assert timer.last.result & SLEPT
            when = soon(200)
            timer.arm(when, clock=MONOTONIC)
            assert timer.read() == 1
            assert shown() >= when

    def enters(seconds: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x80):  # CLONE_NEWTIME: children are in it
            raise OSError(ctypes.get_errno(), "unshare")
        Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} 0")
        assert child(waits) == 0

    for seconds in (100_000, -int(time.monotonic()) // 2):
        assert child(functools.partial(enters, seconds)) == 0


def numbered() -> None:
    """Receipts number threads as the PID namespace of the process that first maps them does."""
    timer = Timer()

    def sees() -> None:
        assert list(timer.receipts()) == []
        timer.sleep_until(soon(5), MONOTONIC)
        assert (os.getpid(), [r.tid for r in timer.receipts()]) == (1, [1])

    def enters() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x20000000):  # CLONE_NEWPID: children are in it
            raise OSError(ctypes.get_errno(), "unshare")
        assert child(sees) == 0

    assert child(enters) == 0
    # This process is in no namespace below its own.
    timer.sleep_until(soon(5), MONOTONIC)
    assert [r.tid for r in timer.receipts()] == [1, 0]
    timer.close()


def inherits(timer: Timer) -> None:
    """Use a timer in a child, where something else is at the addresses of its mappings."""
    maps = Path("/proc/self/maps").read_text()
    found = re.findall(rf"^(\w+)-(\w+) .* {apic_timer.DEVICE}$", maps, re.MULTILINE)
    places = [(int(first, 16), int(end, 16)) for first, end in found]
    assert len(places) == 2
    page, receipts = timer.page(), len(list(timer.receipts()))
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]

    def run() -> None:
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        for first, end in places:
            writable = mmap.PROT_READ | mmap.PROT_WRITE
            assert libc.mmap(first, end - first, writable, kind, -1, 0) == first
            ctypes.memset(first, 0x54, end - first)
        timer.sleep_until(soon(5), MONOTONIC)
        assert (timer.page().version, timer.page().epoch) == (page.version, page.epoch)
        assert timer.cycles(MS) == timer.query().tsc_khz
        assert len(list(timer.receipts())) == receipts + 1
        timer.close()
        for first, end in places:
            assert ctypes.string_at(first, end - first) == b"\x54" * (end - first)
        for file in Path("/proc/self/fd").iterdir():
            assert not file.exists() or not file.samefile(apic_timer.DEVICE)

    assert child(run) == 0
    assert timer.page().version == page.version


def forks() -> None:
    """A child shares the file, exec closes it, and each thread has its own last sleep.

    A child does not inherit the mappings.
    """
    timer = Timer()
    list(timer.receipts())
    timer.sleep_until(soon(5), MONOTONIC)
    assert child(lambda: timer.sleep_until(soon(5), MONOTONIC)) == 0
    inherits(timer)
    code = f"import os; os.fstat({timer.fd})"
    done = subprocess.run([sys.executable, "-c", code], close_fds=False, capture_output=True)
    assert b"Bad file descriptor" in done.stderr
    threads = [
        threading.Thread(target=lambda: [Timer(os.dup(timer.fd)).sleep_until(soon(1), MONOTONIC)
                                         for _ in range(20)])
        for _ in range(6)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    timer.close()


def sleeper(ms: int = 600_000) -> int:
    """Start a process that sleeps for long; return once it sleeps."""
    pid = os.fork()
    if not pid:
        Timer().sleep_until(soon(ms), MONOTONIC)
        os._exit(0)
    wait_asleep(pid)
    return pid


def wait_asleep(pid: int) -> None:
    """Wait until a process sleeps in an ioctl."""
    while state(pid) != "S" or not Path(f"/proc/{pid}/syscall").read_text().startswith("16 "):
        assert state(pid) != "Z"
        time.sleep(0.01)


def state(pid: int) -> str:
    """Return the state of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def killed() -> None:
    """A sleeper dies when it is killed, and its place becomes free."""
    before = parameter("pending", 1)
    try:
        for _ in range(3):
            pid = sleeper()
            with Timer() as timer:
                fails(errno.EBUSY, timer.arm, soon(60_000), 0, MONOTONIC)
            os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        with Timer() as timer:
            timer.arm(soon(60_000), 0, MONOTONIC)
    finally:
        parameter("pending", before)


def killed_anywhere() -> None:
    """A process that is killed at any point leaves nothing."""
    with Timer() as quick:
        cycles = quick.cycles(MS)
    before = parameter("rate", 1_000_000), parameter("pending", 2)

    def sleeps(timer: Timer) -> None:
        timer.sleep_until(timer.now() + cycles // 2)

    def finishes(timer: Timer) -> None:
        timer.sleep_until(timer.now() + cycles // 20, flags=apic_timer.KERNEL_FINISH)

    def reads(timer: Timer) -> None:
        timer.arm(timer.now() + cycles // 2, cycles)
        timer.read()

    def polls(timer: Timer) -> None:
        timer.arm(timer.now() + cycles // 2)
        select.select([timer.fd], [], [])

    def maps(timer: Timer) -> None:
        list(timer.receipts())
        with Timer() as other:
            other.sleep_until(1)
            list(other.receipts())

    try:
        for n, what in enumerate((sleeps, finishes, reads, polls, maps) * 3):
            mine, theirs = os.pipe()
            pid = os.fork()
            if not pid:
                timer = Timer()
                os.write(theirs, b"x")
                while True:
                    what(timer)
            os.read(mine, 1)
            time.sleep(n * 0.003)
            os.kill(pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert status == -signal.SIGKILL, (what.__name__, status)
            os.close(mine)
            os.close(theirs)
            with Timer() as one, Timer() as two:  # both places are free
                one.arm(soon(60_000), 0, MONOTONIC)
                two.arm(soon(60_000), 0, MONOTONIC)
        assert Path("/sys/module/apic_timer_dev/refcnt").read_text() == "0\n"
    finally:
        parameter("rate", before[0])
        parameter("pending", before[1])


def execs() -> None:
    """A sleeping thread ends when another thread of its process executes a program."""
    before = parameter("pending", 1)
    try:
        pid = os.fork()
        if not pid:
            thread = threading.Thread(target=lambda: Timer().sleep_until(soon(600_000), MONOTONIC))
            thread.start()
            while True:
                (waits,) = {int(t) for t in os.listdir("/proc/self/task")} - {os.getpid()}
                if Path(f"/proc/self/task/{waits}/syscall").read_text().startswith("16 "):
                    break
                time.sleep(0.01)
            os.execv("/bin/true", ["true"])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with Timer() as timer:
            timer.arm(soon(60_000), 0, MONOTONIC)
    finally:
        parameter("pending", before)


def hotplug() -> None:
    """Sleepers and timers on a CPU that goes offline keep their moments."""
    online = Path("/sys/devices/system/cpu/cpu1/online")

    def waits() -> None:
        os.sched_setaffinity(0, {1})
        timer = Timer()
        when = soon(3000)
        timer.arm(when, 0, MONOTONIC)
        os.write(theirs, b"x")
        timer.sleep_until(when, MONOTONIC)
        assert time.monotonic_ns() >= when
        assert timer.read() == 1
        # Its CPU was online, or may go offline.
        timer.sleep_until(timer.now() + timer.cycles(MS))

    for _ in range(2):
        mine, theirs = os.pipe()
        pids = []
        for _ in range(3):
            pid = os.fork()
            if not pid:
                os._exit(child(waits))
            pids.append(pid)
        os.close(theirs)
        for _ in pids:
            assert os.read(mine, 1)
        time.sleep(0.1)
        online.write_text("0")
        with Timer() as timer:  # on the remaining CPUs
            timer.sleep_until(soon(5), MONOTONIC)
            query = timer.query(1)
            assert query.hardware == 0, query.hardware
        online.write_text("1")
        for pid in pids:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def filter_calls(*rules: tuple[int, int, int, int]) -> None:
    """Install a seccomp filter of these BPF rules on the calling thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(memory))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program) == 0  # PR_SET_SECCOMP


def seccomp() -> None:
    """A filter that sees only command numbers can distinguish the commands."""

    def run() -> None:
        timer = Timer()
        filter_calls(
            (0x20, 0, 0, 0),  # number of the system call
            (0x15, 0, 4, 16),  # ioctl
            (0x20, 0, 0, 24),  # its command
            (0x15, 2, 0, SLEEP),
            (0x15, 1, 0, QUERY),
            (0x06, 0, 0, 0x00050000 | errno.EPERM),
            (0x06, 0, 0, 0x7FFF0000),
        )  # fmt: skip
        timer.sleep_until(soon(1), MONOTONIC)
        timer.query()
        fails(errno.EPERM, timer.arm, soon(1), 0, MONOTONIC)

    assert child(run) == 0


def stopped() -> None:
    """A sleeper does not notice stop and continue: it sleeps on."""
    mine, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        timer = Timer()
        when = timer.now() + timer.cycles(3_000 * MS)
        asked = Sleep(size=ctypes.sizeof(Sleep), expires=when, epoch=timer.epoch)
        ret = ctypes.CDLL(None, use_errno=True).ioctl(timer.fd, SLEEP, ctypes.byref(asked))
        early = max(0, when - timer.now())
        os.write(theirs, struct.pack("iiQ", ret, ctypes.get_errno(), early))
        os._exit(0)
    wait_asleep(pid)
    for _ in range(3):
        os.kill(pid, signal.SIGSTOP)
        while state(pid) != "T":
            time.sleep(0.01)
        os.kill(pid, signal.SIGCONT)
        wait_asleep(pid)
    ret, code, early = struct.unpack("iiQ", os.read(mine, 16))
    os.waitpid(pid, 0)
    assert ret == 0, code
    assert early < 1_000_000, early


def signalled() -> None:
    """A signal's handler runs; the sleep fails with EINTR, or continues if that was requested."""
    with Timer() as timer:
        libc = ctypes.CDLL(None, use_errno=True)
        signal.signal(signal.SIGALRM, lambda *_: None)
        # Again and again: a machine that is held up may get the first before it sleeps.
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        for restart, flags, ms, wanted in (
            (False, 0, 60_000, -1), (True, 0, 400, 0), (True, apic_timer.NO_RESTART, 60_000, -1),
        ):  # fmt: skip
            signal.siginterrupt(signal.SIGALRM, not restart)
            asked = Sleep(size=ctypes.sizeof(Sleep), flags=flags, clock=MONOTONIC,
                          expires=soon(ms))  # fmt: skip
            ret = libc.ioctl(timer.fd, SLEEP, ctypes.byref(asked))
            assert ret == wanted, (ret, ctypes.get_errno())
            if ret:
                assert ctypes.get_errno() == errno.EINTR
        # The same for a reader.
        signal.siginterrupt(signal.SIGALRM, True)
        buffer = ctypes.create_string_buffer(8)
        assert libc.read(timer.fd, buffer, 8) == -1
        assert ctypes.get_errno() == errno.EINTR
        signal.setitimer(signal.ITIMER_REAL, 0)


def unload() -> None:
    """The module stays loaded as long as there is a sleeper, an open file or a mapping."""

    def refused() -> bool:
        return subprocess.run(["rmmod", "apic_timer_dev"], capture_output=True).returncode != 0

    pid = sleeper()
    assert refused()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    timer = Timer()
    assert refused()
    kept = mmap.mmap(timer.fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
    timer.close()
    assert refused()
    assert kept[0:4] == b"\1\0\0\0"
    kept.close()
    assert not refused()


def receipts() -> None:
    """Each sleep leaves a receipt; the oldest are overwritten; the last one's end is reported."""
    with Timer() as timer:
        assert list(timer.receipts()) == []
        entries = timer.query().ring_entries
        wanted = []
        for n in range(entries + 10):
            when = timer.now() + timer.cycles(MS if n % 64 == 0 else 0)
            timer.sleep_until(when)
            wanted.append(when)
        found = list(timer.receipts())
        assert entries - 1 <= len(found) <= entries
        assert [r.tsc for r in found] == wanted[-len(found) :]
        assert {r.tid for r in found} == {os.getpid()}
        slept = [r for r in found if r.result & 1]
        assert slept and all(0 < r.woken <= r.resumed for r in slept)
        began = timer.now()
        asked = Sleep(size=ctypes.sizeof(Sleep), expires=1, began=began)
        fcntl.ioctl(timer.fd, SLEEP, asked)
        assert [r.began for r in timer.receipts()][-2] == began


def shallow() -> None:
    """A sleeper's CPU need not poll, but may enter idle states that the spin budget covers."""
    pid = os.fork()
    if not pid:
        try:
            with Timer() as timer:
                while True:
                    timer.sleep_until(soon(30), MONOTONIC)
        finally:
            os._exit(1)
    try:
        end, asked = time.monotonic() + 20, []
        while not asked:
            assert time.monotonic() < end, "no request"
            asked = re.findall(r"cpu \d+ (\d+) us", INFO.read_text())
        assert all(int(us) for us in asked), asked
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def uring_wait() -> None:
    """Commands of an io_uring are completed at their moments, or cancelled with their ring."""
    with Timer() as timer:
        has = tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 7)
        assert uring.missing(timer.fd) == (not has)
        if not has:
            return
        ring = uring.Ring()
        # Each completes at its moment, not in the order of submission; one in the past, at once.
        start = time.monotonic_ns()
        delays = (30, 10, 20, 0)
        for n, ms in enumerate(delays):
            ring.submit(timer.fd, uring.WAIT, uring.moment(start + ms * MS, MONOTONIC), n)
        assert sorted(ring.wait(4)) == [(n, 0) for n in range(4)]
        assert time.monotonic_ns() >= start + 30 * MS
        for n in range(40):
            when = timer.now() + timer.cycles(MS)
            ring.submit(timer.fd, uring.WAIT, uring.moment(when, epoch=timer.epoch), n)
            assert ring.wait() == [(n, 0)]
            assert timer.now() >= when
        when = time.clock_gettime_ns(time.CLOCK_TAI) + 1500 * MS  # converted on the way
        ring.submit(timer.fd, uring.WAIT, uring.moment(when, TAI))
        assert ring.wait() == [(0, 0)]
        assert time.clock_gettime_ns(time.CLOCK_TAI) >= when
        for command, data, code in (
            (uring.WAIT, uring.moment(1, 3), errno.EINVAL),
            (uring.WAIT, uring.moment(1, 0, timer.epoch + 1), errno.ESTALE),
            (SLEEP, uring.moment(1), errno.ENOTTY),
        ):  # fmt: skip
            ring.submit(timer.fd, command, data)
            assert ring.wait() == [(0, -code)]
        # It may be cancelled while an io_uring thread is about to arm it.
        for n in range(100):
            other = uring.Ring()
            later = uring.moment(soon(600_000), MONOTONIC)
            other.submit(timer.fd, uring.WAIT, later, flags=uring.ASYNC)
            time.sleep(n % 5 * 0.0001)
            other.close()
        # It counts for the user until it is completed or cancelled: the last of these, too.
        before = parameter("pending", 1)
        try:
            settle(lambda: timer.arm(soon(600_000), 0, MONOTONIC))
            timer.arm(0)
            parameter("pending", 2)
            for _ in range(2):
                ring.submit(timer.fd, uring.WAIT, uring.moment(soon(600_000), MONOTONIC))
            ring.submit(timer.fd, uring.WAIT, uring.moment(soon(600_000), MONOTONIC), 7)
            assert ring.wait() == [(7, -errno.EBUSY)]
            ring.close()
            settle(lambda: timer.arm(soon(600_000), 0, MONOTONIC))
            timer.arm(0)

            # io_uring keeps a process's submissions to a ring that others share.
            def submits() -> None:
                for n, ms in enumerate((300, 600_000)):
                    other.submit(timer.fd, uring.WAIT, uring.moment(soon(ms), MONOTONIC), n)
                os.kill(os.getpid(), signal.SIGKILL)

            other = uring.Ring()
            assert child(submits) == -signal.SIGKILL
            while not (found := other.ready()):
                time.sleep(0.01)
            assert found == [(0, 0)]
            other.close()
            settle(lambda: timer.arm(soon(600_000), 0, MONOTONIC))
        finally:
            parameter("pending", before)
        # A user that has no wake-ups left on this CPU is notified, and gets none of another.
        before = parameter("rate", 1), parameter("burst", 4)
        try:
            os.sched_setaffinity(0, {0})
            ring = uring.Ring()
            start = time.monotonic()
            for n in range(16):
                ring.submit(timer.fd, uring.WAIT, uring.moment(soon(600_000), MONOTONIC), n)
            results = [result for _, result in ring.ready()]
            granted = 4 + 1 + time.monotonic() - start
            assert len(results) >= 16 - granted and set(results) == {-errno.EAGAIN}, results
            ring.close()
        finally:
            parameter("rate", before[0])
            parameter("burst", before[1])


def settle(function) -> None:
    """Call a function until it no longer fails with EBUSY."""
    while True:
        try:
            function()
        except OSError as error:
            assert error.errno == errno.EBUSY, error
            time.sleep(0.01)
            continue
        return


def fence() -> None:
    """Only real-time threads get a fence, unless they decline it."""
    with Timer() as timer:
        for policy, flags, wanted in (
            (os.SCHED_OTHER, 0, False), (os.SCHED_FIFO, 0, True), (os.SCHED_RR, 0, True),
            (os.SCHED_FIFO, apic_timer.NO_FENCE, False),
        ):  # fmt: skip
            os.sched_setscheduler(0, policy, os.sched_param(1 if policy else 0))
            # A machine that is held up meanwhile, or is slow, does not sleep.
            asked = next(asked for ms in (20, 200, 2000)
                         if (asked := timer.sleep_until(soon(ms), MONOTONIC, flags)).result & 1
                         )  # fmt: skip
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            assert bool(asked.result & 2) == wanted, (policy, flags)


def priority() -> None:
    """The device raises no thread's priority."""
    with Timer() as timer:
        before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
        timer.sleep_until(soon(), MONOTONIC)
        assert (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


def outrun() -> None:
    """A reader that goes on running keeps the file neither from other readers nor open.

    On PREEMPT_RT the reader preempts the thread that wakes it.
    """
    returned, ended, end = 0, 1, 2
    flags = mmap.mmap(-1, 3)
    timer = Timer()
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    pid = os.fork()
    if not pid:
        os.sched_setaffinity(0, {1})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        timer.arm(soon(), clock=MONOTONIC)
        os.read(timer.fileno(), 8)
        os.close(timer.fileno())
        flags[returned] = 1
        give_up = soon(20_000)
        while not flags[end] and time.monotonic_ns() < give_up:
            pass
        flags[ended] = 1
        os._exit(0)
    try:
        while not flags[returned]:
            time.sleep(0.01)
        for _ in range(3):
            timer.arm(soon(), clock=MONOTONIC)
            assert timer.read() == 1
            assert not flags[ended], "a reader on another CPU waited for the one that runs"
        timer.close()
        assert not flags[ended], "close() waited for the reader that runs"
    finally:
        flags[end] = 1
        os.waitpid(pid, 0)
        os.sched_setaffinity(0, cpus)


def run(name: str) -> None:
    """Run a case."""
    globals()[name]()
