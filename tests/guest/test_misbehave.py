"""Handlers that break the rules of hard interrupts do no harm: tests/modules/faults/misbehave.c."""

import re

import pytest
from lab.base.errors import LostVM
from lab.build import build
from lab.engines import smp
from lab.kernels import kernels
from machines import TABLE, Machine

# On the last CPU, among the timers of a consumer that has some on all.
MISBEHAVE = """
    unload
    load apic_timer
    load apic_timer_busy rate=1000
    load apic_timer_misbehave
    last=$((CPUS - 1))
    ran=/sys/module/apic_timer_misbehave/parameters/ran
    for i in 1 2 3 4 5; do
        taskset $((1 << last)) sh -c 'echo {case} >/sys/module/apic_timer_misbehave/parameters/run'
        patiently eval '[ $(cat $ran) -ge $i ]' || true
    done
    cat $ran
    busy=/sys/module/apic_timer_busy/parameters/ran
    before=$(cat $busy)
    sleep 0.5
    soon=$(($(cat $busy) - before))
    patiently eval '[ $(cat $busy) -gt $((before + 100)) ]' || true
    echo $soon $(($(cat $busy) - before))
    unload
    log | grep 'apic_timer: handler' || true
    """
TOLD = {
    "enable_interrupts": "has enabled interrupts",
    "leave_preemption_off": "has left a preempt count of ",
}


def cases(machine: Machine) -> list[str]:
    """List what handlers may do wrong; lockdep reports some of these itself."""
    lockdep = machine.kernel.endswith("-debug")
    return [case for case in TOLD if not (lockdep and case == "enable_interrupts")]


@pytest.mark.guest(TABLE, MISBEHAVE, cases=cases)
def test_put_right(guest):
    """It is reported once, our timers and the kernel's continue, and the log has no splat."""
    ran, more, *told = guest.ok().splitlines()
    assert int(ran) == 5
    soon, later = map(int, more.split())
    assert (later if guest.machine.real_time else soon) > 100
    (line,) = told
    name, text = re.search(r"handler (\w+) \[apic_timer_misbehave\] (.*)", line).groups()
    assert TOLD[name] in text


def test_sleeping():
    """The kernel names the handler, as for an hrtimer; it does not survive either."""
    kernel = kernels.ensure("6.1")
    script = """
        insmod $MODULES/apic_timer.ko
        insmod $MODULES/apic_timer_misbehave.ko
        echo sleep >/sys/module/apic_timer_misbehave/parameters/run
        sleep 10
        """
    modules = sorted(build.build(kernel).rglob("*.ko"))
    with pytest.raises(LostVM) as lost:
        smp.run(kernel, script, modules=modules, cpus=2, timeout=100)
    assert "BUG: scheduling while atomic" in lost.value.console
    assert "sleep+0x" in lost.value.console
    assert "[apic_timer_misbehave]" in lost.value.console
