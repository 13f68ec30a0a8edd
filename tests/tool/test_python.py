"""The Python bindings of user/, as far as they need no device."""

import errno
import importlib.util
import os

import pytest
from machine_files import TREE


def loaded(name: str):
    """Load a module of user/."""
    spec = importlib.util.spec_from_file_location(name, TREE / f"user/{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def bindings():
    """Return the module of the timers."""
    return loaded("apic_timer")


@pytest.fixture
def timer(bindings):
    """Return a Timer whose device is another one, with a time page of zeros."""
    return bindings.Timer(os.open("/dev/zero", os.O_RDWR | os.O_CLOEXEC))


def test_closed_twice(timer):
    """The second time it is no longer the Timer's: another file may have its number."""
    with timer:
        number = timer.fd
        timer.close()
        other = os.open("/dev/null", os.O_RDONLY)
        assert other == number
    os.close(other)


def test_reads_the_whole_tsc(bindings):
    """Code for 64 bits means something else in a process of 32 bits, which returns EDX:EAX."""
    assert bindings._Rdtsc.CODES[64].startswith(bindings._Rdtsc.CODES[32][:-1])
    rdtsc = bindings._Rdtsc()
    values = [rdtsc.read() for _ in range(100)]
    assert values == sorted(values) and values[0] > 0


def test_memory_that_may_not_be_executed(bindings, monkeypatch):
    """As with systemd's MemoryDenyWriteExecute: the device is closed again."""

    def refused() -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(bindings, "DEVICE", "/dev/zero")
    monkeypatch.setattr(bindings, "_Rdtsc", refused)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(PermissionError):
        bindings.Timer()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("path", ["/dev/null", __file__], ids=["device", "file"])
def test_device_without_a_page(bindings, monkeypatch, path):
    """A device that fails to open as a whole is closed again."""
    monkeypatch.setattr(bindings, "DEVICE", path)
    before = os.listdir("/proc/self/fd")
    with pytest.raises((OSError, ValueError)):
        bindings.Timer()
    assert os.listdir("/proc/self/fd") == before


@pytest.fixture
def asked(bindings, monkeypatch):
    """Return the list of what the kernel is asked for, in place of asking it."""
    found = []
    monkeypatch.setattr(bindings.fcntl, "ioctl", lambda _fd, _command, what: found.append(what))
    return found


@pytest.mark.parametrize("seconds", [-1, -0.001, -1e9])
def test_a_negative_time(timer, asked, seconds):
    """As with time.sleep(): it is no moment of the far future, even if it is beyond the uptime."""
    with pytest.raises(ValueError, match="negative"):
        timer.sleep(seconds)
    assert not asked


@pytest.mark.parametrize("moment, meant, armed", [
    (-5, 0, 1), (-(2**64), 0, 1), (0, 0, 0), (7, 7, 7), (2**64 - 1, 2**64 - 1, 2**64 - 1),
    (2**64 + 7, 2**64 - 1, 2**64 - 1),
])  # fmt: skip
def test_moments_of_no_clock(timer, asked, moment, meant, armed):
    """Those below 0 have passed, and disarm nothing; those beyond its end do not come."""
    timer.sleep_until(moment)
    timer.arm(moment)
    assert [what.expires for what in asked] == [meant, armed]


@pytest.mark.parametrize("function, arguments", [
    ("arm", {"moment": 1, "interval": -1}), ("arm", {"moment": 1, "interval": 2**64}),
    ("sleep_until", {"moment": 1, "budget": 2**32}), ("sleep_until", {"moment": 1, "flags": -1}),
    ("query", {"cpu": -1}), ("query", {"cpu": 2**32}),
])  # fmt: skip
def test_numbers_without_room(timer, asked, function, arguments):
    """They are refused, not cut off to others: CPU 2 ** 32 would be CPU 0."""
    with pytest.raises(OverflowError, match="does not hold"):
        getattr(timer, function)(**arguments)
    assert not asked


@pytest.mark.parametrize("function, arguments", [
    ("load", (-1, [])), ("load", (10**6, [(-1, 100, 0)])), ("load", (10**6, [(0, 2**64, 0)])),
    ("start", (0, -1)), ("start", (-1,)), ("switch", (1, -(10**9))), ("stop", (2**32,)),
    ("bind", (2**32,)), ("wait", (-1,)), ("status", (2**32,)),
])  # fmt: skip
def test_numbers_without_room_in_a_calendar(monkeypatch, asked, function, arguments):
    bindings = loaded("apic_calendar")
    monkeypatch.setattr(bindings, "DEVICE", "/dev/zero")
    with bindings.Calendar() as calendar, pytest.raises(OverflowError, match="does not hold"):
        getattr(calendar, function)(*arguments)
    assert not asked
    with pytest.raises(OverflowError, match="cpu does not hold -1"):
        bindings.Unit.user("a", -1)
