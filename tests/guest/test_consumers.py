"""A module's timers are cancelled when it is unloaded; unloading other modules costs nothing."""

import re

import pytest
from machines import TABLE, some


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    insmod $MODULES/apic_timer_crowd.ko count=20
    insmod $MODULES/apic_timer_indirect.ko
    ls /sys/module/apic_timer/holders
    grep -c . $DEBUG/apic_timer/pending
    rmmod apic_timer_indirect
    grep -c . $DEBUG/apic_timer/pending
    rmmod apic_timer_crowd
    grep -c . $DEBUG/apic_timer/pending || true
    log | grep 'cancelled'
    unload
    """,
    brief=True,
)
def test_by_way_of_another_module(guest):
    """A module that uses none of our symbols may have timers, through a module that does."""
    holder, both, crowd, none, *log = guest.ok().splitlines()
    assert holder == "apic_timer_crowd"
    assert [both, crowd, none] == ["21", "20", "0"]
    pattern = re.compile(r"cancelled (\d+) pending timer\(s\) of handler (\w+) ")
    found = [pattern.search(line).groups() for line in log]
    assert found == [("1", "indirect_handler"), ("20", "crowd_handler")]


@pytest.mark.long
@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    """
    unload
    load apic_timer
    now() { sed -n 's/^now at \\([0-9]*\\).*/\\1/p' /proc/timer_list; }
    for count in 1 1000000; do
        insmod $MODULES/apic_timer_crowd.ko count=$count
        load apic_timer_bench
        before=$(now)
        rmmod apic_timer_bench
        echo $(($(now) - before))
        rmmod apic_timer_crowd
    done
    unload
    """,
)
def test_unrelated_module(guest):
    """Unloading it takes as long with a million timers pending as with one."""
    one, million = map(int, guest.ok().split())
    print(one, million)
    assert million < one + 20_000_000
