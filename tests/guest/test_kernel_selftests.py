"""The kernel's own timer tests have the same results with and without the module.

tools/testing/selftests/timers of the kernel's source, and rt-tests' signaltest, run three times in
one boot in virtual time: with apic_timer absent, with it attached and idle, and with it firing
10,000 shots a second.
"""

import functools
import re
import subprocess
from pathlib import Path

import pytest
from lab.base import cache
from lab.build import build, userland
from lab.engines import virtual
from lab.kernels import kernels, sources

SERIES = "6.1"
DIRECTORY = "tools/testing/selftests"
# With --matrix, tests that take minutes of wall time run as well.
SHORT = ["valid-adjtimex"]
LONG = ["mqueue-lat", "nanosleep", "set-timer-lat", "raw_skew", "nsleep-lat", "posix_timers",
        "inconsistency-check -t 1", "threadtest -n 4 -t 1"]  # fmt: skip
STATES = ("absent", "attached", "firing")
SCRIPT = """
[ -d /dev/mqueue ] || {{ mkdir /dev/mqueue; mount -t mqueue none /dev/mqueue; }}
[ -d /dev/shm ] || mkdir /dev/shm
run() {{
    echo "@begin@ $1 $2"
    status=0
    {command} || status=$?
    echo "@end@ $status"
}}
for state in {states}; do
    case $state in
    attached | firing) insmod $MODULES/apic_timer.ko source=proxy ;;
    esac
    [ $state != firing ] || insmod $MODULES/apic_timer_busy.ko rate=10000
    run $state
    if [ $state = firing ]; then
        echo ran $(cat /sys/module/apic_timer_busy/parameters/ran)
        rmmod apic_timer_busy
    fi
    [ $state = absent ] || rmmod apic_timer
done
"""


@functools.cache
def program(name: str) -> Path:
    """Return one of the kernel's tests, compiled for guests without libraries."""
    source = sources.ensure(SERIES)
    names = [f"{DIRECTORY}/kselftest.h", *(f"{DIRECTORY}/timers/{n.split()[0]}.c"
                                           for n in (*SHORT, *LONG))]  # fmt: skip
    tree = sources.members(source, names) / DIRECTORY / "timers"
    target = cache.cache_dir("selftests") / f"{source.version}-{name}"
    if not target.exists():
        # A kernel's tests are not our code, nor are their warnings our mistakes. One test defines a
        # function that the library also has.
        new = target.parent / f"{target.name}.new"
        flags = ["-O2", "-w", "-static", "-pthread", "-Wl,--allow-multiple-definition"]
        subprocess.run(["gcc", *flags, "-o", new, tree / f"{name}.c"], check=True)
        new.rename(target)
    return target


def results(command: str, timeout: float) -> dict[str, tuple[int, list[str]]]:
    """Run a command in each state; return its exit status and its verdicts, by state."""
    kernel = kernels.ensure(SERIES)
    name = command.split()[0]
    found = virtual.run(
        kernel,
        SCRIPT.format(command=command, states=" ".join(STATES)),
        modules=sorted(build.build(kernel).rglob("*.ko")),
        files={f"usr/bin/{name}": signaltest() if name == "signaltest" else program(name)},
        timeout=timeout,
    )
    assert found.ok, f"{found.verdict}\n{found.output}\n{found.kernel_log[-3000:]}"
    assert int(re.search(r"^ran (\d+)$", found.output, re.M)[1]) > 10
    runs = re.findall(r"^@begin@ (\w+)[^\n]*\n(.*?)^@end@ (\d+)$", found.output, re.M | re.S)
    print(found.output)
    return {state: (int(status), re.findall(r"\[\w+\]|\b(?:not )?ok\b|\bPass|\bFail", text))
            for state, text, status in runs}  # fmt: skip


def signaltest() -> Path:
    return userland.root() / "usr/bin/signaltest"


@pytest.mark.parametrize(
    "command", [*SHORT, *(pytest.param(c, marks=pytest.mark.matrix) for c in LONG)]
)
def test_same_results(command):
    found = results(command, timeout=1200)
    assert list(found) == list(STATES)
    status, verdicts = found["absent"]
    assert status == 0
    assert verdicts
    assert found["attached"] == found["firing"] == found["absent"]


@pytest.mark.matrix
def test_signaltest():
    """All of its signals arrive, in each state."""
    found = results("signaltest -q -l 2000 -t 2", timeout=600)
    assert {status for status, _ in found.values()} == {0}
