"""The Python bindings of user/, as far as they need no device."""

import importlib.util
import os

import pytest
from machine_files import TREE


@pytest.fixture
def timer(tmp_path):
    """Return a Timer whose file is not the device, with a time page of zeros."""
    spec = importlib.util.spec_from_file_location("apic_timer", TREE / "user/apic_timer.py")
    bindings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bindings)
    page = tmp_path / "page"
    page.write_bytes(bytes(4096))
    return bindings.Timer(os.open(page, os.O_RDWR | os.O_CLOEXEC))


def test_closed_twice(timer):
    """The second time it is no longer the Timer's: another file may have its number."""
    with timer:
        number = timer.fd
        timer.close()
        other = os.open("/dev/null", os.O_RDONLY)
        assert other == number
    os.close(other)
