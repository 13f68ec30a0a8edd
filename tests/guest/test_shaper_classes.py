"""Classes of the qdisc `apic`: each has a rate, and packets select it by priority or filter."""

import json
import re

import pytest
from test_shaper import BEGIN, BOTH, END, STOCK, STRETCH, VIRTUAL, all_came, counts

# Priorities that name the classes 1:10 and 1:20, as set by SO_PRIORITY.
FIRST, SECOND = 0x10010, 0x10020

# Distances between packets of each flow, in cycles: flow, count, the shortest, the third shortest,
# the third longest, the longest, sum
BY_FLOW = (
    """
    spacing_by_flow() {
        od -An -tu4 -w4 -v $SINK/flows >flows
        od -An -tu8 -w16 -v $SINK/departures | awk '{ getline f <"flows"; f += 0
            if (n[f]++) { d = $1 - last[f]; sum[f] += d
                if (n[f] == 2 || d < min[f]) { low3[f] = low[f]; low[f] = min[f]; min[f] = d }
                else if (n[f] == 3 || d < low[f]) { low3[f] = low[f]; low[f] = d }
                else if (n[f] == 4 || d < low3[f]) low3[f] = d
                if (d > max[f]) { high3[f] = high[f]; high[f] = max[f]; max[f] = d }
                else if (d > high[f]) { high3[f] = high[f]; high[f] = d }
                else if (d > high3[f]) high3[f] = d }
            last[f] = $1 }
            END { for (f in n)
                print "spacing", f, n[f], min[f], low3[f], high3[f], max[f], sum[f] }'
    }
"""
    f"""
    # A burst for each: some 240 ms of both.
    bursts() {{
        udpsend count=300 size=1000 how=burst flow=1 wait=1000 priority={FIRST}
        udpsend count=750 size=1000 how=burst flow=2 wait=250000000 priority={SECOND}
    }}
"""
)


def spacings(output: str) -> dict[int, tuple[int, ...]]:
    """Return count, least, third, last but two, longest and sum of each flow's distances."""
    rows = re.findall(r"^spacing (\d+) (.*)$", output, re.M)
    return {int(flow): tuple(map(int, rest.split())) for flow, rest in rows}


def classes(text: str) -> dict[str, dict]:
    """Return the classes that `tc -s -j class show` prints, by number."""
    found = [c for line in text.splitlines() if line.startswith("[") for c in json.loads(line)]
    return {c["handle"]: c for c in found}


@pytest.mark.long
@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + BY_FLOW
    + """
    tc qdisc add dev sink0 root handle 1: apic mode hard
    tc class add dev sink0 parent 1: classid 1:10 apic rate 10mbit
    tc class add dev sink0 parent 1: classid 1:20 apic rate 25mbit
    # The lead is learnt first.
    bursts
    bursts
    bursts
    for rate in 0bit 100mbit 30mbit; do
        tc qdisc change dev sink0 root handle 1: apic rate $rate
        sleep 0.2
        echo 1 >$SINK/reset
        bursts
        patiently drained
        echo @rate $rate
        spacing_by_flow
        cat $SINK/packets
    done
    tc -s qdisc show dev sink0
    tc -s -j class show dev sink0
    """
    + END,
)
def test_two_rates(guest):
    """In one burst each class keeps its own distance to the cycle, also below a higher total rate.

    Two packets may be late after a stretch with interrupts disabled; the next ones are not. If the
    qdisc's rate is lower than both, it is shared in proportion, and kept exactly.
    """
    output = guest.ok()
    print(output)
    khz = int(re.search(r"tsc_khz (\d+)", output)[1])
    parts = output.split("@rate ")[1:]
    wants = {1: 800_000 * khz / 1e6, 2: 320_000 * khz / 1e6}
    alone, below, short = (spacings(part) for part in parts)
    for flow, want in wants.items():
        count, least, third, last_but_two, most, total = alone[flow]
        assert count == (300, 750)[flow - 1]
        assert want - 5 < third <= last_but_two < want + 5
        assert max(want - least, most - want) < STRETCH
        assert abs(total - (count - 1) * want) < 6  # 3 for the first, and 3 for the last
    # At 100 Mbit/s a packet takes 80 us, and may delay a packet of the other class for as long.
    for flow, want in wants.items():
        count, least, _, _, most, total = below[flow]
        assert want - 81_000 < least <= most < want + 81_000
        assert abs(total - (count - 1) * want) < 81_000
    # 30 of 35 Mbit/s: each gets 6/7 while both have packets. Flow 2 is sent later.
    for flow, want in wants.items():
        count, *_, total = short[flow]
        assert total == pytest.approx((count - 1) * want * 7 / 6, rel=0.03)
    for part in parts:
        found = counts(part.split("\nqdisc ")[0])
        # The first packet of a burst leaves at once.
        assert found["packets"] == 1050 and found["hardirq"] > 1040
        assert found["lost"] + found["doubled"] + found["reordered"] == 0
    shown = classes(output)
    assert [shown[n]["stats"]["packets"] if "stats" in shown[n] else shown[n]["packets"]
            for n in ("1:10", "1:20")] == [1800, 4500]  # fmt: skip


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + BY_FLOW
    + f"""
    tc qdisc add dev sink0 root handle 1: apic mode hard rate 1mbit
    tc class add dev sink0 parent 1: classid 1:10 apic rate 20mbit
    # 8 ms each; the rest by the class alone.
    udpsend count=60 size=1000 how=burst flow=1 wait=50000000 priority={FIRST}
    tc qdisc change dev sink0 root handle 1: apic rate 0bit
    patiently drained
    spacing_by_flow
    tc -s qdisc show dev sink0
    """
    + END,
)
def test_rate_is_raised(guest):
    """A class does not catch up on what a packet took at the qdisc's old rate."""
    output = guest.ok()
    print(output)
    khz = int(re.search(r"tsc_khz (\d+)", output)[1])
    count, _, low, *_ = spacings(output)[1]
    assert count == 60
    assert low > 400_000 * khz / 1e6 - 5


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + f"""
    tc qdisc add dev sink0 root handle 1: apic mode hard rate 100kbit
    tc class add dev sink0 parent 1: classid 1:10 apic rate 10mbit
    tc class add dev sink0 parent 1: classid 1:20 apic rate 25mbit
    # 80 ms each; the first leaves at once. All of them are queued before the second leaves.
    udpsend count=10 size=1000 how=burst flow=3 wait=1000
    udpsend count=400 size=1000 how=burst flow=1 wait=1000 priority={FIRST}
    udpsend count=400 size=1000 how=burst flow=2 wait=1000 priority={SECOND}
    tc qdisc change dev sink0 root handle 1: apic rate 10mbit
    patiently drained
    echo order $(od -An -tu4 -w4 -v $SINK/flows)
    """
    + END,
)
def test_share_after_a_low_rate(guest):
    """What a packet without a class took at a low rate does not hold up the others later.

    At 10 Mbit/s they get as much as the first class, and one of 4.5 packets.
    """
    order = re.search(r"^order (.*)$", guest.ok(), re.M)[1].split()
    others = [place for place, flow in enumerate(order) if flow == "3"]
    assert (len(order), len(others)) == (810, 10)
    assert max(b - a for a, b in zip(others, others[1:], strict=False)) <= 7


@pytest.mark.long
@pytest.mark.guest(
    BOTH,
    BEGIN
    + f"""
    for mode in $HARD soft thread; do
        tc qdisc replace dev sink0 root handle 1: apic mode $mode rate 100mbit
        for id in 10 20; do
            tc class add dev sink0 parent 1: classid 1:$id apic rate 20mbit limit 20000
        done
        echo 1 >$SINK/reset
        udpsend count=1000 size=250 how=burst flow=1 wait=500000000 priority={FIRST} >one &
        udpsend count=1000 size=250 how=burst flow=2 wait=500000000 priority={SECOND} >two &
        udpsend count=1000 size=250 how=burst flow=3 wait=500000000 >three &
        sleep 0.02
        for change in "rate 40mbit" "burst 5k" "rate 100mbit overhead 24" "rate 20mbit burst 0" \\
                "limit 30000"; do
            tc class change dev sink0 parent 1: classid 1:20 apic $change
        done
        tc qdisc change dev sink0 root handle 1: apic rate 0bit
        tc class replace dev sink0 parent 1: classid 1:10 apic rate 30mbit
        wait
        patiently drained
        cat one two three $SINK/packets
        tc -s class show dev sink0
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_change_with_packets_queued(guest):
    """Rates, bursts and limits change under traffic; each packet comes once and in order."""
    parts = guest.ok().split("\n.\n")[:3]
    assert len(parts) == 3
    for part in parts:
        all_came(part)
        assert part.count(" backlog 0b 0p ") == 2
        assert part.count("1000 pkt (dropped 0") == 2


@pytest.mark.guest(
    BOTH,
    BEGIN
    + f"""
    echo 3 >$KNOBS/busy
    echo 20 >$KNOBS/stop_us
    for mode in $HARD soft thread; do
        tc qdisc replace dev sink0 root handle 1: apic mode $mode rate 100mbit flow_limit 200
        for id in 10 20; do
            tc class add dev sink0 parent 1: classid 1:$id apic rate 80mbit
        done
        # Each uses up its socket's limit, which the next one may inherit with the socket's memory.
        for turn in 1 2 3; do
            echo 1 >$SINK/reset
            udpsend count=200 size=250 how=burst flow=1 wait=100000000 priority={FIRST} >one &
            udpsend count=200 size=250 how=burst flow=2 wait=100000000 priority={SECOND} >two &
            udpsend count=200 size=250 how=burst flow=3 wait=100000000 >three
            wait
            patiently drained
            cat one two three $SINK/packets
        done
        echo refusals $(cat $SINK/refusals)
        tc -s qdisc show dev sink0
        tc -s class show dev sink0
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_difficult_driver_and_classes(guest):
    """Classes and flows keep their accounts if a driver refuses and spoils packets."""
    parts = guest.ok().split("\n.\n")[:3]
    assert len(parts) == 3
    for part in parts:
        print(part)
        assert all_came(part)["packets"] == 1800
        assert " dropped_flow_limit 0 " in part and part.count(" backlog 0b 0p ") == 3
        assert part.count("600 pkt (dropped 0") == 2
    assert int(re.search(r"^refusals (\d+)$", parts[-1], re.M)[1]) > 1000


@pytest.mark.long
@pytest.mark.guest(
    BOTH,
    BEGIN
    + f"""
    queued() {{ tc -s qdisc show dev sink0 | grep -o 'backlog [^ ]* [0-9]*p'; }}
    echo 7 >$KNOBS/busy
    for mode in $HARD soft thread; do
        tc qdisc replace dev sink0 root handle 1: apic mode $mode flow_limit 100000
        for i in 1 2 3 4 5; do
            # The other one is slow; this one sends, and is deleted when it does.
            tc class replace dev sink0 parent 1: classid 1:10 apic rate 1gbit
            tc class replace dev sink0 parent 1: classid 1:20 apic rate 1kbit
            udpsend count=500 size=100 how=burst wait=1000 flow=1 priority={FIRST} >sent &
            udpsend count=500 size=100 how=burst wait=1000 flow=2 priority={SECOND} >sent
            tc class del dev sink0 classid 1:10
            wait
            echo before $(queued)
            tc class del dev sink0 classid 1:20
            patiently drained
            echo after $(queued)
        done
        # What had a class has none now, and is sent.
        echo 1 >$SINK/reset
        udpsend count=50 gap=50000 priority={FIRST}
        arrived
        # With the qdisc, and with the device down.
        tc class add dev sink0 parent 1: classid 1:20 apic rate 10kbit
        udpsend count=500 size=100 how=burst wait=1000 flow=2 priority={SECOND} >sent
        ip link set sink0 down
        ip link set sink0 up
        echo after $(queued)
        udpsend count=500 size=100 how=burst wait=1000 flow=2 priority={SECOND} >sent
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_gone_with_packets_queued(guest):
    """Deleting a class drops its packets, and the accounts balance."""
    parts = guest.ok().split("\n.\n")[:3]
    assert len(parts) == 3
    for part in parts:
        before = [int(n) for n in re.findall(r"^before backlog \S+ (\d+)p$", part, re.M)]
        after = [int(n) for n in re.findall(r"^after backlog \S+ (\d+)p$", part, re.M)]
        assert len(before) == 5 and min(before) > 400, part
        assert len(after) == 6 and not any(after), part
        assert counts(part)["packets"] == 50


# Twice, for modules that need another.
LOAD = """
    for module in $SHARED/modules/cls_*.ko $SHARED/modules/*.ko; do
        insmod $module 2>/dev/null || :
    done
"""


@pytest.mark.guest(
    STOCK,
    LOAD
    + BEGIN
    + """
    tc qdisc add dev sink0 root handle 1: apic
    add() { tc filter add dev sink0 parent 1: "$@"; }
    class() { tc class add dev sink0 parent 1: classid 1:$1 apic rate 100mbit; }
    # Before its class
    add protocol ip prio 1 u32 match ip dport 1001 0xffff flowid 1:1
    udpsend count=5 gap=100000 port=1001
    for i in 1 2 3 4 5; do
        class $i
    done
    add protocol ip prio 2 handle 2 fw flowid 1:2
    add protocol ip prio 3 flower ip_proto udp dst_port 1003 classid 1:3
    # Half word at 36 is 1004?
    code='4,40 0 0 36,21 0 1 1004,6 0 0 4294967295,6 0 0 0'
    add protocol ip prio 4 bpf bytecode "$code" flowid 1:4
    add protocol ip prio 5 matchall classid 1:5
    udpsend count=10 gap=100000 port=1001
    udpsend count=20 gap=100000 port=1002 mark=2
    udpsend count=30 gap=100000 port=1003
    udpsend count=40 gap=100000 port=1004
    udpsend count=50 gap=100000 port=1005
    # Its priority comes first.
    udpsend count=7 gap=100000 port=1005 priority=65539
    patiently drained
    tc -s -j class show dev sink0
    tc class del dev sink0 classid 1:4 2>&1 && echo deleted
    tc filter del dev sink0 parent 1: prio 4
    tc class del dev sink0 classid 1:4
    udpsend count=11 gap=100000 port=1004
    patiently drained
    echo @after
    tc -s -j class show dev sink0
    # Its filter is the older one.
    tc class del dev sink0 classid 1:1
    udpsend count=10 gap=100000 port=1001
    patiently drained
    tc -s class show dev sink0 | grep -c "^class "
    # The filters go with the qdisc.
    tc qdisc del dev sink0 root
    """
    + END,
    brief=True,
)
def test_filters(guest):
    """u32, fw, flower, bpf and matchall assign packets to classes, and keep them from deletion.

    A filter that is older than its class does not keep it.
    """
    before, after = guest.ok().split("@after")

    def packets(text: str) -> list[int]:
        return [c.get("stats", c)["packets"] for _, c in sorted(classes(text).items())]

    assert packets(before) == [10, 20, 37, 40, 50]
    assert "deleted" not in before
    assert "the class is in use by filters" in before
    assert packets(after) == [10, 20, 37, 61]
    assert re.search(r"^3$", after, re.M)


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    tc qdisc add dev sink0 root handle 1: apic
    tc class add dev sink0 parent 1: classid 1:10 apic rate 3mbit burst 2000 limit 77
    before=$(tc class show dev sink0)
    for bad in "limit 0" "rate 0" "overhead 1000" "mode hard" "rate 9999tbit" "burst 5g"; do
        tc class change dev sink0 parent 1: classid 1:10 apic $bad 2>&1 && echo taken: $bad
        [ "$(tc class show dev sink0)" = "$before" ] || echo changed: $bad
    done
    new() { ! tc class add dev sink0 "$@" 2>&1 || echo taken: "$@"; }
    new parent 1: classid 1:20 apic
    new parent 1: classid 1:20 apic burst 2000
    new parent 1:10 classid 1:20 apic rate 1mbit
    new parent 1: classid 1:0 apic rate 1mbit
    new parent 1: classid 1:10 apic rate 1mbit
    new parent 1: classid 1:20 estimator 1s 8s apic rate 1mbit
    tc qdisc add dev sink0 parent 1:10 pfifo 2>&1 && echo taken: pfifo
    [ "$(tc class show dev sink0)" = "$before" ] || echo changed
    echo "$before"
    """
    + END,
)
def test_bad_values(guest):
    """Each bad value gives one line, and changes nothing."""
    output = guest.ok()
    assert "taken:" not in output and "changed" not in output
    assert "class apic 1:10 root rate 3Mbit burst 2000b overhead 0 limit 77" in output
    for line in ("apic: limit: 0 is out of range: 1 to 4294967295",
                 'apic: unknown option "mode"; see "tc class add dev X parent 1: classid 1:10 apic '
                 'help"',
                 "a class needs a rate", "classes of apic cannot be nested",
                 "classes of apic do not support a rate estimator"):  # fmt: skip
        assert line in output


@pytest.mark.guest(
    BOTH,
    BEGIN
    + f"""
    tc qdisc add dev sink0 root handle 1: apic mode $HARD
    # 160 ms each: few leave meanwhile, even if the sender is held up.
    tc class add dev sink0 parent 1: classid 1:10 apic rate 5kbit limit 10
    udpsend count=100 size=100 how=burst wait=1000 flow=1 priority={FIRST} >sent
    udpsend count=50 gap=100000 flow=2 >sent
    patiently drained
    tc -s class show dev sink0
    """
    + END,
    brief=True,
)
def test_limit(guest):
    """A full class drops packets, and takes no place from packets without a class."""
    output = guest.ok()
    dropped = int(re.search(r"dropped_limit (\d+)", output)[1])
    assert 80 < dropped <= 90
    found = re.search(r"Sent \d+ bytes (\d+) pkt \(dropped (\d+)", output)
    assert (int(found[1]), int(found[2])) == (100 - dropped, dropped)
    assert "flow 2 packets 50 lost 0 doubled 0 reordered 0" in output
