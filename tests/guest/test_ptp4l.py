"""Two machines synchronised as in docs/howto/act-together-by-ptp.md: ptp4l, phc2sys, timers.

The machines are two network namespaces of one guest. Each has a card that timestamps PTP messages
by its own clock, whose true time is known: tests/modules/clock/fake_net.c. The cards, their clocks
and the cable between them are simulated; ptp4l, phc2sys and the kernel's part are unmodified. The
machines share one TSC, by which handlers' starts are compared, and one system clock, which the
following machine keeps.
"""

import re

import pytest
from lab.build import build
from machines import some
from test_phc import END, SETUP, cases

HOWTO = build.TREE / "docs/howto/act-together-by-ptp.md"
PTP4L = "ptp4l -i eth0 -m"
PHC2SYS = "phc2sys -a -r -m"
CABLE_NS = 500  # see fake_net.c
STEP_NS = 8
# Maximum lateness of a handler by its own clock, in TSC cycles: one clock is steered.
LATE = (20, 60)
TAI = 37  # s, what ptp4l announces by default
TRACEABLE = r'''pmc -u -b 0 "set GRANDMASTER_SETTINGS_NP clockClass 248 clockAccuracy 0xfe \
        offsetScaledLogVariance 0xffff currentUtcOffset 37 leap61 0 leap59 0 \
        currentUtcOffsetValid 1 ptpTimescale 1 timeTraceable 1 frequencyTraceable 0 \
        timeSource 0xa0"'''

TWO_MACHINES = f"""
    insmod $MODULES/apic_fake_net.ko
    # The clocks of cards count TAI.
    echo "set 0 {TAI}000000000" >$fake/command
    mkdir -p /var/run
    pids=
    for n in 0 1; do
        unshare -n -m sh -c "mount -t tmpfs none /var/run; exec sleep 10000" &
        pids="$pids $!"
        eval "in$n='nsenter -t $! -n -m --'" machine$n=$!
    done
    sleep 0.1
    for n in 0 1; do
        eval "in=\\$in$n machine=\\$machine$n"
        busybox ip link set fake$n netns $machine
        $in ip link set fake$n name eth0
        $in ip address add 10.1.1.$((n + 1))/24 dev eth0
        $in ip link set eth0 up
    done
    for n in 0 1; do
        eval "in=\\$in$n"
        $in {PTP4L} >/dev/shm/ptp4l$n 2>&1 &
        pids="$pids $!"
    done
    # Since when, and by how much CLOCK_TAI is ahead.
    since() {{
        echo "since $1 $(cut -d " " -f 1 /proc/uptime)"
        grep -E "^(tai|realtime):" $DEBUG/apic_clock/clocks
    }}
"""


def log_of(output: str, name: str) -> str:
    """Return a program's log."""
    return re.search(rf"^log {name}\n(.*?)(?=^log |\Z)", output, re.S | re.M)[1]


def since(output: str, name: str) -> float:
    """Return when the script was at this mark, in s since boot."""
    return float(re.search(rf"^since {name} (\S+)$", output, re.M)[1])


def ahead(output: str, name: str) -> int:
    """Return how far CLOCK_TAI was ahead of CLOCK_REALTIME then, in s."""
    text = output[re.search(rf"^since {name} ", output, re.M).start() :]
    tai, realtime = (int(re.search(rf"^{clock}: (\d+) ns ", text, re.M)[1])
                     for clock in ("tai", "realtime"))  # fmt: skip
    return round((tai - realtime) / 1e9)


def test_commands():
    """The commands run here are those of the how-to."""
    text = HOWTO.read_text()
    for command in (PTP4L, PHC2SYS, TRACEABLE):
        assert f"    sudo {command}\n" in text


@pytest.mark.long
@pytest.mark.guest(
    some(engine="virtual", kernel=("6.1", "7.2"), cpus=1, source="proxy"),
    SETUP
    + TWO_MACHINES
    + f"""
    sleep 40
    $in1 {PHC2SYS} >/dev/shm/phc2sys 2>&1 &
    pids="$pids $!"
    sleep 20
    since untraceable
    $in0 {TRACEABLE}
    sleep 70
    since traceable
    for n in 1 2 3 4 5 6 7 8; do
        echo "phc_all 0 0 200" >$test/command
        sleep 0.25
        result shot$n
        sleep 0.4
    done
    grep ^ptp $DEBUG/apic_clock/clocks
    kill $pids
    wait
    for log in ptp4l0 ptp4l1 phc2sys; do
        echo "log $log"
        cat /dev/shm/$log
    done
    timex tai 0
    rmmod apic_fake_net
    """
    + END,
    one=True,
)
def test_together(guest):
    """One machine follows the other, and timers for one moment start together, either way."""
    output = guest.ok()
    print(output)
    follows = log_of(output, "ptp4l1")
    assert "assuming the grand master role" in log_of(output, "ptp4l0")
    assert "UNCALIBRATED to SLAVE on MASTER_CLOCK_SELECTED" in follows
    offsets = {float(at): int(off) for at, off in re.findall(
        r"^ptp4l\[([\d.]+)\]: master offset +(-?\d+) s2 ", follows, re.M)}  # fmt: skip
    assert len(offsets) > 100
    # The steps of timestamps, which the servo takes for differences of the clocks.
    settled = [off for at, off in offsets.items() if at > since(output, "untraceable")]
    worst = max(map(abs, settled))
    print("ptp4l: offset at most", worst)
    assert worst <= 3 * STEP_NS
    delays = list(map(int, re.findall(r" path delay +(-?\d+)$", follows, re.M)))
    assert all(abs(delay - CABLE_NS) <= STEP_NS for delay in delays[-50:])

    # phc2sys sets TAI's offset only if the grandmaster knows it.
    assert ahead(output, "untraceable") == 0
    assert ahead(output, "traceable") == TAI

    found = cases(output)
    assert len(found) == 8
    # The clocks' difference under ptp4l, plus each handler's lateness by its own clock.
    most = worst + STEP_NS + LATE[0] + LATE[1]
    for name, case in found.items():
        assert [slot.runs for slot in case.slots[:3]] == [1, 1, 1], name
        apart, by_tai = case.off(1, 0), case.off(2, 0)
        print(name, "off by", case.off(0, 0), "and", case.off(1, 1),
              "apart", apart, "of", most, "and by CLOCK_TAI", by_tai)  # fmt: skip
        assert all(abs(case.off(n, n)) <= LATE[n] for n in range(2)), name
        assert abs(apart) <= most, name
        # phc2sys reads the card over a bus of 300 cycles each way.
        assert abs(by_tai) < 500, name
