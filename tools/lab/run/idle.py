"""Measure idle states for docs/results: the cost of keeping a CPU out of the deep ones.

One exact timer per second runs on the last CPU, in virtual time. A test module gives the kernel
three idle states: polling, one like C1, and a deep one like C6. A guest with one CPU shows how
waking from the deep state affects the timer's error; a guest with two shows the state of each CPU,
because in virtual time none of several CPUs can take time to wake up.
"""

import re
from collections.abc import Iterable

from ..base.progress import say
from ..build import build
from ..engines import virtual
from ..kernels import kernels

SERIES = "6.1"
# Parameters of the module; the last setting has none, and a request that holds for all CPUs.
FOR_ALL = "/dev/cpu_dma_latency"
SETTINGS = ("latency_qos=N", "latency_qos_us=-1", "latency_qos_us=0", FOR_ALL)
STATES = ("polling", "shallow", "deep")
SECONDS, SHORT = 20, 10
POLLING = 3  # s with FOR_ALL: the emulator has to run all of them, and they are alike
TIMEOUT_S = 1800  # the emulator has to run all the time in which only one CPU is in the deep state
WAKING_US = 133  # as the module reports to the governor

SCRIPT = """
insmod $MODULES/apic_timer.ko source=proxy {setting}
insmod $MODULES/apic_timer_idle.ko exit_us={waking}
insmod $MODULES/apic_timer_busy.ko rate=1 only={last}
states() {{
    for cpu in $(seq 0 {last}); do
        echo state $cpu $(cat /sys/devices/system/cpu/cpu$cpu/cpuidle/state?/time)
    done
}}
sleep 1
echo reset >/sys/kernel/debug/apic_timer/errors
states
sleep {seconds}
states
cat /sys/kernel/debug/apic_timer/errors
for name in busy idle; do rmmod apic_timer_$name; done
rmmod apic_timer
"""


def measure(*, short: bool) -> list[dict]:
    """Run everything; return a row per setting. AssertionError if a guest fails."""
    kernel = kernels.ensure(SERIES)
    modules = sorted(build.build(kernel).rglob("*.ko"))
    rows = []
    for setting in SETTINGS:
        say("idle", setting)
        seconds = POLLING if setting == FOR_ALL else SHORT if short else SECONDS
        outputs = {}
        for cpus, waking in ((1, WAKING_US), (2, 0)):
            script = SCRIPT.format(setting=setting, waking=waking, last=cpus - 1, seconds=seconds)
            if setting == FOR_ALL:
                # 0 us, for as long as the shell keeps it open.
                script = (f"exec 3>{FOR_ALL}; printf '\\0\\0\\0\\0' >&3\n"
                          + script.replace(setting, "latency_qos=N"))  # fmt: skip
            found = virtual.run(kernel, script, modules=modules, cpus=cpus, timeout=TIMEOUT_S)
            outputs[cpus] = found.check().output
        other, timers = shares(outputs[2].splitlines(), seconds)
        rows.append({"setting": setting, "kernel": kernel.release, "timers": timers,
                     "other": other, "error": latest(outputs[1])})  # fmt: skip
    return rows


def shares(lines: Iterable[str], seconds: int) -> list[list[float]]:
    """Return the percentages of time that each CPU spent in each of STATES."""
    found = [list(map(int, line.split()[1:])) for line in lines if line.startswith("state ")]
    cpus = len(found) // 2
    return [
        [round((b - a) / seconds / 1e4, 1) for a, b in zip(before[1:], after[1:], strict=True)]
        for before, after in zip(found[:cpus], found[cpus:], strict=True)
    ]


def latest(output: str) -> str:
    """Return the class of the latest expiry in the debugfs histogram."""
    return re.findall(r"^(\S+\.\.\S*|\d+) ", output, re.M)[-1]
