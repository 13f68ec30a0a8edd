"""The module works with a TSC too fast for the 32 bits in Hz of the kernel's clock event devices.

Bochs's TSC runs at some 50 MHz. The kernel is made to take it for a faster one. Only the clocks of
a chipset could contradict that, and a parameter makes the kernel distrust them: LAPIC timer and
clocksource are both the TSC.
"""

import re

import pytest
from lab.bench import bochs as bench_bochs
from lab.build import build
from lab.engines import bochs
from lab.kernels import kernels

SCRIPT = """
    events() { awk '/LOC:/ { print $2 }' /proc/interrupts; }
    jiffies() { awk '$1 == "jiffies:" { print $2; exit }' /proc/timer_list; }
    look() {
        set -- $1 $(events) $(jiffies)
        i=0
        while [ $i -lt 10 ]; do sleep 0.1; i=$((i + 1)); done
        echo $1 $(($(events) - $2)) $(($(jiffies) - $3))
    }
    look without
    insmod /modules/apic_timer.ko source=proxy
    cat /sys/devices/system/clockevents/clockevent0/current_device
    grep -o 'TSC [0-9]* kHz' /sys/kernel/debug/apic_timer/info
    look with
    insmod /modules/apic_timer_busy.ko rate=500
    sleep 1
    echo fired $(awk '$1 == "expired" { print $2 }' /sys/kernel/debug/apic_timer/stats)
    rmmod apic_timer_busy
    rmmod apic_timer
    look after
"""


@pytest.mark.parametrize("khz", [4500000])
def test_kernel_is_interrupted_once_an_event(khz):
    """An idle second takes about as many interrupts with the module as without."""
    kernel = kernels.ensure(bench_bochs.SERIES)
    modules = sorted(build.build(kernel).rglob("*.ko"))
    result = bochs.run(kernel, SCRIPT, modules=modules, timeout=1800,
                       append=f"tsc_early_khz={khz} tsc=reliable")  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}"
    print(result.output)
    rows = [row.split() for row in result.output.splitlines()]
    found = {row[0]: [int(n) for n in row[1:]] for row in rows if row[0] != "TSC" and len(row) > 1}
    assert f"TSC {khz} kHz" in result.output
    assert re.search("^apic_timer$", result.output, re.M)
    for when in ("without", "with", "after"):
        assert 250 <= found[when][1] <= 300
    assert found["with"][0] <= found["without"][0] + 50
    assert found["after"][0] <= found["without"][0] + 50
    assert found["fired"][0] > 400
