"""CPUs go off and come back while timers are pending on them."""

import pytest
from machines import some


@pytest.mark.guest(
    some(cpus=(2, 4)),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=200 waiting=100
    online=/sys/devices/system/cpu/cpu1/online
    of_cpu1() { grep -c '^cpu 1:' $DEBUG/apic_timer/pending || true; }
    echo before $(of_cpu1) $(grep -c waiting_handler $DEBUG/apic_timer/pending)
    for i in 1 2 3; do
        echo 0 >$online
        echo off $(of_cpu1) $(grep -c waiting_handler $DEBUG/apic_timer/pending)
        grep 'cpu 1' $DEBUG/apic_timer/info
        grep migrated $DEBUG/apic_timer/stats
        echo 1 >$online
        echo device $(cat /sys/devices/system/clockevents/clockevent1/current_device)
    done
    rmmod apic_timer_busy

    # It serves again.
    load apic_timer_selftest
    echo every_cpu_to_every_cpu >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    unload
    echo device $(cat /sys/devices/system/clockevents/clockevent1/current_device)
    """,
    brief=True,
)
def test_off_and_on(guest):
    rows = [row.split() for row in guest.ok().splitlines()]
    of = {name: [row[1:] for row in rows if row[0] == name] for name in ("before", "off", "device")}
    assert int(of["before"][0][0]) >= 100 // guest.machine.cpus
    assert of["before"][0][1] == "100"
    assert of["off"] == [["0", "100"]] * 3
    assert rows.count(["cpu", "1:", "takes", "no", "timers"]) == 3
    device = "apic_timer" if guest.machine.source == "proxy" else guest.machine.tick_device
    assert of["device"] == [[device]] * 3 + [[guest.machine.tick_device]]
    assert ["ok"] in rows
    migrated = [[int(n) for n in row[1:]] for row in rows if row[0] == "migrated"]
    assert sum(migrated[0]) >= 100 // guest.machine.cpus


@pytest.mark.guest(
    some(cpus=(2, 4)),
    """
    unload
    echo 0 >/sys/devices/system/cpu/cpu1/online
    load apic_timer
    log | grep serves
    echo 1 >/sys/devices/system/cpu/cpu1/online
    load apic_timer_selftest
    echo every_cpu_to_every_cpu >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    rmmod apic_timer_selftest
    echo 0 >/sys/devices/system/cpu/cpu1/online
    unload
    echo 1 >/sys/devices/system/cpu/cpu1/online
    echo device $(cat /sys/devices/system/clockevents/clockevent1/current_device)
    """,
    brief=True,
)
def test_loaded_and_unloaded_with_a_cpu_off(guest):
    serves, verdict, *_, device = guest.ok().splitlines()
    served = {2: "0", 4: "0,2-3"}[guest.machine.cpus]
    assert f"serves CPUs {served}:" in serves
    assert verdict == "ok"
    assert device == f"device {guest.machine.tick_device}"
