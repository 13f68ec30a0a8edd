"""Each KUnit suite of this directory passes as a module of the lab's own kernel, in virtual time.

The lab's kernel has KUnit, which distributions leave out, and is patched: it has both of the
sources on the LAPIC timer.
"""

import re

import pytest
from lab.run import kunit
from machines import some

SCRIPT = """
    unload
    SOURCE={source}
    load apic_timer
    load apic_timer_accuracy virtual_time=1 source={source}
    load apic_timer_accuracy_test
    log
    unload
"""
CASE = re.compile(r"^\[[ \d.]+\]     (ok|not ok) \d+(?: -)? (\w+)( # SKIP)?", re.MULTILINE)
SUITE = re.compile(r"^\[[ \d.]+\]     # Subtest: (\w+)$", re.MULTILINE)
MACHINES = some(kernel="6.1-patched", engine="virtual", cpus=1)


def judge(log: str) -> None:
    """Check that each declared case has passed."""
    print(log)
    _, *parts = SUITE.split(log)
    verdicts = {
        f"{suite}.{name}": verdict + skipped
        for suite, part in zip(parts[::2], parts[1::2], strict=True)
        for verdict, name, skipped in CASE.findall(part)
    }
    assert verdicts == dict.fromkeys(kunit.TARGETS["x86_64"].declared(), "ok")


@pytest.mark.guest(MACHINES, SCRIPT.format(source="proxy"))
def test_proxy(guest):
    judge(guest.ok())


@pytest.mark.matrix
@pytest.mark.guest(MACHINES, SCRIPT.format(source="hook"))
def test_hook(guest):
    judge(guest.ok())
