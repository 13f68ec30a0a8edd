"""Random operations from all CPUs keep every shot accounted for: tests/modules/torture/*.c."""

import re

import pytest
from machines import some

RUN = """
    unload
    load apic_timer
    load apic_timer_torture duration=0 {parameters}
    torture_result
    unload
"""


def judge(output: str) -> dict[str, int]:
    """Check the module's account; sum up and return its totals."""
    line = output.splitlines()[0]
    print(line)
    assert line.startswith("ok "), line
    counts = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
    assert counts["faults"] == 0
    # Deletions are counted per call, and a waiting one may delete two shots.
    assert counts["ran"] + counts["deleted"] <= counts["armed"]
    assert counts["armed"] - counts["ran"] - counts["deleted"] <= counts["waited"]
    assert counts["fates"] == counts["ran"] + counts["deleted"] + counts["steady"]
    assert counts["steady"] > 0
    return counts


def judge_operations(output: str, operations: int) -> None:
    """Check that the number of operations is as requested, with enough of each kind."""
    counts = judge(output)
    assert counts["operations"] == operations
    for name in ("ran", "deleted", "superseded", "waited", "busy", "freed"):
        assert counts[name] > operations / 1000, name
    # No CPU went offline, so each shot's CPU was known.
    for name in ("refused", "moved", "anywhere", "offs", "stayed"):
        assert counts[name] == 0, name


@pytest.mark.guest(
    some(engine="smp", source="proxy"),
    RUN.format(parameters="operations=1000000 seed=$CPUS"),
)
def test_million(guest):
    judge_operations(guest.ok(), 1_000_000)


@pytest.mark.guest(
    some(engine="smp", cpus=2), RUN.format(parameters="operations=200000 seed=7 writers=3")
)
def test_several_threads_per_cpu(guest):
    judge_operations(guest.ok(), 200_000)


@pytest.mark.guest(
    some(engine="virtual"), RUN.format(parameters="operations=200000 seed=1 writers=2")
)
def test_in_virtual_time(guest):
    judge_operations(guest.ok(), 200_000)


@pytest.mark.guest(
    [*some(kernel="6.1", cpus=4), *some(kernel=("6.1-debug", "6.1-kcsan"))],
    RUN.format(parameters="onoff=200 onoffs=15 rate=20000 reach_us=2000"),
)
def test_cpus_go_off_and_come_back(guest):
    """Each shot of a CPU going offline runs on the one that takes over."""
    counts = judge(guest.ok())
    assert counts["offs"] == 15
    for name in ("moved", "refused"):
        assert counts[name] > 0, name


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp"),
    """
    unload
    load apic_timer
    load apic_timer_torture cpus=1 duration=3 report=1 rate=1000
    torture_result
    log | grep -c 'apic_timer_torture: running operations='
    log | grep 'apic_timer_torture: ok '
    unload
    """,
)
def test_cpus_rate_and_report(guest):
    """On one CPU of two, at most at the given rate, with progress lines."""
    output = guest.ok()
    counts = judge(output)
    _, reports, log = output.splitlines()
    assert int(reports) in (1, 2, 3)
    assert f"operations={counts['operations']} " in log
    # Handlers call too, at most twice each, and a late writer catches up a little.
    assert counts["operations"] <= 3 * 1000 * (3 + 1)


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp"),
    """
    unload
    load apic_timer
    load apic_timer_torture onoff=50 duration=0
    sleep 2
    rmmod apic_timer_torture
    log | sed -n 's/.*apic_timer_torture: ok/ok/p'
    cat /sys/devices/system/cpu/online
    grep -c . $DEBUG/apic_timer/pending || true
    ls -d $DEBUG/apic_timer_torture 2>/dev/null || echo nothing left
    unload
    """,
)
def test_unloaded_in_a_run(guest):
    """It ends with a verdict, and leaves neither CPUs offline nor timers behind."""
    output = guest.ok()
    judge(output)
    _, online, *pending, left = output.splitlines()
    assert online == "0-1"
    assert "torture" not in "".join(pending)
    assert left == "nothing left"


REFUSED = {
    "writers=0": "not 1 to 100",
    "writers=101": "not 1 to 100",
    "timers=0": "not 1 to 1000000",
    "timers=1000001": "not 1 to 1000000",
    "reach_us=0": "must not be 0",
    "rate=1000001": "more than 1000000",
    "onoffs=3": "requires onoff",
    "cpus=2": "not a list of online CPUs",
    "cpus=1-x": "not a list of online CPUs",
    "cpus=0 onoff=100": "no CPU can go offline",
}


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp"),
    """
    unload
    load apic_timer
    for parameters in {}; do
        ! insmod $MODULES/apic_timer_torture.ko $parameters
    done
    [ ! -d /sys/module/apic_timer_torture ]
    log | grep apic_timer_torture:
    """.format(" ".join(f"'{parameters}'" for parameters in REFUSED)),
)
def test_bad_parameters_are_refused(guest):
    output = guest.ok()
    assert output.count("Invalid argument") == len(REFUSED)
    for parameters, reason in REFUSED.items():
        pattern = rf"apic_timer_torture: {re.escape(parameters.split()[-1])}\b.*: {reason}"
        assert re.search(pattern, output), parameters
