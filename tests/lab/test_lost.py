"""The report on a guest that had to be killed says what it was doing."""

import pytest
from lab.base.errors import LostVM
from lab.engines import virtual
from lab.kernels import kernels

pytestmark = pytest.mark.long

SECONDS = 8  # usually enough to boot; nothing depends on it


@pytest.mark.flaky(reruns=0)
def test_what_it_was_at():
    with pytest.raises(LostVM, match=f"^no verdict within {SECONDS} s, ") as lost:
        virtual.run(kernels.ensure("6.1"), "while :; do :; done", timeout=SECONDS)
    for said in ("VM status: running", "RIP=", "LVTT"):
        assert said in lost.value.reason


def test_a_panic_is_shown():
    """It is shown after any amount of output from the script."""
    script = "seq 1000\necho c >/proc/sysrq-trigger"
    with pytest.raises(LostVM) as lost:
        virtual.run(kernels.ensure("6.1"), script)
    message = str(lost.value)
    assert "Kernel panic - not syncing: sysrq triggered crash" in message
    assert "\n1000\n" in message and "\n1\n" not in message
