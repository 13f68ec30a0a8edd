"""The module keeps interrupts off only briefly, with any number of timers: faults/train.c."""

import re

import pytest
from machines import some
from test_shaper import BEGIN as SINK
from test_shaper_classes import FIRST, SECOND

# To the handler of a raw shot that interrupts a thread, and the time allowed, in cycles.
PATH, LIMIT = 600, 2000

# The kernel prints with interrupts off.
WATCH = """
    printk=$(cat /proc/sys/kernel/printk)
    echo 1 >/proc/sys/kernel/printk
    load apic_timer_train text=$(cat $module/sections/.text) text_size=$(cat $module/coresize)
    train=/sys/module/apic_timer_train/parameters
    tell() {
        echo "$* $(cat $train/worst) $(cat $train/shots)" $(cat $train/where)
        echo 0 >$train/worst
        echo 0 >$train/shots
    }
    """
BEGIN = (
    """
    unload
    load apic_timer
    module=/sys/module/apic_timer
    """
    + WATCH
)
END = """
    rmmod apic_timer_train
    unload
    echo "$printk" >/proc/sys/kernel/printk
    """


@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    BEGIN
    + """
    for cycles in 500 2500 5000; do
        echo 0 >$train/worst
        echo $cycles >$train/off
        tell off $cycles
    done
    """
    + END,
)
def test_it_is_noticed(guest):
    """Periods with interrupts off in a module are found, with their length."""
    rows = [list(map(int, row.split()[1:4])) for row in guest.ok().splitlines()]
    assert [cycles for cycles, _, _ in rows] == [500, 2500, 5000]
    for cycles, worst, shots in rows:
        assert shots > 50
        assert 0.9 * cycles < worst < cycles + PATH + 200


@pytest.mark.long
@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    BEGIN
    + """
    for apart in 0 1000; do
        for count in 10 1000 100000; do
            insmod $MODULES/apic_timer_crowd.ko count=$count apart=$apart
            tell add $apart $count
            cat $DEBUG/apic_timer/pending >/dev/null
            tell pending $apart $count
            rmmod apic_timer_crowd
            tell cancel $apart $count
        done
    done
    """
    + END,
    one=True,
)
def test_bounded(guest):
    """Adding, reading "pending" and cancelling are bounded, with equal or different expiries, up to
    100,000."""
    rows = re.findall(r"^(\w+) (\d+) (\d+) (\d+) (\d+)(?: .*)?$", guest.ok(), re.MULTILINE)
    print(guest.output)
    assert len(rows) == 2 * 3 * 3
    for what, apart, count, worst, shots in rows:
        assert int(worst) < PATH + LIMIT, (what, apart, count)
        # Long operations were sampled by shots.
        assert int(count) < 100_000 or int(shots) > 500, (what, apart, count)


# To an interrupt by the kernel's timers.
EVENT = 400


@pytest.mark.long
@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="virtual", source="proxy"),
    BEGIN
    + """
    rmmod apic_timer_train
    cpu=/sys/devices/system/cpu/cpu1/online
    for apart in 0 1000; do
        taskset 2 insmod $MODULES/apic_timer_train.ko kernel=1 \\
            text=$(cat $module/sections/.text) text_size=$(cat $module/coresize)
        for cycles in 500 2500 5000; do
            echo 0 >$train/worst
            taskset 2 sh -c "echo $cycles >$train/off"
            tell off $apart $cycles
        done
        insmod $MODULES/apic_timer_crowd.ko count=100000 apart=$apart cpu=1
        echo 0 >$train/worst
        echo 0 >$train/shots
        echo 0 >$cpu
        tell migrate $apart 0
        grep -i migrated $DEBUG/apic_timer/stats
        echo 1 >$cpu
        rmmod apic_timer_crowd apic_timer_train
    done
    load apic_timer_train
    """
    + END,
    brief=True,
)
def test_a_cpu_goes_offline(guest):
    """While 100,000 timers migrate, their new CPU waits for a lock for at most that long."""
    output = guest.ok()
    print(output)
    rows = [list(map(int, row)) for row in
            re.findall(r"^off (\d+) (\d+) (\d+) (\d+)(?: .*)?$", output, re.M)]  # fmt: skip
    assert len(rows) == 6
    for _, cycles, worst, shots in rows:
        assert shots > 50
        assert 0.8 * cycles < worst < cycles + EVENT, cycles
    rows = re.findall(r"^migrate (\d+) 0 (\d+) (\d+) (.*)\nmigrated +0 +(\d+)$", output, re.M)
    assert [int(migrated) for *_, migrated in rows] == [100_000, 200_000]
    for apart, worst, shots, *_ in rows:
        assert int(worst) < EVENT + LIMIT, apart
        assert int(shots) > 2000


@pytest.mark.matrix
@pytest.mark.guest(
    some(kernel="6.1", cpus=1, engine="virtual", source="proxy"),
    BEGIN
    + """
    for apart in 0 1000; do
        insmod $MODULES/apic_timer_crowd.ko count=1000000 apart=$apart
        tell add $apart
        echo lines $(wc -l <$DEBUG/apic_timer/pending)
        tell pending $apart
        rmmod apic_timer_crowd
        tell cancel $apart
    done
    """
    + END,
)
def test_a_million_pending(guest):
    """With a million timers, interrupts are off no longer than with ten."""
    output = guest.ok()
    print(output)
    lines = re.findall(r"^lines (\d+)$", output, re.M)
    assert len(lines) == 2 and all(int(n) >= 1_000_000 for n in lines)
    rows = re.findall(r"^(add|pending|cancel) (\d+) (\d+) (\d+)(?: .*)?$", output, re.M)
    assert len(rows) == 2 * 3
    for what, apart, worst, shots in rows:
        assert int(worst) < PATH + LIMIT and int(shots) > 500, (what, apart)


@pytest.mark.long
@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    SINK
    + f"""
    # Two thousand packets, of a low rate and of times that are far. Nothing shoots meanwhile.
    queued() {{
        tc qdisc replace dev sink0 root handle 1: apic rate 1kbit
        tc class replace dev sink0 parent 1: classid 1:10 apic rate 1kbit limit 5000
        tc class replace dev sink0 parent 1: classid 1:20 apic rate 1kbit limit 5000
        {{
            udpsend count=1000 size=100 how=burst flow=1 wait=1000 priority=$1
            udpsend count=1000 batch=1000 gap=100 ahead=900000000 flow=2 wait=1000 priority=$1
        }} >/dev/null
    }}
    # Run a command, and tell how late a shot was, and what was queued before and after it.
    watch() {{
        what=$1
        shift
        module=/sys/module/sch_apic
        before=$(packets)
        {WATCH}
        "$@"
        tell $what
        rmmod apic_timer_train
        echo packets $before $(packets)
    }}
    packets() {{
        tc -s qdisc show dev sink0 | awk '/backlog/ {{ n = $3 + 0 }} END {{ print n + 0 }}'
    }}
    queued 0
    watch qdisc tc qdisc del dev sink0 root
    queued {FIRST}
    watch classes tc qdisc del dev sink0 root
    queued {FIRST}
    watch class tc class del dev sink0 classid 1:10
    queued {SECOND}
    watch other tc class del dev sink0 classid 1:10
    tc qdisc del dev sink0 root
    unload
    echo "$printk" >/proc/sys/kernel/printk
    """,
    one=True,
)
def test_shaper_is_emptied(guest):
    """Emptying a qdisc, or a class, with many packets is bounded."""
    output = guest.ok()
    print(output)
    packets = re.findall(r"^packets (\d+) (\d+)$", output, re.M)
    assert all(int(before) > 1900 for before, _ in packets)
    assert [int(after) > 1900 for _, after in packets] == [False, False, False, True]
    assert [int(after) for _, after in packets[:3]] == [0, 0, 0]
    rows = re.findall(r"^(qdisc|classes|class|other) (\d+) (\d+)(?: .*)?$", output, re.M)
    assert [what for what, _, _ in rows] == ["qdisc", "classes", "class", "other"]
    for what, worst, shots in rows:
        assert int(worst) < PATH + LIMIT, what
        # Emptying the trees takes long enough.
        assert int(shots) > 5 or what == "other", what


QDISCS = 250
# With interrupts off, an irq_work makes the kernel wake a worker, cycles.
WAKE = 6000


@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    SINK.replace("load apic_timer_sink", f"insmod $MODULES/apic_timer_sink.ko queues={QDISCS}")
    + f"""
    tc qdisc replace dev sink0 root handle 1: mq
    for i in $(seq {QDISCS}); do
        printf 'qdisc add dev sink0 parent 1:%x apic rate 1mbit\\n' $i
    done >many
    tc -batch many
    echo qdiscs $(tc qdisc show dev sink0 | grep -c " apic ")
    insmod $MODULES/apic_timer_refine.ko
    # What is far is looked at again.
    udpsend count=1 ahead=9000000000 clock=real wait=1000 >/dev/null &
    module=/sys/module/sch_apic
    {WATCH}
    clock=$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $TRACING/trace_clock)
    echo x86-tsc >$TRACING/trace_clock
    # A command, how late a shot was, and for how long interrupts were off for an irq_work.
    follow() {{
        sleep 0.1
        tell idle
        echo 1 >$TRACING/events/irq_vectors/irq_work_entry/enable
        echo 1 >$TRACING/events/irq_vectors/irq_work_exit/enable
        "$@" >/dev/null
        sleep 0.1
        echo 0 >$TRACING/events/irq_vectors/enable
        tell $1
        awk '/irq_work_entry/ {{ split($0, part, /: /); sub(/.* /, "", part[1]); t = part[1] }}
             /irq_work_exit/ {{ split($0, part, /: /); sub(/.* /, "", part[1]); n++
                               if (part[1] - t > most) most = part[1] - t }}
             END {{ print "irq_work", n + 0, most + 0 }}' $TRACING/trace
        echo >$TRACING/trace
    }}
    follow date -s @$(($(date +%s) + 1))
    follow rmmod apic_timer_refine
    kill $!
    rmmod apic_timer_train
    echo $clock >$TRACING/trace_clock
    unload
    echo "$printk" >/proc/sys/kernel/printk
    """,
    one=True,
)
def test_many_shapers(guest):
    """Setting a clock and refining a rate are bounded, with hundreds of qdiscs that follow."""
    output = guest.ok()
    print(output)
    assert f"qdiscs {QDISCS}" in output
    rows = re.findall(r"^(date|rmmod) (\d+) (\d+)(?: .*)?\nirq_work (\d+) (\d+)$", output, re.M)
    assert [what for what, *_ in rows] == ["date", "rmmod"]
    for what, worst, shots, works, longest in rows:
        assert int(worst) < PATH + LIMIT and int(longest) < WAKE, what
        # It takes long, with interrupts on in between.
        assert int(shots) > 5 and int(works) > 0, what
