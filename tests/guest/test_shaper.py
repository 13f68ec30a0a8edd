"""The qdisc `apic`: each packet leaves at its moment; none is lost, doubled or reordered."""

import re

import pytest
from machines import some

VIRTUAL = some(cpus=1, source="proxy", engine="virtual")
SMP = some(kernel=("6.1", "6.12", "7.2"), cpus=2, source="proxy", engine="smp")
RT = some(kernel=("6.1-rt", "7.2-rt"), source="proxy")
CHECKED = some(kernel=("6.1-debug", "6.1-kcsan"), source="proxy")
# Kernels built here lack the kernel's own qdiscs and filters, and namespaces.
STOCK = [*SMP, *RT]
REAL = [*STOCK, *CHECKED]
BOTH = [*VIRTUAL, *REAL]

# Each section begins with sink0, a device that records packets, and no qdisc on it.
BEGIN = """
    unload
    load apic_timer
    load sch_apic
    load apic_timer_sink
    SINK=$DEBUG/apic_timer_sink
    KNOBS=/sys/module/apic_timer_sink/parameters
    ip addr add 10.9.9.1/24 dev sink0
    ip link set sink0 up
    # Without the files of other sections: some wait for a word in one of the same name.
    rm -rf /dev/shm/shaper
    mkdir /dev/shm/shaper
    cd /dev/shm/shaper
    # Linux 7 drops what others send while a sender waits for the qdisc, above this number.
    burst=/proc/sys/net/core/qdisc_max_burst
    [ ! -e $burst ] || echo 1000000 >$burst
    HARD=hard
    ! grep -q PREEMPT_RT /proc/version || HARD=thread
    # Distribution of the errors, cycles late: count, min, p50, p99, p99.9, max
    errors() {
        od -An -td8 -w8 -v $SINK/errors | sort -n | awk '{ a[n++] = $1 } END { print "errors", n,
            a[0], a[int(n / 2)], a[int(n * 0.99)], a[int(n * 0.999)], a[n - 1] }'
    }
    drained() {
        ! tc -s qdisc show dev sink0 | grep ' backlog ' | grep -qv ' backlog 0b 0p '
    }
    # The driver's counts when all has left, later than planned if a CPU is held up.
    arrived() {
        patiently drained || :
        cat $SINK/packets
    }
    # Distances between packets: count, min, max, sum, cycles
    spacing() {
        # Least, p0.5, p99.5 and longest, and from the first to the last.
        od -An -tu8 -w16 -v $SINK/departures | awk 'NR > 1 { print $1 - last } { last = $1 }' |
            sort -n | awk '{ d[NR] = $1; sum += $1 }
                END { n = int(NR / 200)
                      print "spacing", NR + 1, d[1], d[n + 1], d[NR - n], d[NR], sum }'
    }
"""
END = """
    arrived
    unload
"""

# The longest stretch with interrupts disabled, in cycles. The page allocator disables them while it
# takes 63 pages, 7 us, and in 6.12 while it frees many pages, half a millisecond.
STRETCH = 1_000_000


def counts(output: str) -> dict[str, int]:
    """Sum up the driver's counts: all its names and numbers."""
    found: dict[str, int] = {}
    for line in re.findall(r"^(?:flow \d+ |hardirq ).*$", output, re.M):
        words = line.split()
        for name, value in zip(words[::2], words[1::2], strict=True):
            found[name] = found.get(name, 0) + int(value)
    return found


def sent(output: str) -> int:
    """Add up the packets that the senders sent."""
    rows = re.findall(r"^udpsend sent (\d+) failed (\d+)", output, re.M)
    assert rows and not sum(int(failed) for _, failed in rows), output
    return sum(int(n) for n, _ in rows)


def all_came(output: str) -> dict[str, int]:
    """Expect each packet once, in order, and not before its time."""
    found = counts(output)
    assert found["packets"] == sent(output)
    assert (found["lost"], found["doubled"], found["reordered"], found["early"]) == (0, 0, 0, 0)
    return found


def dropped_late(output: str, sent: int) -> int:
    """Return how many of the sent packets were dropped; each drop was reported, the rest came."""
    missed = int(re.search(r" missed (\d+)", output)[1])
    assert int(re.search(r"dropped_late (\d+)", output)[1]) == missed
    assert counts(output).get("packets", 0) == sent - missed
    return missed


LOADS = {
    "idle": ":",
    "user": "while :; do :; done &",
    "syscall": "hackbench -l 1000000 -g 2 >/dev/null 2>&1 &",
}


@pytest.mark.long
@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    """
    + "\n".join(
        f"""
    {load}
    # The lead of this load is learnt first, from as many packets as in the benchmark.
    udpsend count=2000 gap=20000-120000
    echo 1 >$SINK/reset
    udpsend count=3000 gap=20000-120000 >sent
    kill $! 2>/dev/null || :
    echo load {name}
    errors
    cat sent $SINK/packets
    echo 1 >$SINK/reset
    """
        for name, load in LOADS.items()
    )
    + """
    killall hackbench 2>/dev/null || :
    tc -s qdisc show dev sink0
    """
    + END,
)
def test_error_hard(guest):
    """Errors at the driver's first instruction are a few cycles under any load.

    System calls and work left over from earlier tests sometimes disable interrupts for longer than
    the timer's lead covers: about one packet in a hundred may be late, as with any exact timer. The
    benchmark has the rest of the distribution.
    """
    output = guest.ok()
    parts = output.split("\nload ")[1:]
    assert len(parts) == len(LOADS)
    for part in parts:
        row = re.search(r"^errors (.*)$", part, re.M)[1]
        count, least, _, p99, *_ = map(int, row.split())
        print(part)
        assert count == 3000
        assert least >= -1  # the clock's resolution: 1 ns
        assert p99 <= 8
        assert counts(part)["hardirq"] == 3000
        assert counts(part)["lost"] + counts(part)["reordered"] == 0


# Distances in ns; the second is shorter than the time a packet takes.
CLOSE_NS = (5000, 3000)


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    for gap in """
    + " ".join(map(str, CLOSE_NS))
    + """; do
        tc qdisc add dev sink0 root apic mode hard limit 200000
        echo 1 >$SINK/reset
        echo gap $gap
        for flow in 1 2; do
            udpsend count=2000 gap=$gap size=100 batch=2000 ahead=60000000 flow=$flow
        done
        errors
        cat $SINK/packets
        tc -s qdisc show dev sink0
        tc qdisc del dev sink0 root
    done
    grep throttled $DEBUG/apic_timer/stats
    """
    + END,
)
def test_close_together(guest):
    """Interrupts that wait give the rest of the system its turn before all handlers are throttled.

    That makes a packet, and the next ones, late by half a millisecond. The kernel itself may
    disable interrupts for as long when it frees that many packets, as 6.12 does.
    """
    output = guest.ok()
    print(output)
    parts = output.split("\ngap ")[1:]
    assert len(parts) == len(CLOSE_NS)
    for part in parts:
        gap = int(part.split()[0])
        row = re.search(r"^errors (.*)$", part, re.M)[1]
        count, least, p50, _, _, most = map(int, row.split())
        assert count == 4000
        assert least >= -1 and most < STRETCH
        assert p50 <= (8 if gap == CLOSE_NS[0] else 5000)
        assert counts(part)["lost"] + counts(part)["reordered"] == 0
    assert re.search(r"^throttled +0$", output, re.M)


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    udpsend count=1000 gap=20000-120000 >/dev/null
    for steer in 32000000 -32000000; do
        adjtimex -f $steer >/dev/null
        sleep 0.1
        echo 1 >$SINK/reset
        udpsend count=1000 gap=20000-120000 clock=tai >sent
        echo steered $steer
        errors
        cat sent $SINK/packets
    done
    echo 1 >$SINK/reset
    adjtimex -f 0 >/dev/null
    """
    + END,
)
def test_steered(guest):
    """NTP's 500 ppm are 50 ns in 100 us: departure times follow the steered clock."""
    output = guest.ok()
    print(output)
    parts = output.split("\nsteered ")[1:]
    assert len(parts) == 2
    for part in parts:
        count, least, _, p99, _, _ = map(int, re.search(r"^errors (.*)$", part, re.M)[1].split())
        assert count == 1000
        assert least >= -2  # the clock's resolution, and its gain until the driver reads it
        assert p99 <= 8
        assert all_came(part)["hardirq"] == 1000


@pytest.mark.long
@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    udpsend count=1000 gap=20000-120000 >/dev/null
    for steer in 32000000 -32000000; do
        echo 1 >$SINK/reset
        udpsend count=8 batch=8 gap=1000000 ahead=400000000 clock=tai flow=1 wait=450000000 >far &
        sleep 0.02
        adjtimex -f $steer >/dev/null
        udpsend count=4500 gap=100000 clock=tai flow=2 >near
        wait
        echo steered $steer
        errors
        cat far near $SINK/packets
        adjtimex -f 0 >/dev/null
        sleep 0.1
    done
    echo 1 >$SINK/reset
    """
    + END,
)
def test_steered_while_queued(guest):
    """A rate change while a packet waits is followed, no matter how much other sockets send.

    500 ppm of 380 ms are 190 us, and the other socket's packets come ten times as often.
    """
    output = guest.ok()
    print(output)
    parts = output.split("\nsteered ")[1:]
    assert len(parts) == 2
    for part in parts:
        count, least, _, _, _, most = map(int, re.search(r"^errors (.*)$", part, re.M)[1].split())
        assert count == 4508
        assert least >= -2  # as above
        assert most < STRETCH
        assert all_came(part)["hardirq"] == 4508


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    for mode in hard soft; do
        tc qdisc replace dev sink0 root apic mode $mode rate 50mbit
        # The lead is learnt first.
        udpsend count=2000 size=667 how=burst wait=220000000
        echo 1 >$SINK/reset
        udpsend count=2000 size=667 how=burst wait=220000000
        spacing
        tc -s qdisc show dev sink0
        cat $SINK/packets
    done
    """
    + END,
    brief=True,
)
def test_rate(guest):
    """Figure 5 of the paper of 2001: 667 bytes at 50 Mbit/s, to the cycle.

    One or two packets may be late after a stretch with interrupts disabled; the next ones are not.
    """
    output = guest.ok()
    print(output)
    hard, soft = (
        tuple(map(int, row.split())) for row in re.findall(r"^spacing (.*)$", output, re.M)
    )
    khz = int(re.search(r"tsc_khz (\d+)", output)[1])
    want = 106720 * khz / 1e6
    count, least, low, high, most, time = hard
    assert count == 2000
    assert want - 5 < low <= high < want + 5
    assert max(want - least, most - want) < STRETCH
    # The first one leaves without a wait; from the TSC to the driver that takes some cycles longer.
    assert abs(time - 1999 * want) < 10
    # Softirq may delay a packet, but the rate never drifts.
    assert soft[0] == 2000
    assert abs(soft[5] - 1999 * want) <= 3000


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    for pacing in on on off; do
        tc qdisc change dev sink0 root apic pacing $pacing
        echo 1 >$SINK/reset
        udpsend count=1000 size=500 gap=200000 how=pace wait=220000000
        echo $pacing $(spacing)
    done
    tc -s qdisc show dev sink0
    # A packet a tenth of a second: none leaves while twenty are queued.
    tc qdisc replace dev sink0 root apic mode hard rate 8kbit limit 10
    udpsend count=20 size=100 how=burst wait=1000
    tc -s qdisc show dev sink0 | grep -o 'dropped_limit [0-9]*'
    tc qdisc del dev sink0 root
    """
    + END,
)
def test_paced_socket(guest):
    """A socket's SO_MAX_PACING_RATE spaces packets unless pacing is off; the queue has a limit."""
    output = guest.ok()
    print(output)
    _, on, off = (tuple(map(int, row.split())) for row in
                  re.findall(r"^\w+ spacing (.*)$", output, re.M))  # fmt: skip
    want = 200_000 * int(re.search(r"tsc_khz (\d+)", output)[1]) / 1e6
    count, _, low, high, _, time = on
    assert count == 1000
    assert want - 5 < low <= high < want + 5
    # The first packet leaves at once, which takes a microsecond.
    assert abs(time - 999 * want) < 5_000
    assert off[0] == 1000 and off[5] < 100 * want
    # One packet is being sent.
    assert int(re.findall(r"dropped_limit (\d+)", output)[-1]) in (9, 10)


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    for mode in $HARD soft thread; do
        tc qdisc replace dev sink0 root apic mode $mode
        echo 1 >$SINK/reset
        udpsend count=500 gap=20000-220000 flow=1
        echo mode $mode
        arrived
        tc -s qdisc show dev sink0
    done
    """
    + END,
    brief=True,
)
def test_modes(guest):
    """Each mode delivers all packets, and in virtual time from the context that it promises."""
    for part in guest.ok().split("\nmode ")[1:]:
        mode = part.split()[0]
        found = counts(part.split("\nqdisc")[0])
        assert found["packets"] == 500, part
        assert (found["lost"], found["doubled"], found["early"]) == (0, 0, 0), part
        if not guest.machine.real_time:
            assert found["hardirq"] == (500 if mode == "hard" else 0), part


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    for driver in hv_netvsc e1000e some_other; do
        rmmod apic_timer_sink
        insmod $MODULES/apic_timer_sink.ko driver=$driver
        ip addr add 10.9.9.1/24 dev sink0
        ip link set sink0 up
        for mode in soft thread; do
            tc qdisc replace dev sink0 root apic mode $mode
            udpsend count=50 gap=1000000 >/dev/null
            patiently drained
            echo $driver $mode irqs_off $(cat $SINK/irqs_off)
            echo 0 >$SINK/irqs_off
        done
        for mode in hard auto; do
            echo $driver $mode $(tc qdisc replace dev sink0 root apic mode $mode 2>&1;
                tc qdisc show dev sink0)
        done
        echo 1 >$SINK/reset
    done
    """
    + END,
)
def test_interrupts_on(guest):
    """A driver that takes what comes with interrupts off for netpoll's gets packets with them on.

    Others get them with interrupts off, except on PREEMPT_RT.
    """
    output = guest.ok()
    print(output)
    found = re.findall(r"^(\w+) (soft|thread) irqs_off (\d+)$", output, re.M)
    assert len(found) == 6
    for driver, _, irqs_off in found:
        on = driver == "hv_netvsc" or guest.machine in RT
        # The kernel's own packets, to its neighbours, leave in the same way.
        assert int(irqs_off) == 0 if on else int(irqs_off) >= 50
    if guest.machine not in RT:
        assert re.findall(r"^(\w+) auto .* \((\w+)\)", output, re.M) == [
            ("hv_netvsc", "soft"), ("e1000e", "hard"), ("some_other", "soft")]  # fmt: skip
        assert re.findall(r"^(\w+) hard Warning: (.*)\. qdisc ", output, re.M) == [
            ("hv_netvsc", "hv_netvsc does not use its virtual function (VF) in mode hard"),
            ("some_other", "this driver has not been tested with mode hard")]  # fmt: skip


@pytest.mark.long
@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    echo 7 >$KNOBS/busy
    echo 5 >$KNOBS/stop
    for mode in $HARD soft thread; do
        tc qdisc replace dev sink0 root apic mode $mode order flow
        echo 1 >$SINK/reset
        udpsend count=1000 gap=10000 batch=20 flow=1 wait=500000000 >one &
        udpsend count=1000 gap=10000 batch=20 flow=2 wait=500000000
        wait
        patiently drained
        cat one $SINK/packets
        echo stops $(cat $SINK/stops) refusals $(cat $SINK/refusals)
        tc -s qdisc show dev sink0
        echo .
    done
    """
    + END,
)
def test_difficult_driver(guest):
    """Random stopped queues and NETDEV_TX_BUSY lose, double and reorder nothing.

    A packet that the driver does not take comes back with its control block overwritten.
    """
    parts = guest.ok().split("\n.\n")[:3]
    for part in parts:
        print(part)
        all_came(part)
        stops, refusals = map(int, re.search(r"stops (\d+) refusals (\d+)", part).groups())
        assert stops > 100 and refusals > 100
        assert re.search(r" backlog 0b 0p ", part)


@pytest.mark.long
@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode soft rate 20mbit
    udpsend count=1000 size=250 how=burst wait=150000000 flow=1 >sent &
    sleep 0.02
    for change in "mode $HARD" "rate 40mbit" "mode thread" "rate 0bit" "mode soft rate 80mbit" \
            "limit 20000"; do
        tc qdisc change dev sink0 root apic $change
    done
    wait
    patiently drained
    cat sent
    tc -s qdisc show dev sink0
    """
    + END,
)
def test_change_with_packets_queued(guest):
    all_came(guest.ok())


@pytest.mark.long
@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    queued() { tc -s qdisc show dev sink0 | grep -o 'backlog [^ ]* [0-9]*p'; }
    for mode in $HARD soft thread; do
        for end in "tc qdisc del dev sink0 root" "tc qdisc replace dev sink0 root pfifo" \
                "ip link set sink0 down" "tc qdisc replace dev sink0 root handle 7: apic"; do
            tc qdisc replace dev sink0 root handle 1: apic mode $mode rate 10kbit
            udpsend count=1000 size=100 how=burst wait=1000 >sent
            echo before $(queued)
            $end
            ip link set sink0 up
            echo after $(queued)
        done
        # It works as before.
        tc qdisc replace dev sink0 root handle 1: apic mode $mode
        echo 1 >$SINK/reset
        udpsend count=50 gap=50000
        arrived
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
    brief=True,
)
def test_gone_with_packets_queued(guest):
    """Deleting or replacing the qdisc, or setting the device down, drops only queued packets."""
    for part in guest.ok().split("\n.\n")[:3]:
        before = [int(n) for n in re.findall(r"^before backlog \S+ (\d+)p$", part, re.M)]
        after = [int(n) for n in re.findall(r"^after backlog \S+ (\d+)p$", part, re.M)]
        assert len(before) == len(after) == 4 and min(before) > 800, part
        assert not any(after), part
        assert counts(part)["packets"] == 50


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode $HARD rate 1mbit
    udpsend count=100 size=100 how=burst wait=1000
    rmmod sch_apic 2>/dev/null && echo unloaded with a qdisc
    rmmod apic_timer 2>/dev/null && echo unloaded with a user
    tc qdisc del dev sink0 root
    rmmod sch_apic
    load sch_apic
    """
    + END,
    brief=True,
)
def test_unload(guest):
    """Unloading is refused while a qdisc exists, and succeeds afterwards."""
    assert "unloaded" not in guest.ok()


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode $HARD order flow cpu 1
    udpsend count=4000 gap=10000-100000 flow=1 >sent &
    for i in 1 2 3; do
        echo 0 >/sys/devices/system/cpu/cpu1/online
        echo 1 >/sys/devices/system/cpu/cpu1/online
    done
    wait
    patiently drained
    cat sent
    # The first of these may find the timer where the last one left it.
    echo 1 >$TRACING/events/sch_apic/sch_apic_send/enable
    # Where the host has no time for the guest, none of them may be.
    flow=1
    hard() {
        flow=$((flow + 1))
        udpsend count=50 gap=1000000 flow=$flow
        [ "$(grep -c "sch_apic_send: .* mode=$HARD " $TRACING/trace)" -gt 1 ]
    }
    patiently hard
    echo 0 >$TRACING/events/sch_apic/sch_apic_send/enable
    grep sch_apic_send: $TRACING/trace
    echo >$TRACING/trace
    tc qdisc del dev sink0 root
    """
    + END,
    brief=True,
)
def test_cpu_goes_offline(guest):
    """Hotplug loses no packet, and the chosen CPU sends again when it is back online."""
    output = guest.ok()
    all_came(output)
    sent = re.findall(r"\[(\d+)\].* sch_apic_send: .* mode=(?:hard|thread) ", output)
    print(sent)
    assert set(sent[1:]) == {"001"}


@pytest.mark.guest(
    SMP,
    BEGIN
    + """
    sends() {
        echo 1 >$TRACING/events/sch_apic/sch_apic_send/enable
        IN="taskset 1"
        udpsend count=50 gap=1000000 flow=$1
        IN=
        patiently drained
        echo 0 >$TRACING/events/sch_apic/sch_apic_send/enable
        echo part
        grep sch_apic_send: $TRACING/trace
        echo >$TRACING/trace
    }
    tc qdisc add dev sink0 root apic mode hard cpu 1
    sends 1
    tc qdisc change dev sink0 root apic cpu any
    sends 2
    tc qdisc del dev sink0 root
    """
    + END,
)
def test_cpu_is_given_up(guest):
    """With `cpu any` again, the timer leaves the CPU for the one that queues the next packet."""
    output = guest.ok()
    all_came(output)
    for part, cpu in zip(output.split("part\n")[1:], ("001", "000"), strict=True):
        sent = re.findall(r"\[(\d+)\].* sch_apic_send: .* mode=hard ", part)
        print(sent)
        assert set(sent) == {cpu}


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    online() { echo $1 >/sys/devices/system/cpu/cpu1/online; }
    tc qdisc add dev sink0 root apic mode thread cpu 1
    for round in 1 2; do
        online 0
        udpsend count=50 gap=1000000 flow=1$round
        patiently drained
        # The second time it is created meanwhile.
        [ $round = 1 ] || for mode in soft thread; do
            tc qdisc change dev sink0 root apic mode $mode
        done
        online 1
        echo 1 >$TRACING/events/sch_apic/sch_apic_send/enable
        udpsend count=50 gap=1000000 flow=$round
        patiently drained
        echo 0 >$TRACING/events/sch_apic/sch_apic_send/enable
        echo round
        grep sch_apic_send: $TRACING/trace
        echo >$TRACING/trace
    done
    """
    + END,
)
def test_thread_cpu_goes_offline(guest):
    """The thread returns to the chosen CPU, too."""
    output = guest.ok()
    all_came(output)
    rounds = output.split("\nround\n")[1:]
    assert len(rounds) == 2
    for part in rounds:
        sent = re.findall(r"\[(\d+)\].* sch_apic_send: .* mode=thread ", part)
        print(sent)
        assert set(sent) == {"001"}


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    cat >busy.py <<'PY'
import os, time
os.sched_setaffinity(0, {1})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
print("busy", flush=True)
end = time.monotonic() + 3
while time.monotonic() < end:
    pass
PY
    tc qdisc add dev sink0 root apic mode thread cpu 1
    python3 busy.py >busy &
    patiently grep -q busy busy
    # Woken, and it does not get to run: the kernel waits for its end until it can.
    udpsend count=1 gap=1 ahead=50000000 wait=50000000
    tc qdisc change dev sink0 root apic mode soft
    wait
    for cpu in any 1 any; do
        tc qdisc change dev sink0 root apic mode thread cpu $cpu
        udpsend count=5 gap=1000000 flow=1 >/dev/null
        thread=$(pgrep sch_apic/sink0)
        echo cpu $cpu $(grep Cpus_allowed_list /proc/$thread/status)
        echo 1 >$SINK/reset
    done
    """
    + END,
)
def test_thread_is_moved(guest):
    """A thread runs on its chosen CPU, even if the previous thread was about to run."""
    found = re.findall(r"^cpu (\w+) Cpus_allowed_list: (\S+)$", guest.ok(), re.M)
    assert found == [("any", "0-1"), ("1", "1"), ("any", "0-1")]


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode $HARD order flow
    cat >tap.py <<'PY'
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
tap.bind(("sink0", 3))
tap.settimeout(3)
print("ready", flush=True)
n = 0
while n < 500:
    n += tap.recv(2048)[23] == 17
print("tapped", n)
PY
    python3 tap.py >tapped &
    patiently grep -q ready tapped
    udpsend count=500 gap=20000-220000 flow=1
    wait
    cat tapped
    """
    + END,
    brief=True,
)
def test_tap(guest):
    """A packet socket sees each packet; meanwhile packets leave by softirq."""
    output = guest.ok()
    assert "tapped 500" in output
    assert all_came(output)["hardirq"] == 0


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode $HARD rate 100mbit
    python3 - <<'PY'
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
cmsg = [(socket.IPPROTO_UDP, 103, struct.pack("H", 500))]
for i in range(20):
    s.sendmsg([bytes(5000)], cmsg, 0, ("10.9.9.2", 9))
PY
    patiently drained
    tc -s qdisc show dev sink0
    """
    + END,
    brief=True,
)
def test_gso_is_split(guest):
    """Twenty packets of ten segments become 200, and the accounts balance."""
    output = guest.ok()
    # The kernel also sends packets of its own, to its neighbours.
    assert 200 <= int(re.search(r"^ Sent \d+ bytes (\d+) pkt ", output, re.M)[1]) < 220
    assert " gso_split 20 " in output
    assert re.search(r" backlog 0b 0p ", output)


# A loop over some classful qdiscs; each has a class 1:1, where apic is added.
BELOW = """
    for parent in prio "htb default 1"; do
        tc qdisc replace dev sink0 root handle 1: $parent || continue
        [ "${parent%% *}" = prio ] || tc class add dev sink0 parent 1: classid 1:1 htb rate 1gbit
"""


@pytest.mark.guest(
    STOCK,
    BEGIN
    + BELOW
    + """
        tc qdisc add dev sink0 parent 1:1 apic mode $HARD rate 50mbit
        echo guessed $(tc -s qdisc show dev sink0 | grep -o 'lead_soft [0-9]*')
        echo 1 >$SINK/reset
        udpsend count=300 size=667 how=burst wait=100000000 priority=6
        patiently drained
        tc -s qdisc show dev sink0
        cat $SINK/packets
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_below_another(guest):
    """Below a classful qdisc the kernel sends, on time; the accounts of both balance."""
    parts = guest.ok().split("\n.\n")[:-1]
    assert parts
    for part in parts:
        all_came(part)
        guessed, learnt = re.findall(r"lead_soft (\d+)", part)
        print(guessed, learnt)
        assert guessed != learnt
        assert counts(part)["hardirq"] == 0
        assert len(re.findall(r" backlog 0b 0p ", part)) == part.count("\nqdisc ")


@pytest.mark.guest(
    REAL,
    BEGIN.replace("load apic_timer_sink", "insmod $MODULES/apic_timer_sink.ko queues=4")
    + """
    tc qdisc replace dev sink0 root handle 1: mq
    for i in 1 2 3 4; do
        tc qdisc add dev sink0 parent 1:$i apic mode $HARD order flow
    done
    for flow in 1 2 3 4; do
        udpsend count=500 gap=20000-120000 flow=$flow seed=$flow priority=$flow >sent$flow &
    done
    wait
    patiently drained
    cat sent1 sent2 sent3 sent4
    # One for all queues
    tc qdisc replace dev sink0 root apic mode $HARD order flow
    for flow in 5 6; do
        udpsend count=500 gap=20000-120000 flow=$flow seed=$flow port=$((1000 + flow)) >sent$flow &
    done
    wait
    patiently drained
    cat sent5 sent6
    tc -s qdisc show dev sink0
    """
    + END,
    brief=True,
)
def test_several_queues(guest):
    all_came(guest.ok())


@pytest.mark.guest(
    [machine for machine in STOCK if machine.kernel.startswith("7.2")],
    BEGIN.replace("load apic_timer_sink", "insmod $MODULES/apic_timer_sink.ko queues=2")
    + """
    # All by the first queue, and none of the kernel's own, which would help the others
    echo 1 >/proc/sys/net/ipv6/conf/sink0/disable_ipv6
    echo 3 >/sys/class/net/sink0/queues/tx-0/xps_cpus
    tc qdisc replace dev sink0 root handle 1: mq
    none() { tc -s qdisc show dev sink0 | awk '/ backlog / && $3 != "0p" { exit 1 }'; }
    # Not at all, for less than the distance of packets, and for longer
    for stop_us in 0 200 2000; do
        stop=$((stop_us > 0))
        echo $stop_us >$KNOBS/stop_us
        for mode in $HARD soft thread; do
            tc qdisc replace dev sink0 parent 1:1 apic mode $mode
            echo 1 >$SINK/reset
            udpsend count=1000 batch=1000 gap=500000 ahead=1500000000 &
            # All are queued long before, unless the sender is held up.
            patiently grep -q "^flow 0 " $SINK/packets
            echo $stop >$KNOBS/stop
            replaced=0
            until none || [ $replaced = 300 ]; do
                for kind in pfifo bfifo; do
                    tc qdisc replace dev sink0 parent 1:2 $kind
                done
                replaced=$((replaced + 2))
            done
            echo 0 >$KNOBS/stop
            wait
            # Nobody queues anything any more.
            patiently none || tc -s qdisc show dev sink0
            echo replaced $replaced
            cat $SINK/packets
            echo .
        done
    done
    """
    + END,
)
def test_another_is_replaced(guest):
    """While another queue's qdisc is replaced, Linux 7 keeps queued packets but runs no qdisc."""
    output = guest.ok()
    print(output)
    parts = output.split("\n.\n")[:-1]
    assert len(parts) == 9
    for part in parts:
        assert all_came(part)["packets"] == 1000


@pytest.mark.guest(
    VIRTUAL,
    BEGIN.replace("load apic_timer_sink", "insmod $MODULES/apic_timer_sink.ko queues=2")
    + """
    tc qdisc replace dev sink0 root handle 1: mq
    for i in 1 2; do
        tc qdisc replace dev sink0 parent 1:$i apic mode hard
    done
    # No sender keeps the CPU busy while packets leave.
    send() {
        udpsend count=500 batch=500 ahead=100000000 gap=$2 flow=$1 seed=$1 priority=$1
    }
    figures() {
        patiently drained
        tc -s qdisc show dev sink0 | grep -o "$1 [0-9]*"
    }
    # Each learns from flows that are alone, before both send at a time.
    for flow in 1 2 3 4 5 6 7; do
        send $flow 20000-120000
    done
    figures sent_hard
    figures lead_hard
    for flow in 8 9 10 11 12 13 14; do
        send $flow 160000-960000 >sent$flow &
    done
    wait
    figures lead_hard
    cat sent*
    """
    + END,
)
def test_several_at_a_time(guest):
    """A qdisc that has to wait for another one does not learn to begin its own waits earlier."""
    output = guest.ok()
    all_came(output)
    assert min(map(int, re.findall(r"sent_hard (\d+)", output))) >= 500
    *alone, first, second = map(int, re.findall(r"lead_hard (\d+)", output))
    print(alone, first, second)
    # The kernel's own delays may lengthen one of them; by each other's waits both grow.
    assert min(first, second) < 1.2 * max(alone)


# Moves sink0 into the network namespace of a new process, $pid, that unshare(1) starts.
IN_NAMESPACE = """
    namespace() { readlink /proc/$1/ns/net; }
    inside() { [ "$(namespace $pid)" != "$(namespace self)" ]; }
    move_sink() {
        unshare "$@" sleep 1000 &
        pid=$!
        patiently inside
        ip link set sink0 netns $pid
    }
"""


@pytest.mark.guest(
    STOCK,
    BEGIN
    + IN_NAMESPACE
    + """
    move_sink -n
    IN="nsenter -t $pid -n"
    ip addr add 10.9.9.1/24 dev sink0
    ip link set sink0 up
    # Five seconds of packets: time passes while nobody runs.
    tc qdisc add dev sink0 root apic mode $HARD rate 80kbit
    udpsend count=500 size=100 how=burst wait=1000
    tc -s qdisc show dev sink0
    kill $pid
    IN=
    # Hardware comes back to where it was, without its qdisc.
    patiently ip link show sink0 >/dev/null 2>&1
    rmmod sch_apic
    """
    + END,
)
def test_namespace_goes_away(guest):
    """A namespace can go away while packets are queued in it."""
    assert int(re.search(r" backlog \S+ (\d+)p ", guest.ok())[1]) > 400


TRY = """
    try() { tc qdisc replace dev sink0 root apic "$@" 2>&1 || echo refused "$@"; }
"""


@pytest.mark.guest(
    STOCK,
    BEGIN
    + IN_NAMESPACE
    + TRY
    + """
    move_sink -U -r -n
    shown() { tc qdisc show dev sink0 | grep -oE 'mode [a-z]+|cpu [a-z0-9]+|[(][a-z]+[)]'; }
    # As any user may do.
    IN="nsenter -t $pid -U --preserve-credentials -n"
    for options in "mode auto" "mode thread" "mode hard" "cpu 1" "mode soft cpu any"; do
        try $options
    done
    echo user $(shown)
    # The host's root may enter and choose, and the namespace's keeps what that has chosen.
    IN="nsenter -t $pid -n"
    try mode thread cpu 1
    IN="nsenter -t $pid -U --preserve-credentials -n"
    try mode thread cpu 1 limit 7
    try cpu 0
    echo root $(shown)
    kill $pid
    IN=
    patiently ip link show sink0 >/dev/null 2>&1
    """
    + END,
)
def test_user_namespace(guest):
    """Who is root in a user namespace only gets no thread, no CPU, and no untested driver."""
    output = guest.ok()
    refused = re.findall(r"^refused (.*)$", output, re.M)
    assert refused == ["mode thread", "mode hard", "cpu 1", "cpu 0"]
    assert output.count("Error: modes hard and thread, and a CPU, are not for user namespaces") == 4
    assert "\nuser mode soft cpu any (soft)\n" in output
    assert "\nroot mode thread cpu 1 (thread)\n" in output


@pytest.mark.guest(
    STOCK,
    BEGIN
    + TRY
    + """
    shown() { tc qdisc show dev sink0 | grep -oE ' (mode|cpu|limit) [a-z0-9]+'; }
    # Root, as in many containers
    IN="/usr/bin/setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice"
    for options in "mode soft" "mode thread limit 8" "cpu 1 limit 8" "limit 9" "mode auto"; do
        try $options
    done
    echo without $(shown)
    # What is set already may stay, and be given up.
    IN=
    try mode thread cpu 1
    IN="/usr/bin/setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice"
    try mode thread cpu 1 limit 10
    try cpu 0 limit 11
    echo kept $(shown)
    try mode soft cpu any
    try mode thread limit 12
    echo given up $(shown)
    IN=
    """
    + END,
)
def test_without_sys_nice(guest):
    """Whoever may not give real-time priority to programs gets no thread, and chooses no CPU."""
    output = guest.ok()
    refused = re.findall(r"^refused (.*)$", output, re.M)
    assert refused == ["mode thread limit 8", "cpu 1 limit 8", "cpu 0 limit 11",
                       "mode thread limit 12"]  # fmt: skip
    assert output.count("Error: mode thread and a CPU require CAP_SYS_NICE") == 4
    assert "\nwithout mode auto cpu any limit 9\n" in output
    assert "\nkept mode thread cpu 1 limit 10\n" in output
    assert "\ngiven up mode soft cpu any limit 10\n" in output


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode soft rate 1mbit limit 1234
    before=$(tc qdisc show dev sink0)
    for bad in "limit 0" "horizon 1ns" "overhead 1000" "cpu 4000" "mode hard rate 9999tbit" \
            "burst 2000 rate 0bit" "clock 77"; do
        tc qdisc change dev sink0 root apic $bad 2>&1 && echo taken: $bad
        [ "$(tc qdisc show dev sink0)" = "$before" ] || echo changed: $bad
    done
    tc qdisc add dev lo root apic mode hard 2>&1 && echo taken: lo
    tc qdisc del dev sink0 root
    """
    + END,
    brief=True,
)
def test_bad_values(guest):
    """Each bad value gives one line, and changes nothing."""
    output = guest.ok()
    assert "taken:" not in output and "changed:" not in output
    fit = "devices that do their own locking"
    if guest.machine in RT:
        fit = "PREEMPT_RT; use mode thread"
    assert f"mode hard is not supported on {fit}" in output


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    ahead() {
        echo 1 >$SINK/reset
        tc qdisc replace dev sink0 root apic mode $HARD "$@"
        udpsend count=1 gap=1000000 ahead=200000000 clock=tai
        tc -s qdisc show dev sink0
    }
    ahead horizon 100ms
    ahead horizon 1ms beyond cap
    """
    + END,
    brief=True,
)
def test_horizon(guest):
    """Packets beyond the horizon are dropped and reported to the socket, or sent at the horizon."""
    dropped, capped = guest.ok().split("udpsend sent")[1:]
    assert " invalid 1 " in dropped
    assert " invalid 0 " in capped
    assert counts(capped)["packets"] == 1


@pytest.mark.guest(
    STOCK,
    BEGIN
    + BELOW
    + """
        tc qdisc add dev sink0 parent 1:1 apic mode soft late drop late_after 100ns
        # Each is alone when it comes, and its moment has passed.
        udpsend count=50 gap=1000000 ahead=0 priority=6
        tc qdisc change dev sink0 parent 1:1 apic late send
        udpsend count=1 ahead=20000000 priority=6
        patiently drained
        tc -s qdisc show dev sink0
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_dropped_below_another(guest):
    """The parent learns of packets dropped one by one with the next packet that is queued."""
    output = guest.ok()
    print(output)
    parts = output.split("\n.\n")[:-1]
    assert parts
    for part in parts:
        assert int(re.search(r"dropped_late (\d+)", part)[1]) >= 40
        assert len(re.findall(r" backlog 0b 0p ", part)) == part.count("\nqdisc ") >= 2


LATE, ROUND = 2000, 64


@pytest.mark.guest(
    STOCK,
    BEGIN
    + f"""
    index=$(cat /sys/class/net/sink0/ifindex)
    dropped() {{ tc -s qdisc show dev sink0 | grep -q "dropped_late {LATE} "; }}
    for where in root "parent 1:1"; do
        [ "$where" = root ] || tc qdisc replace dev sink0 root handle 1: prio
        tc qdisc add dev sink0 $where handle 10: apic mode $HARD rate 100bit
        # Behind the first one all others are late, which does not matter yet.
        udpsend count=1 size=1500 how=burst priority=6
        udpsend count={LATE} batch={LATE} gap=1 flow=1 priority=6 wait=1000
        echo 1 >$TRACING/events/qdisc/qdisc_dequeue/enable
        tc qdisc change dev sink0 $where handle 10: apic rate 0bit late drop
        patiently dropped
        echo 0 >$TRACING/events/qdisc/qdisc_dequeue/enable
        echo rounds $(grep -c "qdisc_dequeue: .* ifindex=$index " $TRACING/trace)
        echo >$TRACING/trace
        tc qdisc del dev sink0 root
    done
    """
    + END,
)
def test_dropped_in_rounds(guest):
    """Late packets are dropped in rounds, and others may take the root qdisc's lock in between."""
    rounds = [int(n) for n in re.findall(r"^rounds (\d+)$", guest.ok(), re.M)]
    print(rounds)
    assert len(rounds) == 2 and min(rounds) >= LATE // ROUND


# Classes 1:1 and 1:2 of qdiscs that never take a class with packets for empty.
STRICT = """
    drr() {
        tc qdisc replace dev sink0 root handle 1: drr
        for class in 1:1 1:2; do
            tc class add dev sink0 parent 1: classid $class drr
        done
    }
    hfsc() {
        tc qdisc replace dev sink0 root handle 1: hfsc default 2
        for class in 1:1 1:2; do
            tc class add dev sink0 parent 1: classid $class hfsc sc rate 500mbit
        done
    }
"""


@pytest.mark.guest(
    STOCK,
    BEGIN
    + STRICT
    + """
    for parent in drr hfsc; do
        $parent
        tc qdisc add dev sink0 parent 1:1 handle 10: apic mode soft late drop late_after 1us
        tc qdisc add dev sink0 parent 1:2 handle 20: pfifo limit 10000
        echo 1 >$SINK/reset
        # Some leave, some are dropped, several at a time, and the other class is never empty long.
        udpsend count=1000 gap=100000-300000 batch=10 ahead=500000 flow=1 priority=65537 >one &
        udpsend count=1000 gap=100000-300000 ahead=0 flow=3 priority=65537 >three &
        udpsend count=4000 gap=50000 how=timed flow=2 priority=65538 >two
        wait
        # The last was dropped: those above hear of it with one that is not.
        tc qdisc change dev sink0 parent 1:1 handle 10: apic late send
        udpsend count=1 ahead=20000000 flow=1 priority=65537 wait=100000000 >/dev/null
        patiently drained
        tc -s qdisc show dev sink0
        # Nor does the other class wait for it any more.
        udpsend count=500 size=600 how=burst flow=4 priority=65538 >four
        patiently drained
        cat one two three four $SINK/packets
        tc -s qdisc show dev sink0
        tc -s class show dev sink0
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_dropped_below_strict_ones(guest):
    """Under traffic the accounts of drr and hfsc balance, and their other class keeps sending."""
    output = guest.ok()
    print(output)
    parts = output.split("\n.\n")[:-1]
    assert len(parts) == 2
    for part in parts:
        assert int(re.search(r"dropped_late (\d+)", part)[1]) >= 500
        assert int(re.search(r"^flow 2 packets (\d+)", part, re.M)[1]) == 4000
        assert int(re.search(r"^flow 4 packets (\d+)", part, re.M)[1]) == 500
        assert len(re.findall(r" backlog 0b 0p ", part)) >= 2 * 3


@pytest.mark.guest(
    STOCK,
    BEGIN
    + STRICT
    + """
    prio() { tc qdisc replace dev sink0 root handle 1: prio; }
    htb() {
        tc qdisc replace dev sink0 root handle 1: htb default 2
        for class in 1:1 1:2; do
            tc class add dev sink0 parent 1: classid $class htb rate 1gbit
        done
    }
    echo 1 >/proc/sys/net/ipv6/conf/sink0/disable_ipv6
    backlogs() { echo $1 $(tc -s qdisc show dev sink0 | grep -o 'backlog [^ ]* [0-9]*p'); }
    dropped() { tc -s qdisc show dev sink0 | grep -q "dropped_late 100 "; }
    for parent in prio htb drr hfsc; do
        for change in "qdisc replace dev sink0 parent 1:1 handle 20: pfifo" \
                "class del dev sink0 classid 1:1"; do
            [ "$parent ${change%% *}" != "prio class" ] || continue
            $parent
            tc qdisc add dev sink0 parent 1:1 handle 10: apic mode soft rate 100bit
            # Behind the first one all others are late, and they are the last.
            udpsend count=1 size=1500 how=burst priority=65537
            udpsend count=100 batch=100 gap=1 flow=1 priority=65537 wait=1000
            echo $parent $change
            tc qdisc change dev sink0 parent 1:1 handle 10: apic rate 0bit late drop
            patiently dropped
            backlogs dropped
            tc $change
            backlogs changed
            tc qdisc del dev sink0 root
            echo .
        done
    done
    # Below a qdisc that is itself the child of a class, the next packet leaves.
    for parent in drr hfsc; do
        $parent
        tc qdisc add dev sink0 parent 1:1 handle 5: prio bands 2 priomap \
            0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
        tc qdisc add dev sink0 parent 5:1 handle 10: apic mode soft rate 100bit
        udpsend count=1 size=1500 how=burst priority=65537
        udpsend count=100 batch=100 gap=1 flow=1 priority=65537 wait=1000
        tc qdisc change dev sink0 parent 5:1 handle 10: apic rate 0bit late drop
        patiently dropped
        echo 1 >$SINK/reset
        udpsend count=3 how=burst flow=7 priority=65537
        # A class that has gone idle keeps them for ever.
        patiently grep -q "^flow 7 packets 3 " $SINK/packets || true
        echo next $parent $(grep "^flow 7" $SINK/packets)
        backlogs next
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_dropped_and_replaced(guest):
    """Parents count the last dropped packet as long as the qdisc does, not after it is gone."""
    *parts, drr, hfsc = guest.ok().split("\n.\n")[:-1]
    print(*parts, drr, hfsc, sep="\n")
    for parent, part in ("drr", drr), ("hfsc", hfsc):
        assert re.search(rf"^next {parent} flow 7 packets 3 ", part, re.M)
        assert "backlog 0b 0p backlog 0b 0p backlog 0b 0p" in part
    assert len(parts) == 7
    for part in parts:
        dropped, changed = (
            [row.split() for row in re.findall(r"backlog (\S+ \d+p)", line)]
            for line in re.findall(r"^(?:dropped|changed) (.*)$", part, re.M)
        )
        parent, *children = dropped
        assert parent in children and parent[1] == "1p"
        assert all(backlog == ["0b", "0p"] for backlog in changed)


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    for late in send drop; do
        echo 1 >$SINK/reset
        tc qdisc replace dev sink0 root apic mode $HARD late $late late_after 100ns
        # Their moments pass while they are being sent. A CPU may be held up before it drops them.
        udpsend count=100 gap=1 ahead=0 wait=1000000000
        patiently drained
        tc -s qdisc show dev sink0
        cat $SINK/packets
    done
    """
    + END,
    brief=True,
)
def test_late(guest):
    """Late packets are sent at once; or they are dropped, and each drop is reported."""
    send, drop = guest.ok().split("udpsend sent")[1:]
    assert " missed 0" in send and counts(send)["packets"] == 100
    assert dropped_late(drop, 100) > 50


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode $HARD rate 1mbit late drop
    # send BUSY AHEAD: the driver refuses one in BUSY, and a deadline is ns ahead.
    send() {
        echo $1 >$KNOBS/busy
        # At that rate they take 800 us each. A CPU may be held up before it drops them.
        udpsend count=20 batch=20 gap=1 size=100 ahead=$2 late=drop clock=tai wait=1000000000
        patiently drained
        tc -s qdisc show dev sink0
        cat $SINK/packets
        echo refusals $(cat $SINK/refusals)
        echo 1 >$SINK/reset
    }
    send 2 2000000000
    send 0 2000000000
    send 0 8000000
    """
    + END,
)
def test_deadline(guest):
    """In deadline mode a packet waits for the rate until its time, and is dropped afterwards.

    A driver that refuses it, and overwrites its time, changes nothing.
    """
    refused, far, near = guest.ok().split("udpsend sent")[1:]
    assert int(re.search(r"^refusals (\d+)$", refused, re.M)[1]) > 5
    for part in (refused, far):
        assert " missed 0" in part and " dropped_late 0 " in part
        assert counts(part)["packets"] == 20
    assert dropped_late(near, 20) > 5


@pytest.mark.long
@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    echo 1 >$KNOBS/stop
    echo 1000000 >$KNOBS/stop_us
    # The first one stops the device's queue, which wakes when all have been sent.
    udpsend count=2 how=burst flow=2 wait=1000
    echo 0 >$KNOBS/stop
    echo 1 >$SINK/reset
    udpsend count=100 batch=100 gap=1000 ahead=1000000 wait=1000000
    udpsend count=1 gap=1 ahead=0 flow=1 wait=1000
    # TCP asks for a connection. The time of that packet is now.
    echo 1 >$TRACING/events/sch_apic/sch_apic_send/enable
    busybox nc 10.9.9.2 9 </dev/null &
    # Besides the one that the first had put behind it.
    queued() { tc -s qdisc show dev sink0 | grep -q " 103p "; }
    patiently queued
    echo sent $(cat $SINK/packets)
    patiently drained
    kill $!
    echo 0 >$TRACING/events/sch_apic/sch_apic_send/enable
    grep -o "sch_apic_send: .*" $TRACING/trace
    echo >$TRACING/trace
    od -An -tu8 -w16 -v $SINK/departures |
        awk '$2 < last { n++ } { last = $2 } END { print "departures", NR, "overtook", n + 0 }'
    """
    + END,
)
def test_late_behind_late(guest):
    """A packet that is late when it is queued waits for late packets queued before it.

    So does a packet whose time is not from SO_TXTIME: TCP's, which has another length.
    """
    output = guest.ok()
    print(output)
    lengths = re.findall(r"sch_apic_send: .* len=(\d+) ", output)
    assert lengths[-1] not in lengths[:-1] and len(lengths) >= 102
    assert "sent hardirq 0 softirq 0 " in output
    assert "departures 102 overtook 0" in output


@pytest.mark.long
@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    udpsend count=1000 gap=20000-120000 >/dev/null
    for sender in "sleep 1" "udpsend count=1000 gap=1000000 clock=real flow=2"; do
        echo 1 >$SINK/reset
        udpsend count=1 ahead=8000000000 clock=real flow=1 wait=1000 >far &
        sleep 1
        date -s @$(($(date +%s) + 5)) >/dev/null
        sleep 1.5
        echo sender $($sender)
        patiently drained
        errors
        cat $SINK/packets
        kill $! 2>/dev/null || :
    done
    """
    + END,
)
def test_clock_is_set(guest):
    """A set clock is followed by the packet that waits for it, and by the packets behind it."""
    alone, behind = guest.ok().split("\nsender")[1:]
    for part, want in ((alone, 1), (behind, 1001)):
        count, least, _, _, _, most = map(int, re.search(r"^errors (.*)$", part, re.M)[1].split())
        assert count == want
        assert least >= -2 and most < STRETCH
        assert counts(part)["early"] == 0


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    # A byte in a second, for 20 packets of a hundred.
    tc qdisc add dev sink0 root apic mode hard horizon 4s
    udpsend count=20 size=100 gap=100000000000 how=pace >sent &
    sleep 0.5
    kill $!
    echo begin $(cat $SINK/packets)
    tc -s qdisc show dev sink0
    sleep 2
    echo middle $(cat $SINK/packets)
    sleep 2.5
    echo end $(cat $SINK/packets)
    """
    + END,
)
def test_slow_pace(guest):
    """A socket with a very slow pace plans each packet one second ahead, not indefinitely."""
    output = guest.ok()
    print(output)
    packets = re.findall(r"^(?:begin|middle|end) flow 0 packets (\d+) ", output, re.M)
    assert packets == ["1", "3", "5"]
    assert " dropped_horizon 15 " in output
