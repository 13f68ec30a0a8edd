"""The qdisc `apic` under random changes of all kinds, with an account of each packet.

PACKETS in the environment is the least number of packets: see docs/howto/torture.md.
"""

import json
import os
import re
from dataclasses import replace

import pytest
from lab.bench import shaper_goals
from machines import some
from test_shaper import BEGIN, CHECKED, RT, counts, sent

FLOWS = 4
EACH = 40_000  # packets of a flow; all of them may be queued at one time
PACKETS = int(os.environ.get("PACKETS") or FLOWS * EACH)
TURNS = -(-PACKETS // (FLOWS * EACH))
MACHINES = [
    replace(machine, timeout=machine.timeout * TURNS)
    for machine in (
        *some(kernel="6.1", cpus=4, source="proxy", engine="smp"),
        *RT,
        *CHECKED,
    )
]

# Run several senders at a time. While they send, call `each` with a random number.
TORTURE = (
    f"COUNT={EACH}"
    + """
    [ ! -e /proc/lockdep ] || COUNT=$((COUNT / 5))
    seed=1
    # Without a process of its own, which would take longer than what it is for.
    random() {
        seed=$(((seed * 1103515245 + 12345) & 0x7fffffff))
        r=$((seed >> 8))
    }
    configure() {
        random
        case $((r % 8)) in
        0 | 1) tc qdisc change dev sink0 root apic mode $HARD ;;
        2) tc qdisc change dev sink0 root apic mode soft ;;
        3) tc qdisc change dev sink0 root apic mode thread ;;
        4) tc qdisc change dev sink0 root apic cpu any ;;
        5) tc qdisc change dev sink0 root apic cpu $((r / 8 % CPUS)) || : ;;
        6) tc qdisc change dev sink0 root apic rate 0bit burst 0b ;;
        7) tc qdisc change dev sink0 root apic rate $((r / 8 % 400 + 100))mbit burst 10k ;;
        esac
    }
    surroundings() {
        random
        case $((r % 5)) in
        0) echo $((r / 5 % 50)) >$KNOBS/busy ;;
        1) echo $((r / 5 % 50)) >$KNOBS/stop ;;
        2) echo $((r / 5 % 500 + 1)) >$KNOBS/stop_us ;;
        *)
            online=/sys/devices/system/cpu/cpu$((r / 5 % (CPUS - 1) + 1))/online
            echo 0 >$online
            sleep 0.0$((r / 50 % 10))
            echo 1 >$online
            ;;
        esac
    }
    # The device takes all again, and what is queued leaves.
    settle() {
        for knob in busy stop; do
            echo 0 >$KNOBS/$knob
        done
        patiently drained
    }
    sender() {
        flow=$1
        shift
        udpsend count=$COUNT flow=$flow seed=$flow "$@" >sent$flow || :
        echo $flow >>done
    }
    senders() {
        rm -f done sent*
        touch done
        sender 0 gap=1000-200000 batch=8 wait=500000000 &
        sender 1 gap=1000-200000 clock=tai wait=500000000 &
        sender 2 gap=1000-200000 how=timed size=600 &
        sender 3 gap=100000 how=pace size=1200 wait=500000000 &
    }
    rounds=0
    throughout() {
        while [ "$(wc -l <done)" -lt 4 ]; do
            "$1"
            rounds=$((rounds + 1))
        done
        wait
    }
"""
)
APIC = "root handle 1: apic limit 1000000 order flow"


def flows(output: str) -> list[str]:
    """List the flows that came."""
    return re.findall(r"^flow \d+ packets .*$", output, re.M)


@pytest.mark.matrix
@pytest.mark.guest(
    MACHINES,
    BEGIN
    + TORTURE
    + f"""
    tc qdisc add dev sink0 {APIC}
    either() {{
        configure
        surroundings
    }}
    for turn in $(seq {TURNS}); do
        mark "turn $turn"
        echo 1 >$SINK/reset
        senders
        throughout either
        settle
        cat sent* $SINK/packets
    done
    echo rounds $rounds stops $(cat $SINK/stops) refusals $(cat $SINK/refusals)
    tc -s qdisc show dev sink0
    unload
    """,
)
def test_all_arrive(guest):
    """Modes, CPUs and rates change, CPUs go offline, the driver fills: each packet arrives once."""
    output = re.sub(r"^Warning: .*\n", "", guest.ok(), flags=re.M)
    print(output)
    found = counts(output)
    assert found["packets"] == sent(output) >= FLOWS * 8000 * TURNS
    assert len(flows(output)) == FLOWS * TURNS
    assert (found["lost"], found["doubled"], found["reordered"], found["early"]) == (0, 0, 0, 0)
    assert "(dropped 0," in output and re.search(r" backlog 0b 0p ", output)
    rounds, stops, refusals = map(
        int, re.search(r"^rounds (\d+) stops (\d+) refusals (\d+)$", output, re.M).groups()
    )
    assert rounds > 20 and stops > 100 and refusals > 100
    for mode in ("soft", "thread") if guest.machine in RT else ("hard", "soft", "thread"):
        assert int(re.search(rf" sent_{mode} (\d+)", output)[1]) > 100, mode
    row = {name: found[name] for name in ("packets", "lost", "doubled", "reordered", "early")}
    row |= {"cpus": guest.machine.cpus, "rounds": rounds, "stops": stops, "refusals": refusals}
    shaper_goals.TORTURED.parent.mkdir(exist_ok=True)
    shaper_goals.TORTURED.write_text(json.dumps(row) + "\n")


@pytest.mark.matrix
@pytest.mark.guest(
    MACHINES,
    BEGIN
    + TORTURE
    + f"""
    tc qdisc add dev sink0 {APIC}
    takes_down() {{
        random
        case $((r % 6)) in
        0) ip link set sink0 down && ip link set sink0 up ;;
        1) tc qdisc replace dev sink0 root handle 2: pfifo limit 100000 &&
            tc qdisc replace dev sink0 {APIC} ;;
        2) tc qdisc del dev sink0 root && tc qdisc add dev sink0 {APIC} ;;
        3) tc qdisc replace dev sink0 root handle 2: apic mode thread order flow &&
            tc qdisc replace dev sink0 {APIC} mode $HARD ;;
        *) configure ;;
        esac
        surroundings
    }}
    senders
    throughout takes_down
    settle
    cat sent*
    echo rounds $rounds
    cat $SINK/packets
    # It works as before.
    echo 1 >$SINK/reset
    echo again
    udpsend count=100 gap=50000
    patiently drained
    cat $SINK/packets
    unload
    """,
)
def test_none_twice(guest):
    """Taking the device down or the qdisc away loses the dropped packets; nothing comes twice."""
    output, again = guest.ok().split("again\n")
    print(output)
    found = counts(output)
    asked = sum(int(n) + int(failed) for n, failed in re.findall(
        r"^udpsend sent (\d+) failed (\d+)", output, re.M))  # fmt: skip
    assert asked / 20 < found["packets"] <= asked
    # All of a flow may be dropped, where its sender is much faster than the queue.
    assert 1 < len(flows(output)) <= FLOWS
    # pfifo ignores times.
    assert (found["doubled"], found["reordered"]) == (0, 0)
    assert int(re.search(r"^rounds (\d+)$", output, re.M)[1]) > 20
    assert counts(again)["packets"] == sent(again) == 100
