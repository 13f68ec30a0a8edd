"""Timers pending in a hibernated machine are handled as documented, although its TSC is new."""

import errno
import os
import re
import subprocess
from pathlib import Path

import pytest
from lab.build import build, network, user
from lab.engines import hibernator
from lab.kernels import kernels

TREE = Path(__file__).resolve().parents[2]
CPUS = 2
SCRIPT = """
    sleeper=/sys/kernel/debug/apic_timer_sleep
    insmod $MODULES/apic_timer.ko $OPTIONS
    insmod $MODULES/apic_timer_sleep.ko
    insmod $MODULES/apic_timer_dev.ko
    insmod $MODULES/apic_clock.ko $CLOCK
    insmod $MODULES/apic_clock_test.ko
    insmod $MODULES/sch_apic.ko
    insmod $MODULES/apic_timer_sink.ko
    insmod $MODULES/apic_calendar.ko allow_unstable=1
    groups=/sys/kernel/debug/apic_clock_test
    common() {
        for cpu in 1 2; do taskset $cpu sed -n 's/^common/common now/p' $groups/result; done
    }
    if [ "$AHEAD" ]; then
        # Then this TSC is ahead of that of the machine that wakes, which has to boot as well.
        read -r booted idle </proc/uptime
        sleep $((4 * ${booted%.*}))
    fi
    sink=/sys/kernel/debug/apic_timer_sink
    for how in tsc any mono read readany poll uring disarmed over; do
        asleep $how 60000 >/tmp/asleep.$how &
    done
    echo 60000 >$sleeper/arm
    echo later 0 0 60000 >$groups/command
    echo later 1 2 60000 >$groups/command
    sleep 0.2
    cat $sleeper/report
    tc() { /usr/sbin/tc -c=never "$@"; }
    queued() { tc -s qdisc show dev sink0 | awk '$1 == "backlog" { print $3 + 0 }'; }
    /usr/bin/ip link set sink0 up
    /usr/bin/ip addr add 10.9.9.1/24 dev sink0
    # All within the 60 s that are waited for below. The senders end when their last has left.
    tc qdisc add dev sink0 root apic mode hard rate 16kbit horizon 100s
    udpsend count=500 size=100 how=burst flow=1 wait=1000 >/dev/null
    timed="count=20 batch=20 gap=200000000 ahead=50000000000 wait=1000"
    udpsend $timed flow=2 >/dev/null &
    udpsend $timed flow=3 clock=tai >/dev/null &
    while [ "$(queued)" -lt 400 ]; do usleep 100000; done
    echo queued $(queued)
    apic-calendar run /both >/tmp/calendar 2>&1 &
    asleep spin 60000 >/tmp/asleep.spin &
    usleep 500000
    common
    echo disk >/sys/power/state
    echo awake
    common
    cat $sleeper/report
    echo still queued $(queued)
    while grep -q '^runs runs 0' $sleeper/report; do usleep 100000; done
    for i in $(seq 300); do
        [ "$(queued)" != 0 ] || break
        usleep 100000
    done
    cat $sink/packets
    # Flow 2: how many, and how many cycles after their plans. For flow 3 time went on meanwhile.
    od -An -tu8 -w16 -v $sink/departures >/tmp/departures
    od -An -tu4 -w4 -v $sink/flows | awk '{
            getline departure <"/tmp/departures"
            split(departure, at, " ")
            if ($1 == 2) {
                n++
                if (at[1] - at[2] > late) late = at[1] - at[2]
            }
        } END { print "late", n, sprintf("%.0f", late) }'
    tc -s qdisc show dev sink0
    tc qdisc del dev sink0 root
    echo later
    cat $sleeper/report
    grep epoch /sys/kernel/debug/apic_timer/info
    grep ^stops /sys/kernel/debug/apic_clock/verdict
    cat /sys/devices/system/clockevents/clockevent*/current_device
    # All CPUs are served as before.
    echo again
    echo 200 >$sleeper/arm
    sleep 2
    cat $sleeper/report
    wait
    cat /tmp/asleep.*
    grep ^later $groups/result
    echo calendar
    cat /tmp/calendar
    echo anew
    apic-calendar run /both 2
    rmmod apic_calendar
    rmmod apic_timer_sink
    rmmod sch_apic
    rmmod apic_clock_test
    rmmod apic_clock
    rmmod apic_timer_dev
    rmmod apic_timer_sleep
    rmmod apic_timer
    dmesg | grep apic_timer:
"""
BOTH = b"""unit a cpu 0 user
unit b cpu 1 user
table both major 20ms
at 2ms run a for 1ms
at 2ms run b for 1ms
"""
SHOT = re.compile(r"^(\w+) runs (\d) cpu (\d) pending (\d) late_ms (\d+) left_ms (\d+)$", re.M)


def shots(report: str, kind: str) -> list[list[int]]:
    """Return runs, CPU, pending, late (ms) and left (ms) for a kind of timer, by CPU."""
    return [[int(n) for n in row[1:]] for row in SHOT.findall(report) if row[0] == kind]


@pytest.fixture(scope="module", params=kernels.SUPPORTED)
def woken(request, tmp_path_factory):
    """Return a kernel, and its output before and after its machine was off."""
    kernel = kernels.ensure(request.param)
    modules = sorted(build.build(kernel).rglob("*.ko"))
    # One of them requests no latency, by which the kernel would know the module.
    # Its TSC has counted further than the one that it wakes with, and it has no other counter.
    oldest = request.param == kernels.SUPPORTED[0]
    options = "OPTIONS=latency_qos=N AHEAD=y" if oldest else "CLOCK=reference=hpet"
    output = tmp_path_factory.mktemp("user")
    subprocess.run(["make", "-C", TREE / "user", f"OUTPUT={output}", "CFLAGS=-O2 -static",
                    output / "apic-calendar"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    files = {"usr/bin/asleep": user.program(kernel, "asleep"), **network.files(kernel),
             "usr/bin/apic-calendar": output / "apic-calendar", "both": BOTH}  # fmt: skip
    return kernel, hibernator.run(
        kernel, f"{options}\n{SCRIPT}", modules=modules, files=files, cpus=CPUS, timeout=600
    ).check()


@pytest.mark.matrix
def test_packets_while_off(woken):
    """Packets planned by the qdisc `apic` are re-planned by the new TSC: none leaves days later."""
    _, result = woken
    print(result.before, result.output)
    assert int(re.search(r"^queued (\d+)$", result.before, re.M)[1]) >= 400
    assert int(re.search(r"^still queued (\d+)$", result.output, re.M)[1]) > 100
    came = re.findall(r"^flow (\d) packets (\d+) lost 0 doubled 0 ", result.output, re.M)
    assert came == [("1", "500"), ("2", "20"), ("3", "20")]
    assert " early 0 " in result.output
    # This machine may be this late for other reasons.
    timed, late = map(int, re.search(r"^late (\d+) (\d+)$", result.output, re.M).groups())
    assert timed == 20
    assert late < 5000 * int(re.search(r" tsc_khz (\d+)", result.output)[1])


@pytest.mark.matrix
def test_pending_while_off(woken):
    kernel, result = woken
    assert [s[0] for s in shots(result.before, "runs")] == [0] * CPUS
    awake, later, again = re.split(r"^(?:later|again)$", result.output, flags=re.M)
    # They were shifted with the TSC, so none is late or has lost any of its remaining time.
    assert "the TSC has not counted through the sleep" in again
    assert "TSC epoch: 1" in later
    assert "; 1 sleeps of the machine that it has not counted through\n" in later
    assert "epoch 1 " in awake
    left = max(s[4] for s in shots(result.before, "runs"))
    assert all(runs == 0 and 0 < now <= left for runs, _, _, _, now in shots(awake, "runs"))
    assert all((s[0], s[2]) == (1, 0) and s[3] < 5000 for s in shots(later, "runs"))
    assert later.splitlines().count("apic_timer") == CPUS
    assert [s[:3] for s in shots(again, "runs")] == [[1, cpu, 0] for cpu in range(CPUS)]
    # A thread's TSC value is void, and the thread is notified at once. A moment of a clock is met,
    # and a timer is shifted like ours. If nothing was armed, nothing is void.
    ends = re.findall(r"^([a-z]+) (-?\d+) (\d) (\d) (\d)$", again, re.M)
    stale, met = (f"-{errno.ESTALE}", "2", "0", "1"), ("0", "2", "0", "0")
    wanted = {"tsc": stale, "any": stale, "mono": met, "read": stale, "readany": met,
              "poll": stale, "uring": stale, "disarmed": met, "over": met}  # fmt: skip
    if tuple(map(int, kernel.release.split(".")[:2])) < (6, 7):  # commands cannot be cancelled
        wanted["uring"] = (f"-{errno.EOPNOTSUPP}", "1", "1", "1")
    # Where the TSC does not wake behind its former value, a wait ends as soon as that comes.
    ahead = kernel.series == kernels.SUPPORTED[0]
    spun = [end for end in ends if end[0] == "spin"]
    assert spun == [("spin", "0", "2", "0", "1" if ahead else spun[0][-1])]
    ends.remove(*spun)
    assert ends == sorted((how, *end) for how, end in wanted.items())
    # Groups are shifted, too. Their timers are now on one CPU: they cannot all start at once.
    groups = re.findall(r"^later (\d) ret (-?\d+) called (\d) first (-?\d+) last (-?\d+)$", again,
                        re.M)  # fmt: skip
    assert [row[:3] for row in groups] == [("0", "0", str(CPUS)),
                                           ("1", str(-errno.EAGAIN), "0")]  # fmt: skip
    assert all(0 <= int(late) < 10**9 for row in groups for late in row[3:])


@pytest.mark.matrix
def test_common_time_begins_anew(woken):
    """It follows the new TSC, also where there is no counter and that is behind the old one."""
    kernel, result = woken
    second = 1000 * int(re.search(r" tsc_khz (\d+)", result.output)[1])
    before, after = [[[int(n) for n in row] for row in
                      re.findall(r"^common now (\d+) tsc (\d+)$", text, re.M)]
                     for text in (result.before, result.output)]  # fmt: skip
    print(before, after)
    assert len(before) == len(after) == CPUS
    if kernel.series == kernels.SUPPORTED[0]:
        assert max(tsc for _, tsc in after) < min(common for common, _ in before)
    assert all(abs(tsc - common) < second for common, tsc in [*before, *after])


@pytest.mark.matrix
def test_calendar_while_off(woken):
    """A calendar stops, and reports it; after the sleep it can be started by the new TSC."""
    _, result = woken
    slept, anew = re.search(r"^calendar\n(.*)^anew\n(.*)", result.output, re.M | re.S).groups()
    print(slept, anew)
    assert f"apic-calendar: stopped: {os.strerror(errno.ECANCELED)}\n" in slept
    rows = re.findall(r"^([ab]) +(\d+) +(\d+) +(\d+) ", anew, re.M)[-2:]
    assert [row[0] for row in rows] == ["a", "b"]
    # 50 cycles a second, as long as no CPU is delayed.
    assert all(int(run) > 20 for _, run, *_ in rows)
