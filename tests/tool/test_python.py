"""The Python bindings of user/, as far as they need no device."""

import errno
import importlib.util
import os

import pytest
from machine_files import TREE


@pytest.fixture
def bindings():
    """Return the module."""
    spec = importlib.util.spec_from_file_location("apic_timer", TREE / "user/apic_timer.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


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
