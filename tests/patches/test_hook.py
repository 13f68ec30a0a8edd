"""The hook of patched kernels lets probe/ take over the kernel's events and add its own.

The kernel's tick must continue as if the hook was not there. With nolapic_timer the tick comes from
another device, and reaches all CPUs except one by the timer's vector.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from lab.build import build
from lab.engines import smp, virtual
from lab.kernels import patched

TREE = Path(__file__).resolve().parents[2]

PERIOD = 0.001  # s between two shots of the probe
SCRIPT = """
irq0() {
    awk '$1 == "0:" { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i
        print "'$1' '$2'", n }' /proc/interrupts
}
state() {
    irq0 $1 irq0_early
    awk '$1 == "jiffies:" { print "'$1' jiffies", $2; exit }' /proc/timer_list
    awk '/LOC:/ { for (i = 2; $i ~ /^[0-9]+$/; i++) print "'$1' loc" i - 2, $i }' /proc/interrupts
    irq0 $1 irq0
    echo $1 uptime $(cut -d ' ' -f 1 /proc/uptime)
}
for cpu in /sys/devices/system/clockevents/clockevent*; do
    echo device $(cat $cpu/current_device)
done
state before
insmod $MODULES/hook_probe.ko
state loaded
sleep 1
i=0
while [ $i -lt 20000 ]; do i=$((i + 1)); done
sleep 1
state end
rmmod hook_probe
state unloaded
sleep 1
state after
dmesg | grep hook_probe:
"""


@dataclass(frozen=True)
class Machine:
    """A patched kernel and its boot options."""

    kernel: str
    cpus: int
    nolapic_timer: bool = False
    virtual: bool = True

    @property
    def id(self) -> str:
        """Name of the machine in test ids."""
        more = "-exclusive" * self.nolapic_timer + "-virtual" * self.virtual
        return f"{self.kernel}-{self.cpus}cpu{more}"


SHORT = 3  # number of them without --matrix
MACHINES = [
    Machine("6.1-patched", 1, nolapic_timer=True),
    Machine("6.1-patched", 2),
    Machine("6.1-patched", 2, virtual=False),
    Machine("6.1-patched", 1),
    Machine("6.1-patched", 2, nolapic_timer=True),
    Machine("6.1-patched", 2, virtual=False, nolapic_timer=True),
    Machine("6.12-patched", 1, nolapic_timer=True),
    Machine("6.12-patched", 2),
    Machine("6.12-patched", 2, nolapic_timer=True),
    Machine("7.2-patched", 1, nolapic_timer=True),
    Machine("7.2-patched", 2),
    Machine("7.2-patched", 2, nolapic_timer=True),
]


@dataclass(frozen=True)
class Seen:
    """A machine's counters by moment and name, and the probe's by CPU."""

    devices: list[str]
    states: dict[str, dict[str, float]]
    probes: list[dict[str, int]]
    output: str

    def delta(self, name: str, first: str = "loaded", last: str = "end") -> float:
        """Return the increase of a counter between two moments."""
        return self.states[last][name] - self.states[first][name]


@cache
def seen(machine: Machine) -> Seen:
    """Boot a machine, once."""
    kernel = patched.ensure(machine.kernel)
    probe = build.find_ko(build.build_external(kernel, TREE / "tests/patches/probe"), "hook_probe")
    guest = virtual if machine.virtual else smp
    append = "nolapic_timer" if machine.nolapic_timer else ""
    result = guest.run(kernel, SCRIPT, modules=[probe], cpus=machine.cpus, append=append,
                       timeout=300)  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-4000:]}"
    states: dict[str, dict[str, float]] = {}
    for moment, name, value in re.findall(r"^(\w+) (\w+) ([\d.]+)$", result.output, re.M):
        states.setdefault(moment, {})[name] = float(value)
    lines = re.findall(r"hook_probe: (cpu=.*)", result.output)
    probes = [{k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line)} for line in lines]
    devices = re.findall(r"^device (\S+)$", result.output, re.M)
    assert len(probes) == machine.cpus, result.output
    return Seen(devices, states, probes, result.output)


def machines(**wanted) -> pytest.MarkDecorator:
    """Run a test on the machines whose fields have these values."""
    found = [m for m in MACHINES if all(getattr(m, k) == v for k, v in wanted.items())]
    # Each kernel takes minutes to build.
    params = [
        pytest.param(m, id=m.id, marks=[pytest.mark.matrix] * (m not in MACHINES[:SHORT]))
        for m in found
    ]
    return pytest.mark.parametrize("machine", params)


@machines()
def test_shots(machine):
    """Every shot arrives, in the context that the hook promises."""
    got = seen(machine)
    for probe in got.probes:
        assert probe["wrong"] == probe["passed_on"] == 0, got.output
        assert probe["shots"] > 0
        if machine.virtual:
            assert probe["shots"] >= 0.98 * got.delta("uptime") / PERIOD, got.output


@machines(virtual=True)
def test_each_interrupt_is_counted_once(machine):
    """Each interrupt has one EOI and one count, on any path."""
    got = seen(machine)
    broadcasts = got.delta("irq0") if machine.nolapic_timer else 0
    for cpu, probe in enumerate(got.probes):
        expected = probe["shots"] + probe["events"] + (broadcasts if cpu else 0)
        counted = got.delta(f"loc{cpu}")
        # `state` itself takes some milliseconds; an early interrupt is one more.
        assert 0.95 * expected - 20 <= counted <= 1.05 * expected + 20, got.output


@machines(virtual=True, nolapic_timer=False)
def test_tick_goes_on(machine):
    """The kernel's time and events are unchanged, with the hook and after it."""
    got = seen(machine)
    assert set(got.devices) == {"lapic"}
    for first, last in (("loaded", "end"), ("unloaded", "after")):
        ticks, seconds = got.delta("jiffies", first, last), got.delta("uptime", first, last)
        assert abs(ticks - 250 * seconds) <= 5, got.output
    for cpu, probe in enumerate(got.probes):
        assert probe["programmed"] > 0 and probe["events"] > 0, got.output
        assert got.delta(f"loc{cpu}", "unloaded", "after") > 0, got.output


@machines(nolapic_timer=True)
def test_nolapic_timer_is_honoured(machine):
    """The kernel neither programs the LAPIC timer nor treats its interrupts as its own."""
    got = seen(machine)
    assert "hook_probe: exclusive" in got.output
    assert got.delta("irq0", "unloaded", "after") > 0
    assert got.states["before"]["loc0"] == 0, got.output
    assert got.devices == (["hpet"] if machine.cpus == 1 else ["lapic", "lapic"])
    for probe in got.probes:
        assert probe["programmed"] == probe["stopped"] == 0, got.output
    assert got.delta("loc0", "unloaded", "after") == 0, got.output


@machines(cpus=2, nolapic_timer=True)
def test_broadcasts(machine):
    """Each HPET tick is one jiffy, and reaches the other CPU, among all the shots."""
    got = seen(machine)
    assert got.states["before"]["loc1"] > 0
    for first, last in (("loaded", "end"), ("unloaded", "after")):
        # In real time `state` may take half a second: its readings lie between two bounds.
        least = got.states[last]["irq0_early"] - got.states[first]["irq0"]
        most = got.states[last]["irq0"] - got.states[first]["irq0_early"]
        assert most > 0
        assert least - 2 <= got.delta("jiffies", first, last) <= most + 2, got.output
        if first == "loaded":  # shots counted as ticks would show here
            assert got.probes[0]["shots"] > 2 * (most - least + 4), got.output
    # While the other CPU, a thread of this machine, is held up, ticks that are sent to it merge.
    least = least - 2 if machine.virtual else 1
    assert least <= got.delta("loc1", "unloaded", "after") <= most + 2, got.output
