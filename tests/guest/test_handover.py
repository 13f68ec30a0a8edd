"""A successor kernel finds clean LAPICs, although timers fired and were pending at the handover."""

import re

import pytest
from lab.base.errors import LostVM
from lab.build import build
from lab.engines import successor
from lab.kernels import kernels

CPUS = 2
FIRE = """
    insmod $MODULES/apic_timer.ko
    insmod $MODULES/apic_timer_busy.ko rate=2000 waiting=100
    sleep 1
    cat /sys/module/apic_timer_busy/parameters/ran
"""
# The kind of handover, and kernel parameters of the first kernel
WAYS = {
    "kexec": ("successor -l succeeds; kexec -e", ""),
    "crash": ("successor -p succeeds; echo c >/proc/sysrq-trigger", "crashkernel=256M"),
}
THEN = """
    grep -w succeeds /proc/cmdline
    echo cpus $(getconf _NPROCESSORS_ONLN 2>/dev/null || grep -c ^processor /proc/cpuinfo)
    echo before $(cat /sys/devices/system/clockevents/clockevent*/current_device)
    grep -E '(LOC|SPU|ERR):' /proc/interrupts
    insmod $MODULES/apic_timer.ko
    insmod $MODULES/apic_timer_selftest.ko
    for case in one_shot every_distance periodic; do
        echo $case >/sys/kernel/debug/apic_timer_selftest/run
        echo case $case $(head -n 1 /sys/kernel/debug/apic_timer_selftest/result)
    done
    rmmod apic_timer_selftest
    rmmod apic_timer
    echo after $(cat /sys/devices/system/clockevents/clockevent*/current_device)
    dmesg | grep apic_timer:
"""


def built(kernel: kernels.Kernel) -> list:
    """Return this tree's modules for a kernel."""
    return sorted(build.build(kernel).rglob("*.ko"))


@pytest.mark.parametrize(
    "series",
    [pytest.param(s, marks=[pytest.mark.matrix] if s != "6.1" else []) for s in kernels.SUPPORTED],
)
@pytest.mark.parametrize("way", WAYS)
def test_successor(series, way):
    kernel = kernels.ensure(series)
    leave, parameters = WAYS[way]
    result = successor.run(kernel, f"{FIRE}\n{leave}\n", then=THEN, modules=built(kernel),
                           cpus=CPUS, append=parameters, timeout=600)  # fmt: skip
    result.check()
    output = result.output
    first, second = output.split("succeeds", 1)
    # It fired there.
    assert any(int(n) > 100 for n in first.split() if n.isdigit()), first
    cpus = int(re.search(r"^cpus (\d)$", second, re.M)[1])
    (before,), (after,) = (re.findall(rf"^{w} (.*)$", second, re.M) for w in ("before", "after"))
    assert before == after
    assert before.split()[:cpus] == ["lapic"] * cpus
    # An LAPIC that was not clean would cause a spurious interrupt or an error.
    # A kernel may leave out kinds that have not occurred.
    assert re.search(r"LOC: +[1-9]", second)
    counts = re.findall(r"\b(SPU|ERR):([ \d]+)", second)
    assert all(set(count.split()) == {"0"} for _, count in counts), counts
    assert counts or series != "6.1"
    assert re.search(r"apic_timer: source proxy .* serves CPUs", second)
    assert re.findall(r"^case (\w+) (\w+)$", second, re.M) == [
        (case, "ok") for case in ("one_shot", "every_distance", "periodic")
    ]


def test_panic():
    """A panic is reported, and the machine resets as without the module; -no-reboot ends QEMU."""
    kernel = kernels.ensure("6.1")
    script = f"{FIRE}\necho c >/proc/sysrq-trigger\n"
    # By itself, not by the time limit
    with pytest.raises(LostVM, match="^no verdict\n") as lost:
        successor.run(kernel, script, then="", modules=built(kernel), cpus=CPUS, append="panic=1",
                      timeout=300)  # fmt: skip
    assert "Kernel panic" in lost.value.console
    assert "Rebooting in 1 seconds" in lost.value.console
