"""Options of the qdisc `apic`, and requests of sockets and programs, without files of their own."""

import re

import pytest
from test_shaper import BEGIN, BOTH, END, REAL, RT, STOCK, VIRTUAL, all_came, counts

# Lengths of a frame that no other packet has, and of its payload.
FRAME = 342
PAYLOAD = FRAME - 42

# traced COMMAND: prints the packets of that length that it sends.
TRACED = f"""
    traced() {{
        echo >$TRACING/trace
        echo 1 >$TRACING/events/sch_apic/enable
        "$@"
        patiently drained
        echo 0 >$TRACING/events/sch_apic/enable
        grep -o "sch_apic_[a-z]*: .* len={FRAME} .*" $TRACING/trace
        echo >$TRACING/trace
    }}
"""


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    # Each takes 80 ms. A slow machine has more than a second to send them.
    tc qdisc add dev sink0 root apic mode $HARD rate 10kbit ce_threshold 1s
    cat >mark.py <<'PY'
import socket
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.bind(("sink0", 3))
tap.settimeout(20)
for n in range(30):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2 * (n % 2))
    s.sendto(bytes([n]) + bytes(57), ("10.9.9.2", 9))
found = 0
while found < 30:
    packet = tap.recv(2048)
    if packet[23] == 17 and len(packet) == 100:
        print("packet", packet[42], packet[15])
        found += 1
PY
    python3 mark.py
    tc -s qdisc show dev sink0
    """
    + END,
    brief=True,
)
def test_ce_threshold(guest):
    """Packets that wait longer are marked if their sender knows ECN; the rest stays unchanged."""
    output = guest.ok()
    packets = [(int(n), int(tos)) for n, tos in re.findall(r"^packet (\d+) (\d+)$", output, re.M)]
    assert [n for n, _ in packets] == list(range(30))
    assert not any(tos for n, tos in packets if not n % 2)
    marks = [tos for n, tos in packets if n % 2]
    assert marks == sorted(marks) and marks[0] == 2 and marks[-1] == 3
    assert int(re.search(r" ce_marked (\d+) ", output)[1]) == marks.count(3)


@pytest.mark.guest(
    BOTH,
    BEGIN
    + """
    # 80 ms each: few leave meanwhile, even if the sender is held up.
    tc qdisc add dev sink0 root apic mode $HARD rate 10kbit flow_limit 10
    for flow in 1 2; do
        udpsend count=30 size=100 how=burst flow=$flow wait=1000
    done
    patiently drained
    tc -s qdisc show dev sink0
    # Another socket of the same process has a limit of its own, and it is one of what is queued.
    udpsend count=10 size=100 how=burst flow=3 wait=200000000
    """
    + END,
)
def test_flow_limit(guest):
    """A socket queues at most that many packets; other sockets have their own limit."""
    output = guest.ok()
    came = {int(flow): int(n) for flow, n in re.findall(r"^flow (\d+) packets (\d+)", output, re.M)}
    # One packet leaves at once, and more if the sender is delayed.
    assert 11 <= came[1] < 25 and 10 <= came[2] < 25 and came[3] == 10
    assert int(re.search(r" dropped_flow_limit (\d+) ", output)[1]) == 60 - came[1] - came[2]


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard rate 100mbit doorbell 400ns
    for ns in 400 0; do
        tc qdisc change dev sink0 root apic doorbell ${ns}ns
        udpsend count=1000 gap=20000-120000
        echo 1 >$SINK/reset
        udpsend count=1000 gap=20000-120000
        errors
        echo 1 >$SINK/reset
    done
    tc qdisc change dev sink0 root apic doorbell 400ns
    tc qdisc show dev sink0
    tc -s -j qdisc show dev sink0
    for bad in 101us -1; do
        tc qdisc change dev sink0 root apic doorbell $bad 2>&1 || :
    done
    tc qdisc show dev sink0
    """
    + END,
)
def test_doorbell(guest):
    """The driver gets each packet earlier by the time it takes to start the card."""
    output = guest.ok()
    print(output)
    early, exact = (list(map(int, row)) for row in re.findall(
        r"^errors (\d+) (-?\d+) (-?\d+) (-?\d+) ", output, re.M))  # fmt: skip
    for (n, *errors), ns in ((early, 400), (exact, 0)):
        assert n == 1000 and all(0 <= error + ns <= 8 for error in errors)
    # No packet is early or late at that moment.
    assert '"early":0,' in output.replace(" ", "")
    assert "out of range" in output and output.count(" doorbell 400ns ") == 2


@pytest.mark.guest(
    REAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode $HARD
    for n in $(seq 500); do
        echo qdisc change dev sink0 root apic doorbell 100us
        echo qdisc change dev sink0 root apic doorbell 0ns
    done >changes
    udpsend count=10000 gap=200000 ahead=1000000 >sent &
    sleep 0.05
    while tc -batch changes 2>/dev/null && [ -z "$(cat sent)" ]; do
        :
    done
    wait
    patiently drained
    cat sent
    tc -s qdisc show dev sink0
    """
    + END,
)
def test_doorbell_is_changed(guest):
    """A packet's error is computed with the doorbell at its handover, not with a later one."""
    output = guest.ok()
    print(output)
    assert " early 0 " in output


AHEAD_NS = 20_000_000
CLOCKS = ("mono", "tai", "realtime")
LEAP_SECONDS = 37

# Hand-assembled, because there is no compiler: a packet's time is a clock's time plus an offset.
EDT = f"""
import ctypes, os, struct, sys, time
clock = (time.CLOCK_MONOTONIC, time.CLOCK_TAI, time.CLOCK_REALTIME)[{CLOCKS}.index(sys.argv[1])]
# Less where it does not run in between.
offset = max(time.clock_gettime_ns(clock) - time.monotonic_ns() for n in range(100))
ahead = {AHEAD_NS} + offset
def op(code, to=0, source=0, offset=0, number=0):
    return struct.pack("<BBhI", code, to | source << 4, offset, number)
code = b"".join((
    op(0xbf, 6, 1),                     # r6 = the packet
    op(0x85, number=5),                 # r0 = bpf_ktime_get_ns()
    op(0x18, 1, number=ahead % 2**32),  # r1 = ...
    op(0, number=ahead >> 32),
    op(0x0f, 0, 1),                     # r0 += r1
    op(0x7b, 6, 0, 152),                # struct __sk_buff: tstamp = r0
    op(0xb7, 0, number=0),              # r0 = TC_ACT_OK
    op(0x95)))
text = ctypes.create_string_buffer(code, len(code))
license = ctypes.create_string_buffer(b"GPL")
path = ctypes.create_string_buffer(b"/dev/shm/bpf/" + sys.argv[1].encode())
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, *values):
    attr = ctypes.create_string_buffer(b"".join(values), 128)
    found = libc.syscall(321, command, attr, 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return found
SCHED_CLS, LOAD, PIN = 3, 5, 6
program = bpf(LOAD, struct.pack("<IIQQ", SCHED_CLS, len(code) // 8, ctypes.addressof(text),
                                ctypes.addressof(license)))
bpf(PIN, struct.pack("<QI", ctypes.addressof(path), program))
"""


@pytest.mark.guest(
    STOCK,
    BEGIN
    + TRACED
    + f"""
    for module in $SHARED/modules/cls_*.ko $SHARED/modules/*.ko; do
        insmod $module 2>/dev/null || :
    done
    mkdir -p /dev/shm/bpf
    mount -t bpf bpf /dev/shm/bpf
    cat >tai.py <<'PY'
import ctypes, struct, sys
# ADJ_TAI
value = ctypes.create_string_buffer(struct.pack("<I44xq", 0x80, int(sys.argv[1])), 208)
ctypes.CDLL(None).adjtimex(value)
PY
    cat >edt.py <<'PY'{EDT}PY
    python3 tai.py {LEAP_SECONDS}
    tc qdisc add dev sink0 root apic mode $HARD
    tc qdisc add dev sink0 clsact
    send() {{
        echo 1 >$SINK/reset
        echo part
        traced udpsend count=50 size={FRAME} how=burst wait=50000000
        tc -s qdisc show dev sink0
        cat $SINK/packets
    }}
    send
    for clock in {" ".join(CLOCKS)}; do
        python3 edt.py $clock
        tc filter del dev sink0 egress 2>/dev/null || :
        tc filter add dev sink0 egress bpf da object-pinned /dev/shm/bpf/$clock
        tc qdisc change dev sink0 root apic clock $clock
        send
    done
    # Which is not the one of the last program.
    tc qdisc change dev sink0 root apic clock tai
    send
    echo part
    tc qdisc del dev sink0 clsact
    python3 tai.py 0
    rm /dev/shm/bpf/*
    umount /dev/shm/bpf
    """
    + END,
)
def test_time_by_bpf(guest):
    """A program of clsact assigns times to packets, as those of container networks do.

    A packet does not say which clock its time is in; the qdisc's option does.
    """
    before, *after, wrong = guest.ok().split("part\n")[1:6]
    khz = int(re.search(r" tsc_khz (\d+)", before)[1])
    for part, most in ((before, 0), *((part, AHEAD_NS * khz // 10**6) for part in after)):
        ahead = [int(n) for n in re.findall(r"sch_apic_enqueue: .* ahead=(-?\d+) ", part)]
        errors = [int(n) for n in re.findall(r"sch_apic_send: .* error=(-?\d+) .* rc=0$", part,
                                             re.M)]  # fmt: skip
        print(sorted(ahead), sorted(errors))
        assert len(ahead) == len(errors) == 50
        # A packet may be late by what its conversion does not know: on a busy machine that includes
        # a wait for a CPU between two reads of a clock.
        assert max(ahead) <= most * 26 // 25
        # A packet needs some time from the program to the qdisc. On a busy machine that includes
        # waits for a CPU, which may use up all the time before its moment.
        assert sorted(ahead)[25] >= most * 3 // 4
        assert min(errors) >= 0
        assert all_came(part)["packets"] == 50
    # Their times are 37 s too early: all are late.
    assert max(int(n) for n in re.findall(r" ahead=(-?\d+) ", wrong)) <= 0


RATE = 1_000_000  # byte/s
TCP_BYTES = 500_000


@pytest.mark.guest(
    REAL,
    BEGIN
    + f"""
    ip link set lo mtu 1500 up
    tc qdisc add dev lo root apic
    echo 1 >$TRACING/events/sch_apic/sch_apic_enqueue/enable
    cat >paced.py <<'PY'
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 9000))
def receive():
    got, peer = 0, listener.accept()[0]
    while data := peer.recv(65536):
        got += len(data)
    print("took", time.monotonic() - began, "got", got)
reader = threading.Thread(target=receive)
reader.start()
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, 47, {RATE})
s.connect(("127.0.0.1", 9000))
began = time.monotonic()
s.sendall(bytes({TCP_BYTES}))
s.shutdown(socket.SHUT_WR)
reader.join()
PY
    python3 paced.py
    echo 0 >$TRACING/events/sch_apic/sch_apic_enqueue/enable
    grep -o "sch_apic_enqueue: dev=lo .*" $TRACING/trace
    echo >$TRACING/trace
    tc -s qdisc show dev lo
    tc qdisc del dev lo root
    ip link set lo mtu 65536
    """
    + END,
)
def test_paced_tcp(guest):
    """TCP plans its segments by SO_MAX_PACING_RATE, and leaves the waiting to the qdisc."""
    output = guest.ok()
    took, got = re.search(r"^took (\S+) got (\d+)$", output, re.M).groups()
    print(took, re.search(r"^qdisc(?:.|\n)*", output, re.M)[0])
    assert int(got) == TCP_BYTES
    # TCP begins with ten segments without pacing.
    assert float(took) >= 0.9 * (TCP_BYTES - 10 * 1500) / RATE
    ahead = [int(n) for n in re.findall(r" len=1514 .* ahead=(-?\d+) ", output)]
    khz = int(re.search(r" tsc_khz (\d+)", output)[1])
    # 1,448 bytes take 1.4 ms: with its own timer TCP would queue each packet at its moment.
    assert sum(n > khz for n in ahead) > 50
    assert "(dropped 0," in output


OVERHEAD = 100


@pytest.mark.guest(
    REAL,
    BEGIN
    + f"""
    cat >paced.py <<'PY'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# SO_MAX_PACING_RATE: a frame takes half a second.
s.setsockopt(socket.SOL_SOCKET, 47, {2 * FRAME})
for turn in range(2):
    for n in range(2):
        s.sendto(bytes({PAYLOAD}), ("10.9.9.2", 9))
    print("sent", flush=True)
    input()
PY
    sent() {{ [ "$(grep -c sent said)" = $1 ]; }}
    mkfifo go
    tc qdisc add dev sink0 root apic
    echo >$TRACING/trace
    echo 1 >$TRACING/events/sch_apic/sch_apic_enqueue/enable
    python3 paced.py <go >said &
    exec 3>go
    patiently sent 1
    tc qdisc change dev sink0 root apic overhead {OVERHEAD}
    echo >&3
    patiently sent 2
    echo 0 >$TRACING/events/sch_apic/sch_apic_enqueue/enable
    echo >&3
    exec 3>&-
    wait
    grep -o "sch_apic_enqueue: .* len={FRAME} .*" $TRACING/trace
    echo >$TRACING/trace
    rm go
    tc qdisc del dev sink0 root
    """
    + END,
)
def test_overhead_is_changed(guest):
    """The next packet of a socket that is being paced has the new overhead."""
    wants = [int(n) for n in re.findall(r" want=(\d+) ", guest.ok())]
    assert len(wants) == 4
    before, after = wants[1] - wants[0], wants[3] - wants[2]
    assert after / before == pytest.approx((FRAME + OVERHEAD) / FRAME, rel=1e-6)


@pytest.mark.guest(
    REAL,
    BEGIN
    + TRACED
    + f"""
    cat >stamped.py <<'PY'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# SO_TIMESTAMPING: of the driver, by software
s.setsockopt(socket.SOL_SOCKET, 37, int(sys.argv[1]) * (1 << 1 | 1 << 4))
for n in range(20):
    s.sendto(bytes({PAYLOAD}), ("10.9.9.2", 9))
PY
    tc qdisc add dev sink0 root apic mode $HARD rate 1mbit
    for stamped in 0 1; do
        echo part
        traced python3 stamped.py $stamped
    done
    """
    + END,
    brief=True,
)
def test_time_stamps(guest):
    """Packets that need the driver's timestamp leave by softirq, also in mode hard."""
    plain, stamped = (
        re.findall(r"sch_apic_send: .* mode=(\w+) rc=0$", part, re.M)
        for part in guest.ok().split("part\n")[1:]
    )
    assert len(plain) == len(stamped) == 20
    rt = guest.machine in RT
    assert plain.count("thread" if rt else "hard") > 10
    assert set(stamped) <= ({"thread", "soft"} if rt else {"soft"})


# checksums 0|1: switches the device's. The program starts before anything is queued: on a slow
# machine that takes seconds. `no_checksums` ends it.
CHECKSUMS = """
    cat >checksums.py <<'PY'
import ctypes, fcntl, socket, struct, sys
card = socket.socket()
for line in sys.stdin:
    # ETHTOOL_STXCSUM
    value = ctypes.create_string_buffer(struct.pack("<II", 0x17, int(line)), 8)
    fcntl.ioctl(card, 0x8946, struct.pack("<16sQ16x", b"sink0", ctypes.addressof(value)))
    print(line, end="", flush=True)
PY
    mkfifo wanted acks
    python3 checksums.py <wanted >acks &
    exec 3>wanted 4<acks
    checksums() {
        echo $1 >&3
        read -r _ <&4
    }
    no_checksums() {
        exec 3>&- 4<&-
        rm wanted acks
    }
"""


@pytest.mark.guest(
    REAL,
    BEGIN
    + CHECKSUMS
    + """
    checksums 1
    # later COUNT FLOW NS: COUNT more are queued.
    later() {
        queued=$((queued + $1))
        udpsend count=$1 flow=$2 batch=$1 gap=100000 ahead=$3 wait=1000 &
        senders="$senders $!"
        patiently eval 'tc -s qdisc show dev sink0 | grep -q " ${queued}p "'
    }
    queued=0 senders=
    tc qdisc add dev sink0 root apic mode $HARD
    # Those that are queued in between lack checksums, and the first stays till the end.
    checksums 0
    later 1 1 9000000000
    checksums 1
    later 100 2 6000000000
    checksums 0
    wait $senders
    patiently drained
    cat $SINK/packets
    tc -s qdisc show dev sink0
    echo unprepared $(cat $SINK/unprepared)
    # What comes after a change is prepared for it, though the queue is never empty.
    echo 1 >$SINK/reset
    queued=0
    checksums 1
    later 1 1 6000000000
    checksums 0
    echo again
    udpsend count=200 gap=1000000
    tc -s qdisc show dev sink0
    no_checksums
    """
    + END,
)
def test_features_change(guest):
    """After features change, only packets prepared for the old ones leave through the kernel."""
    output, again = guest.ok().split("again\n")
    print(output, again)
    assert counts(output)["packets"] == 101
    assert re.search(r"^unprepared 0$", output, re.M)
    stack, hard, soft, thread = (
        [int(n) for n in re.findall(rf" sent_{name} (\d+)", output + again)]
        for name in ("stack", "hard", "soft", "thread")
    )
    assert stack[0] >= 100 and stack[1] - stack[0] < 50
    # Softirq sends what is late in a handler, or in the thread.
    assert sum(ways[1] - ways[0] for ways in (hard, soft, thread)) > 100


@pytest.mark.guest(
    REAL,
    # With more than one queue the kernel takes up to eight packets at a time.
    BEGIN.replace("load apic_timer_sink", "insmod $MODULES/apic_timer_sink.ko queues=2")
    + CHECKSUMS
    + """
    echo 1 >/proc/sys/net/ipv6/conf/sink0/disable_ipv6
    echo 3 >/sys/class/net/sink0/queues/tx-0/xps_cpus
    for mode in $HARD soft thread; do
        # The first one keeps the others until the rate is lifted: then all are due.
        tc qdisc replace dev sink0 root apic mode $mode rate 100bit
        checksums 1
        echo 1 >$SINK/reset
        udpsend count=1 size=1500 how=burst flow=0
        udpsend count=20 how=burst flow=1 wait=1000
        checksums 0
        udpsend count=20 how=burst flow=2 wait=1000
        tc qdisc change dev sink0 root apic rate 0bit
        patiently drained
        echo order $(od -An -tu4 -w4 -v $SINK/flows)
        tc -s qdisc show dev sink0
    done
    no_checksums
    """
    + END,
)
def test_features_change_order(guest):
    """A packet waits while the kernel holds the ones before it, prepared for other features."""
    output = guest.ok()
    orders = re.findall(r"^order (.*)$", output, re.M)
    stack = [int(n) for n in re.findall(r" sent_stack (\d+)", output)]
    print(orders, stack)
    assert [[int(flow) for flow in order.split()] for order in orders] == 3 * [
        [0] + 20 * [1] + 20 * [2]
    ]
    # The kernel may have sent one of its own.
    assert all(after - before >= 20 for before, after in zip([0, *stack], stack, strict=False))


@pytest.mark.guest(
    STOCK,
    BEGIN
    + CHECKSUMS
    + """
    cat >validated.py <<'PY'
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
with open(sys.argv[1], "w") as knob:
    knob.write(str(s.fileno()))
for n in range(10):
    s.sendto(bytes(1000), ("10.9.9.2", 9))
print("sent", flush=True)
while not os.path.exists("done"):
    time.sleep(0.1)
PY
    tc qdisc add dev sink0 root apic mode $HARD rate 100bit
    checksums 1
    python3 validated.py $KNOBS/validate >said &
    patiently grep -q sent said
    checksums 0
    tc qdisc change dev sink0 root apic rate 0bit
    patiently drained
    echo validated $(cat $SINK/validated)
    tc -s qdisc show dev sink0
    touch done
    wait $!
    rm done
    no_checksums
    """
    + END,
)
def test_socket_that_validates(guest):
    """A socket's own function, as for TLS by the card, gets each packet once.

    For a packet that it has already encrypted, the kernel's would do that again.
    """
    output = guest.ok()
    print(output)
    assert "\nvalidated 10\n" in output
    assert int(re.search(r" sent_stack (\d+)", output)[1]) >= 10


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    # change CHANGE...: shows when the packets leave, of which the second waits at the old rate.
    change() {
        echo >$TRACING/trace
        echo 1 >$TRACING/events/sch_apic/sch_apic_send/enable
        udpsend count=2 size=1000 how=burst priority=65552
        tc "$@" rate 1gbit
        echo changed >$TRACING/trace_marker
        patiently drained
        echo 0 >$TRACING/events/sch_apic/sch_apic_send/enable
        echo part
        grep -oE "[0-9.]+: (sch_apic_send: .* len=1000 |tracing_mark_write: changed)" \
            $TRACING/trace
        echo >$TRACING/trace
    }
    tc qdisc add dev sink0 root handle 1: apic mode hard rate 8kbit
    change qdisc change dev sink0 root handle 1: apic
    tc class add dev sink0 parent 1: classid 1:10 apic rate 8kbit
    change class change dev sink0 parent 1: classid 1:10 apic
    """
    + END,
)
def test_rate_is_corrected(guest):
    """A packet that waits at a rate waits no longer than another rate has it."""
    output = guest.ok()
    print(output)
    for part in output.split("part\n")[1:]:
        rows = re.findall(r"^(\S+): (\w+): ", part, re.M)
        changed = [float(when) for when, what in rows if what == "tracing_mark_write"]
        sent = [float(when) for when, what in rows if what == "sch_apic_send"]
        assert len(changed) == 1 and len(sent) == 2
        assert sent[0] < changed[0] and sent[1] < changed[0] + 0.001


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root handle 1: apic mode hard rate 50mbit
    tc class add dev sink0 parent 1: classid 1:10 apic rate 20mbit
    # The class has had a packet before.
    udpsend count=2 size=667 how=burst priority=65552
    insmod $MODULES/apic_timer_refine.ko
    for how in "how=burst" "how=burst priority=65552" "how=pace gap=533600"; do
        # The lead is learnt first.
        udpsend count=500 size=667 $how wait=320000000
        echo 1 >$SINK/reset
        udpsend count=500 size=667 $how wait=320000000
        spacing
        echo 1 >$SINK/reset
    done
    tc -s qdisc show dev sink0
    rmmod apic_timer_refine
    """
    + END,
)
def test_refined_rate(guest):
    """Once the kernel has refined the TSC's rate, packets leave by the new one."""
    output = guest.ok()
    print(output)
    khz = int(re.search(r"tsc_khz (\d+)", output)[1])
    rows = re.findall(r"^spacing (.*)$", output, re.M)
    assert len(rows) == 3
    for row, mbit in zip(rows, (50, 20, 10), strict=True):
        count, *_, time = map(int, row.split())
        assert count == 500
        # A socket's first packet is late by its sending time. The old rate is 50,000 off.
        assert abs(time - 499 * 667 * 8 / mbit * khz / 1000) < 5000


# Payload of a packet, and of each segment it is split into; length of a segment's headers.
WHOLE, SEGMENT, HEADERS = 5000, 500, 42
SEGMENTS = WHOLE // SEGMENT


@pytest.mark.guest(
    VIRTUAL,
    BEGIN.replace("load apic_timer_sink", "insmod $MODULES/apic_timer_sink.ko gso=1")
    + f"""
    send() {{
        udpsend count=100 size={WHOLE + HEADERS} segment={SEGMENT} how=burst wait=100000000
    }}
    for split in on off; do
        tc qdisc replace dev sink0 root apic mode hard rate 50mbit split_gso $split
        # The lead is learnt first.
        send
        echo 1 >$SINK/reset
        echo 1 >$TRACING/events/sch_apic/sch_apic_send/enable
        send
        echo 0 >$TRACING/events/sch_apic/sch_apic_send/enable
        grep -o "sch_apic_send: .* len=[0-9]*" $TRACING/trace | sed 's/.*len=/len /' |
            sort | uniq -c
        echo >$TRACING/trace
        spacing
        tc -s qdisc show dev sink0
        tc qdisc del dev sink0 root
        echo .
    done
    """
    + END,
)
def test_split_gso(guest):
    """Without split_gso the driver gets a whole packet, which takes its segments' time."""
    on, off = guest.ok().split("\n.\n")[:2]
    print(on, off)
    frame = SEGMENT + HEADERS
    for part, lengths in ((on, [(100 * SEGMENTS, frame)]), (off, [(100, SEGMENTS * frame)])):
        found = re.findall(r"^ *(\d+) len (\d+)$", part, re.M)
        assert [tuple(map(int, row)) for row in found] == lengths
        assert f" Sent {200 * SEGMENTS * frame} bytes {200 * SEGMENTS} pkt " in part
        want = SEGMENTS * frame * 8 / 50 * int(re.search(r"tsc_khz (\d+)", part)[1]) / 1000
        row = re.search(r"^spacing (.*)$", part, re.M)[1]
        count, least, _, _, longest, total = map(int, row.split())
        assert count == 100
        # A stretch with interrupts disabled may make a packet late, but not the next one.
        assert want - 2000 < least <= longest < want + 2000
        assert abs(total - 99 * want) < 2000
    assert " gso_split 200 " in on and " gso_split 0 " in off


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + f"""
    tc qdisc add dev sink0 root apic mode hard rate 8kbit limit 2
    echo >$TRACING/trace
    # Newer kernels have an event for the drops of qdiscs, too.
    own=$TRACING/events/qdisc/qdisc_drop/enable
    [ -e $own ] || own=/dev/null
    echo 1 >$own
    echo 1 >$TRACING/events/skb/kfree_skb/enable
    udpsend count=1 size={WHOLE + HEADERS} segment={SEGMENT} how=burst wait=100000000
    echo 0 >$TRACING/events/skb/kfree_skb/enable
    echo 0 >$own
    grep -e ': kfree_skb: .*protocol=2048' -e ': qdisc_drop: ' $TRACING/trace
    echo >$TRACING/trace
    tc qdisc del dev sink0 root
    """
    + END,
)
def test_reason_of_drops(guest):
    """Segments that are dropped have the reason, although segmentation overwrites its place."""
    output = guest.ok()
    print(output)
    reasons = re.findall(r" kfree_skb: .* reason: (\w+)$", output, re.M)
    # The driver gives none.
    assert set(reasons) <= {"QDISC_DROP", "NOT_SPECIFIED"}
    assert reasons.count("QDISC_DROP") == SEGMENTS - 2
    if guest.machine.kernel == "7.2":
        assert len(re.findall(r" qdisc_drop: .*OVERLIMIT", output)) == SEGMENTS - 2
