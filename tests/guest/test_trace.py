"""The trace events show what happens, in tracefs and with the real trace-cmd."""

import re

import pytest
from machines import some

# How trace-cmd reads the events depends on the kernel, and it takes seconds of a guest.
TRACED = some(cpus=1, engine="virtual", source="proxy")
TRACED += some(kernel=("6.1", "6.1-debug", "6.1-rt", "7.2-rt"), cpus=2, engine="smp",
               source="proxy")  # fmt: skip


@pytest.mark.guest(
    TRACED,
    """
    load apic_timer
    load apic_timer_selftest
    cd /tmp
    # It loses everything when its recorders, one a CPU, have not begun before it ends.
    cat >shot.sh <<'EOF'
for n in $(seq 100); do
    [ $(ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c trace_pipe_raw) -lt $CPUS ] || break
    sleep 0.2
done
echo recorders $(ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c trace_pipe_raw)
sleep 1
echo one_shot >$DEBUG/apic_timer_selftest/run
sleep 1
EOF
    export CPUS DEBUG
    trace-cmd record -e apic_timer -o one_shot.dat sh shot.sh >record.log 2>&1
    cat $DEBUG/apic_timer_selftest/result
    trace-cmd report -i one_shot.dat
    cat record.log
    rm one_shot.dat record.log shot.sh
    """,
    brief=True,
)
def test_one_shot_from_init_to_exit(guest):
    """All of its events appear, in order, each with its figures."""
    report = guest.ok()
    assert report.splitlines()[0] == "ok"
    print("\n".join(row for row in report.splitlines() if "apic_timer_" in row))
    assert int(re.search(r"^recorders (\d+)$", report, re.MULTILINE)[1]) >= guest.machine.cpus
    # This case has only one timer, the one that is initialised.
    init = re.search(r"apic_timer_init: +timer=(\S+)", report)
    assert init, report
    timer = re.escape(init[1])
    stages = [
        rf"apic_timer_init: +timer={timer}",
        rf"apic_timer_add: +timer={timer} function=selftest_shot_handler\S* expires=(\d+) cpu=0 ",
        rf"apic_timer_expire_entry: +timer={timer} function=selftest_shot_handler\S* "
        r"expires=(\d+) now=\d+",
        rf"apic_timer_expire_exit: +timer={timer} function=selftest_shot_handler\S* cycles=\d+",
        rf"apic_timer_receipt: +timer={timer} function=selftest_shot_handler\S* expires=(\d+) "
        r"entry=(\d+) ready=(\d+) now=(\d+) error=(-?\d+) spin=(-?\d+) lead=(\d+) delta=(\d+) "
        r"deferred=\d+ smi=0 mode=exact cpu_state=(?:busy|idle|stopped)$",
    ]
    if guest.machine.engine == "virtual":
        # Where times mean nothing, a kernel interrupt may arrive when the timer is already due.
        stages.insert(2, r"apic_timer_program: +target=\d+ now=\d+ delta=\d+ value=0x")
    at, values = 0, []
    for stage in stages:
        found = re.compile(stage, re.MULTILINE).search(report, at)
        assert found, f"{stage} is not there, or not in order"
        at = found.end()
        values += [int(n) for n in found.groups()]
    expires, expired, receipt, entry, ready, now, error, spin, lead, delta = values
    assert expires == expired == receipt
    assert entry < ready < now
    assert error == now - expires >= 0
    assert spin == now - ready
    if guest.machine.engine == "virtual":
        assert error < 100
        assert lead > now - entry
        assert delta > 0


@pytest.mark.guest(
    some(cpus=(1, 2)),
    """
    unload
    load apic_timer
    load apic_timer_selftest
    cd $TRACING/events/apic_timer/apic_timer_receipt
    for key in common_cpu function.sym error; do
        echo "hist:keys=$key" >trigger
        echo again_and_again >$DEBUG/apic_timer_selftest/run
        cat hist
        echo "!hist:keys=$key" >trigger
    done
    """,
    brief=True,
)
def test_histograms_by_trigger(guest):
    """Histograms by CPU, by handler and by error each contain all of 100 shots."""
    cpu, function, error = guest.ok().split("# event histogram\n")[1:]
    assert re.search(r"\{ common_cpu: +0 \} hitcount: +100$", cpu, re.MULTILINE)
    assert re.search(r"selftest_shot_handler.* \} hitcount: +100$", function, re.MULTILINE)
    errors = re.findall(r"\{ error: +(-?\d+) \} hitcount: +(\d+)$", error, re.MULTILINE)
    assert sum(int(hits) for _, hits in errors) == 100
    assert all(int(value) >= 0 for value, _ in errors)


@pytest.mark.guest(
    some(kernel=("6.1", "7.2"), cpus=1, source="proxy", engine="virtual"),
    """
    load apic_timer
    # Expiries come a little earlier in each period of the tick.
    load apic_timer_busy rate=20011 work=20
    dd if=/dev/zero of=/dev/null bs=1 2>/dev/null &
    cd $TRACING
    echo >trace
    for event in defer kernel_event; do
        echo 1 >events/apic_timer/apic_timer_$event/enable
    done
    sleep 0.5
    echo 0 >events/enable
    kill $!
    { wait $! || :; } 2>/dev/null
    sed -n 's/.*apic_timer_\\(defer\\|kernel_event\\): .*=\\(-*[0-9]*\\)$/\\1 \\2/p' trace
    unload
    """,
)
def test_kernel_events_behind_an_expiry(guest):
    """Both events have the time from when it was due to when it is served, after the handler."""
    rows = [(name, int(late)) for name, late in map(str.split, guest.ok().splitlines())]
    assert all(late >= 0 for _, late in rows)
    pairs = [(row, rows[i + 1]) for i, row in enumerate(rows[:-1]) if row[0] == "defer"]
    assert len(pairs) > 5
    assert all(after == ("kernel_event", late) for (_, late), after in pairs)


@pytest.mark.guest(
    some(cpus=(1, 2)),
    """
    load apic_timer
    ls $TRACING/events/apic_timer
    """,
)
def test_all_events(guest):
    verbs = """init add mod del cancel migrate program expire_entry expire_exit receipt
               kernel_event defer hw_dead throttle epoch source_attach source_detach"""
    there = set(guest.ok().split()) - {"enable", "filter"}
    assert there == {f"apic_timer_{verb}" for verb in verbs.split()}


@pytest.mark.guest(
    some(kernel=("6.1", "7.2"), cpus=1, source="proxy", engine="virtual"),
    """
    load apic_timer
    load apic_timer_selftest
    cd $TRACING
    echo >trace
    echo 'msr == 0x34' >events/msr/read_msr/filter
    echo 1 >events/msr/read_msr/enable
    echo 1 >events/apic_timer/apic_timer_receipt/enable
    echo again_and_again >$DEBUG/apic_timer_selftest/run
    echo 0 >events/enable
    echo shots $(grep -c apic_timer_receipt: trace) reads $(grep -c read_msr: trace || :)
    """,
)
def test_receipt_reads_no_register_in_vain(guest):
    """Where SMIs are not counted, each read of their number would be a fault or a VM exit."""
    assert guest.ok().split() == ["shots", "100", "reads", "0"]
