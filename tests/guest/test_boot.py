"""Under each kernel parameter the module works, or refuses with a clear line and leaves no trace.

`nolapic` is not among them: the emulated machine does not boot with it, even without the module.
"""

import re
from pathlib import Path

import pytest
from machines import Machine

# The source in use: "proxy", "hrtimer", or "" if the kernel accepts no module of ours.
SOURCES = {
    "nohz_full=1": "proxy",
    "nolapic_timer": "hrtimer",
    "maxcpus=1": "proxy",
    "lockdown=integrity": "",
    "nohz=off": "proxy",
    "highres=off": "proxy",
    "isolcpus=1": "proxy",
    "idle=poll": "proxy",
    "processor.max_cstate=0": "proxy",
    "nox2apic": "proxy",
    "lapic=notscdeadline": "proxy",
    "noapic": "proxy",
    "notsc": "proxy",
    "tsc=reliable": "proxy",
    "tsc=unstable": "proxy",
    "clocksource=hpet": "proxy",
    "hpet=disable": "proxy",
    "nosmp": "proxy",
    "threadirqs": "proxy",
    "preempt=none": "proxy",
    "preempt=full": "proxy",
}
SHORT = 4  # number of them without --matrix
# Those for which it differs with TSC deadline.
DEADLINE = {
    "nolapic_timer": "proxy",
}
MACHINES = [
    *(Machine("6.1", 2, source="auto", append=parameter, matrix=number >= SHORT)
      for number, parameter in enumerate(SOURCES)),
    *(Machine("6.1", 2, source="auto", engine="bochs", append=parameter, matrix=True)
      for parameter in DEADLINE),
]  # fmt: skip
INSTALL = Path(__file__).resolve().parents[2] / "docs/howto/install.md"
CASES = ("one_shot", "every_distance", "periodic", "again_and_again", "order_with_ties")


@pytest.mark.guest(
    MACHINES,
    f"""
    echo cpus $(grep -c ^processor /proc/cpuinfo)
    echo before $(tick_devices)
    if load apic_timer 2>&1; then
        load apic_timer_selftest
        for case in {" ".join(CASES)}; do
            echo $case >$DEBUG/apic_timer_selftest/run
            echo case $case $(head -n 1 $DEBUG/apic_timer_selftest/result)
        done
        echo during $(tick_devices)
        before=$(ticks)
        sleep 0.5
        echo ticks $before
        echo ticks $(ticks)
        unload
    fi
    echo after $(tick_devices)
    ls -d /sys/module/apic_timer $DEBUG/apic_timer 2>/dev/null || echo nothing left
    sleep 0.2
    log
    """,
)
def test_parameter(guest):
    deadline = guest.machine.engine == "bochs"
    source = (DEADLINE if deadline else SOURCES)[guest.machine.append]
    output = guest.ok()
    found: dict[str, list[list[str]]] = {}
    for line in output.splitlines():
        word, *rest = line.split() or [""]
        found.setdefault(word, []).append(rest)
    cpus = int(found["cpus"][0][0])
    assert cpus == (1 if guest.machine.append in ("maxcpus=1", "nosmp") else 2)
    assert "nothing left" in output
    assert found["after"] == found["before"]
    if not source:
        # The kernel itself refuses, and the page has what it says.
        for said in ("Operation not permitted", "unsigned module loading is restricted"):
            assert said in output and f"`{said}`" in INSTALL.read_text()
        return
    (line,) = re.findall(rf"apic_timer: source {source} \(.*\) serves CPUs.*", output)
    assert ("TSC-deadline" in line) == deadline
    # Not even if a source that was tried before could not serve it.
    assert "does not accept timers" not in output
    assert found["case"] == [[case, "ok"] for case in CASES]
    if source == "proxy":
        assert found["during"][0][:cpus] == ["apic_timer"] * cpus
    first, second = ([int(n) for n in row] for row in found["ticks"])
    # Some idle CPUs may tick rarely; this one has slept and woken.
    assert sum(second) > sum(first)
