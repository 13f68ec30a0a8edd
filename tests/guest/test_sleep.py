"""Timers pending while the machine sleeps run once on waking, and are reported as late."""

import re

import pytest
from machines import Machine

MACHINES = [
    Machine("6.1", 2, engine="sleeper"),
    Machine("7.2", 2, engine="sleeper", matrix=True),
    Machine("6.1", 2, source="hrtimer", engine="sleeper", matrix=True),
    Machine("6.12", 2, engine="sleeper", matrix=True),
    Machine("7.2", 2, source="hrtimer", engine="sleeper", matrix=True),
    Machine("6.1-patched", 2, source="hook", engine="sleeper", matrix=True),
]
# From these steps to the end of the sleep no handlers run: all CPUs but one are offline, and that
# one has interrupts off.
DEAF = ("core", "mem")
# The last step that /sys/power/pm_test permits; then real sleeps.
STEPS = ("freezer", "devices", "platform", "processors", "core", "mem", "freeze")


@pytest.mark.guest(
    MACHINES,
    """
    unload
    load apic_timer late_ns=100000000
    load apic_timer_sleep
    sleeper=$DEBUG/apic_timer_sleep
    state=mem delay=1
    case {case} in
    mem | freeze) state={case} ;;
    core) delay=5 ;;
    esac
    if [ $state = {case} ]; then step=none; else step={case}; fi
    echo $step >/sys/power/pm_test
    echo $delay >/sys/module/suspend/parameters/pm_test_delay
    if [ {case} = mem ]; then
        echo 0 >/sys/class/rtc/rtc0/wakealarm
        echo +8 >/sys/class/rtc/rtc0/wakealarm
    fi
    echo 3000 >$sleeper/arm
    echo $state >/sys/power/state
    while grep -q '^runs runs 0' $sleeper/report; do usleep 100000; done
    usleep 200000
    cat $sleeper/report $DEBUG/apic_timer/stats
    tick_devices
    grep epoch $DEBUG/apic_timer/info
    # All CPUs are served as before.
    echo again
    echo 200 >$sleeper/arm
    sleep 2
    cat $sleeper/report
    # Waits for whatever of ours is on its way.
    unload
    """,
    cases=lambda machine: STEPS,
)
def test_pending_while_asleep(guest, request):
    step = request.node.callspec.id.rpartition("-")[2]
    slept, again = guest.ok().split("again\n")
    shots = re.findall(r"^(\w+) runs (\d) cpu (\d) pending (\d) late_ms (\d+) left_ms (\d+)$",
                       slept, re.MULTILINE)  # fmt: skip
    of = {kind: [[int(n) for n in shot[1:]] for shot in shots if shot[0] == kind]
          for kind in ("runs", "skips", "wakes", "far")}  # fmt: skip
    cpus = guest.machine.cpus
    assert [len(rows) for rows in of.values()] == [cpus] * 4
    for runs, _, pending, late, _ in of["runs"] + of["wakes"]:
        assert (runs, pending) == (1, 0)
        assert late > 100 if step in DEAF else True
    if step in DEAF:
        assert all(runs == pending == 0 for runs, _, pending, _, _ in of["skips"])
        for name, least in (("skipped", cpus), ("expired_late", 3 * cpus)):
            (counts,) = re.findall(rf"^{name} +(.*)$", slept, re.MULTILINE)
            assert sum(int(n) for n in counts.split()) >= least
    # Its TSC has kept counting, so the far timers are nearer by that much.
    assert all(runs == 0 and pending for runs, _, pending, _, _ in of["far"])
    assert all(0 < left < 1_000_000 - 3000 for *_, left in of["far"])
    assert "notified unstable 0 epoch 0 " in slept
    assert "TSC epoch: 0" in slept
    device = "apic_timer" if guest.machine.source == "proxy" else guest.machine.tick_device
    assert slept.splitlines().count(device) == cpus

    rows = re.findall(r"^runs runs (\d) cpu (\d) pending (\d)", again, re.MULTILINE)
    assert rows == [("1", str(cpu), "0") for cpu in range(cpus)]


@pytest.mark.guest(
    MACHINES,
    """
    unload
    load apic_timer {case}
    load apic_timer_bench
    load apic_timer_bench_ours
    exact="apic_timer_exact uniform 2 300000000 300000000 1"
    echo core >/sys/power/pm_test
    echo 1 >/sys/module/suspend/parameters/pm_test_delay
    for i in 1 2; do
        (sleep 0.1; echo mem >/sys/power/state) &
        echo "$exact" >$DEBUG/apic_timer_bench/run
        wait
    done
    echo none >/sys/power/pm_test
    echo "$exact" >$DEBUG/apic_timer_bench/run
    unload
    log | grep -e 'unknown object' -e WARNING: || echo no warnings
    """,
    cases=lambda machine: ("latency_qos=N", "latency_qos=Y"),
)
def test_latency_request_and_sleep(guest):
    """No request is made to the kernel that it does not know."""
    assert guest.ok() == "no warnings\n"


@pytest.mark.guest(
    MACHINES,
    r"""
    unload
    load apic_timer
    load apic_clock reference=hpet follow_idle=1 resync_ms=100
    echo p:apic_compared apic_clock_follow_use >$TRACING/kprobe_events
    echo >$TRACING/trace
    echo 1 >$TRACING/events/kprobes/apic_compared/enable
    echo 1 >$TRACING/events/power/suspend_resume/enable
    sleep 1
    echo none >/sys/power/pm_test
    echo 0 >/sys/class/rtc/rtc0/wakealarm
    echo +8 >/sys/class/rtc/rtc0/wakealarm
    echo mem >/sys/power/state
    sleep 1
    echo 0 >$TRACING/events/power/suspend_resume/enable
    echo 0 >$TRACING/events/kprobes/apic_compared/enable
    awk '
        /: freeze_processes.* begin/ { part = 1 }
        /apic_compared:/ { n[part + 0]++ }
        /: thaw_processes.* end/ { part = 2 }
        END { print "compared", n[0] + 0, n[1] + 0, n[2] + 0 }' $TRACING/trace
    echo >$TRACING/kprobe_events
    unload
    """,
)
def test_common_time(guest):
    """TSC values are not compared across a sleep, in which both counters may change."""
    (row,) = re.findall(r"^compared (\d+) (\d+) (\d+)$", guest.ok(), re.MULTILINE)
    print(guest.output)
    before, during, after = map(int, row)
    assert before > 0
    assert during == 0
    assert after > 0
