"""Random operations from all CPUs, with an account of every shot: tests/modules/stress_*.c."""

import re

import pytest
from machines import some

RUN = """
    unload
    load apic_timer
    load apic_timer_stress operations={operations} seed={seed} threads={threads}
    echo 1 >$DEBUG/apic_timer_stress/run
    cat $DEBUG/apic_timer_stress/result
    cat $DEBUG/apic_timer/stats
    unload
"""


def judge(output: str, operations: int) -> None:
    """The module kept the account; add up the totals, and see that there was enough of all."""
    line = output.splitlines()[0]
    print(line)
    assert line.startswith("ok "), line
    counts = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
    assert counts["operations"] == operations
    assert counts["faults"] == 0
    # Deletions are counted by call, and a waiting one may delete two shots.
    assert counts["ran"] + counts["deleted"] <= counts["armed"]
    assert counts["armed"] - counts["ran"] - counts["deleted"] <= counts["waited"]
    for name in ("ran", "deleted", "superseded", "waited", "busy", "freed"):
        assert counts[name] > operations / 1000, name


@pytest.mark.guest(
    some(engine="smp", source="proxy", x2apic=False),
    RUN.format(operations=1_000_000, seed="$CPUS", threads=1),
)
def test_million(guest):
    judge(guest.ok(), 1_000_000)


@pytest.mark.guest(some(engine="smp", cpus=2), RUN.format(operations=200_000, seed=7, threads=3))
def test_several_threads_per_cpu(guest):
    judge(guest.ok(), 200_000)


@pytest.mark.guest(some(engine="virtual"), RUN.format(operations=200_000, seed=1, threads=2))
def test_in_virtual_time(guest):
    judge(guest.ok(), 200_000)
