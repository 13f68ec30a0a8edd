"""CPUs go offline and come back while timers are pending on them."""

import re
from dataclasses import replace

import pytest
from machines import Machine, some


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
    head -n 1 $DEBUG/apic_timer_selftest/result
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
    assert rows.count("cpu 1: does not accept timers".split()) == 3
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
    head -n 1 $DEBUG/apic_timer_selftest/result
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


@pytest.mark.guest(
    some(cpus=2, engine=("smp", "virtual")),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=0 waiting=100
    echo 0 >$TRACING/trace
    echo 1 >$TRACING/events/apic_timer/apic_timer_migrate/enable
    echo 0 >/sys/devices/system/cpu/cpu1/online
    echo 0 >$TRACING/events/apic_timer/apic_timer_migrate/enable
    grep apic_timer_migrate: $TRACING/trace
    echo 1 >/sys/devices/system/cpu/cpu1/online
    # They stay where they are.
    grep -c '^cpu 1:' $DEBUG/apic_timer/pending || true
    unload
    """,
)
def test_migration_is_traced(guest):
    """Each timer is traced once, by the CPU going offline, with the new CPU, in their order."""
    *events, left = guest.ok().splitlines()
    assert left == "0"
    pattern = r"\[001\] .* timer=\S+ function=waiting_handler .* expires=(\d+) cpu=0 "
    found = [re.search(pattern, event) for event in events]
    assert all(found), events
    # Not by address: a kernel that has no random numbers yet prints none.
    expires = [int(match[1]) for match in found]
    assert expires == sorted(set(expires))
    assert len(expires) == 50


@pytest.mark.guest(
    some(cpus=2, engine="virtual", source="proxy"),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=0 waiting=100
    echo "p:room apic_timer:apic_timer_queue_make_room" >$TRACING/kprobe_events
    echo >$TRACING/trace
    for event in kprobes/room apic_timer/apic_timer_migrate; do
        echo 1 >$TRACING/events/$event/enable
    done
    echo 0 >/sys/devices/system/cpu/cpu1/online
    for event in kprobes/room apic_timer/apic_timer_migrate; do
        echo 0 >$TRACING/events/$event/enable
    done
    grep -oE ' (room|apic_timer_migrate): ' $TRACING/trace
    # That clears the trace.
    echo >$TRACING/kprobe_events
    echo 1 >/sys/devices/system/cpu/cpu1/online
    unload
    """,
    brief=True,
)
def test_room_is_made_before_each_migration(guest):
    """With interrupts off only one tree then changes, not two: tests/queue measures the time."""
    events = guest.ok().split()
    assert events == ["room:", "apic_timer_migrate:"] * 50 + ["room:"]


@pytest.mark.guest(
    [Machine("6.1", 4, append="nohz_full=2,3")],
    """
    unload
    load apic_timer
    load apic_timer_busy rate=0 waiting=100
    online=/sys/devices/system/cpu
    migrate() {
        echo >$TRACING/trace
        echo 1 >$TRACING/events/apic_timer/apic_timer_migrate/enable
        echo 0 >$online/cpu$1/online
        echo 0 >$TRACING/events/apic_timer/apic_timer_migrate/enable
        echo to $(grep -o ' cpu=[0-9]*' $TRACING/trace | sort | uniq -c)
        echo 1 >$online/cpu$1/online
    }
    migrate 1
    migrate 2
    # For apic_timer none is a housekeeping CPU now: it must not cancel its timers for that.
    insmod $MODULES/apic_timer_fail.ko symbol=housekeeping_test_cpu value=0 times=1000000
    migrate 3
    rmmod apic_timer_fail
    unload
    """,
)
def test_isolated_cpus_get_no_timers(guest):
    """They go to the housekeeping CPUs, as the kernel's own timers do, as long as there are any.

    25 timers wait on each CPU; CPU 0 gets those of CPU 1, then both share those of CPU 2.
    """
    rows = [row.split()[1:] for row in guest.ok().splitlines()]
    to = [dict(zip(row[1::2], map(int, row[::2]), strict=True)) for row in rows]
    assert to[0] == {"cpu=0": 25}
    assert to[1] == {"cpu=0": 13, "cpu=1": 12}
    assert to[2] == {"cpu=0": 9, "cpu=1": 8, "cpu=2": 8}


# As often as CPUs can, while timers fire on the CPU, are armed for it and migrate from it.
AGAIN_AND_AGAIN = """
    unload
    load apic_timer
    load apic_timer_torture duration=0 onoff=1 onoffs={times} rate=20000 reach_us=2000 report=0
    torture_result
    # It serves again.
    load apic_timer_selftest
    echo every_cpu_to_every_cpu >$DEBUG/apic_timer_selftest/run
    head -n 1 $DEBUG/apic_timer_selftest/result
    echo gone $(dmesg | grep -o 'CPU [0-9]* is now offline' | sort -u | cut -d ' ' -f 2)
    unload
    """


def judge_torture(guest, times: int) -> list[str]:
    """Check that every shot was accounted for; return the CPUs that went offline."""
    torture, verdict, gone = guest.ok().splitlines()
    print(torture)
    assert torture.startswith("ok "), torture
    counts = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", torture)}
    assert counts["offs"] == times
    for name in ("ran", "moved", "refused", "steady"):
        assert counts[name] >= times, name
    assert verdict == "ok"
    return gone.split()[1:]


@pytest.mark.guest(
    some(cpus=2, engine="smp") + some(kernel="7.2", cpus=4), AGAIN_AND_AGAIN.format(times=30),
    one=True,
)  # fmt: skip
def test_off_and_on_30_times(guest):
    judge_torture(guest, 30)


@pytest.mark.guest(
    [replace(machine, matrix=True, timeout=3600) for machine in some(cpus=2, engine="smp")
     if not machine.matrix],
    AGAIN_AND_AGAIN.format(times=500),
)  # fmt: skip
def test_off_and_on_500_times(guest):
    judge_torture(guest, 500)


# From 6.5 on kernels keep the first CPU online; older ones let it go on Intel's CPUs.
@pytest.mark.guest(
    [Machine("6.1", 2, append="cpu0_hotplug", vendor="GenuineIntel")],
    AGAIN_AND_AGAIN.format(times=30),
)
def test_first_cpu(guest):
    assert judge_torture(guest, 30) == ["0", "1"]


@pytest.mark.guest(
    [Machine("6.1", 2, append="cpu0_hotplug", vendor="GenuineIntel")],
    """
    unload
    load apic_timer
    load apic_clock
    skew=$DEBUG/apic_clock/skew
    online=/sys/devices/system/cpu/cpu0/online
    # Busy emulated CPUs may not run at the same time for long enough: "not known", an error.
    measure() { echo measure >$skew 2>/dev/null || true; }
    measure
    while :; do measure; done &
    for i in 1 2 3 4 5; do
        echo 0 >$online
        echo gone
        measure
        cat $skew $DEBUG/apic_clock/verdict
        echo 1 >$online
        echo back
        measure
        cat $skew
    done
    kill $!
    wait
    unload
    """,
)
def test_first_cpu_is_the_reference(guest):
    """While the first CPU is offline, the second is the reference for skew."""
    _, *rounds = guest.ok().split("gone\n")
    print(*rounds)
    assert len(rounds) == 5
    for part in rounds:
        gone, back = part.split("back\n")
        assert re.search(r"^cpu 0: not known \(-61\)$", gone, re.M)
        assert re.search(r"^cpu 1: reference", gone, re.M)
        assert re.search(r"^cpu 0: reference", back, re.M)
        assert re.search(r"^cpu 1: (not known|[+-]\d+ cycles)", back, re.M)


@pytest.mark.guest(
    [Machine("6.1", 2, source="auto", append="maxcpus=1")],
    """
    unload
    load apic_timer
    log | grep serves
    load apic_timer_selftest
    echo 1 >/sys/devices/system/cpu/cpu1/online
    echo device $(cat /sys/devices/system/clockevents/clockevent1/current_device)
    echo every_cpu_to_every_cpu >$DEBUG/apic_timer_selftest/run
    head -n 1 $DEBUG/apic_timer_selftest/result
    load apic_timer_torture operations=20000 duration=0
    torture_result
    grep '^expired ' $DEBUG/apic_timer/stats
    unload
    echo device $(cat /sys/devices/system/clockevents/clockevent1/current_device)
    echo 0 >/sys/devices/system/cpu/cpu1/online
    """,
)
def test_cpu_that_was_not_there_at_load(guest):
    """The other CPUs come online long after boot, for the first time, and serve timers."""
    serves, device, verdict, torture, expired, unloaded = guest.ok().splitlines()
    assert "serves CPUs 0:" in serves
    assert device == "device apic_timer"
    assert verdict == "ok"
    assert torture.startswith("ok "), torture
    assert all(int(count) > 1000 for count in expired.split()[1:3])
    assert unloaded == f"device {guest.machine.tick_device}"
