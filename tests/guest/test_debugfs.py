"""The files in /sys/kernel/debug/apic_timer have the right contents."""

import re

import pytest
from machines import TABLE, some


# Bochs would take a quarter of an hour to write it to its serial port.
@pytest.mark.long
@pytest.mark.guest(
    some(engine=("smp", "virtual")),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=0 waiting=10000
    cat $DEBUG/apic_timer/pending
    unload
    """,
)
def test_ten_thousand_pending(guest):
    """Each is listed once, by CPU, in the order of expiry, with its handler's name."""
    row = re.compile(
        r"cpu (\d+): expires (\d+), in (\d+) cycles, flags 0x0, waiting_handler \[apic_timer_busy\]"
    )
    rows = [row.fullmatch(line) for line in guest.ok().splitlines()]
    assert len(rows) == 10000 and all(rows)
    places = [(int(r[1]), int(r[2])) for r in rows]
    assert places == sorted(places)
    assert {cpu for cpu, _ in places} == set(range(guest.machine.cpus))


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    load apic_timer_selftest
    echo again_and_again >$DEBUG/apic_timer_selftest/run
    rmmod apic_timer_selftest
    cat $DEBUG/apic_timer/stats
    """,
    brief=True,
)
def test_counters(guest):
    rows = [row.split() for row in guest.ok().splitlines()]
    sums = {row[0]: sum(int(n) for n in row[1:]) for row in rows if row[0] != "cpu"}
    assert sums["added"] == 100
    assert sums["expired"] == 100
    never = {"modified", "deleted", "cancelled", "migrated", "refused", "throttled"}
    if guest.machine.real_time:
        never -= {"throttled"}  # a handler appears long if the host delayed its CPU
    assert {name: sums[name] for name in never} == dict.fromkeys(never, 0)
    assert sums["interrupts"] >= 1
    assert sums["programmed"] >= 1


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    load apic_timer_selftest
    echo again_and_again >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer/errors
    for word in bogus resets reset-please-now; do
        if echo $word >$DEBUG/apic_timer/errors; then
            exit 1
        fi
    done
    echo after refusal
    cat $DEBUG/apic_timer/errors
    echo reset >$DEBUG/apic_timer/errors
    echo after reset
    cat $DEBUG/apic_timer/errors
    """,
    brief=True,
)
def test_error_histogram(guest):
    """It contains 100 shots, a malformed word changes nothing, and a reset empties it."""

    def total(table: str) -> int:
        rows = re.findall(r"^\d+\.\.\d+((?: \d+)+)$", table, re.MULTILINE)
        return sum(int(n) for row in rows for n in row.split())

    shots, rest = guest.ok().split("after refusal\n")
    refused, reset = rest.split("after reset\n")
    assert shots.splitlines()[0] == "cycles" + "".join(
        f" cpu{cpu}" for cpu in range(guest.machine.cpus)
    )
    assert total(shots) == total(refused) == 100
    assert len(reset.splitlines()) == 1


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp", source="proxy"),
    """
    unload
    load apic_timer
    load apic_timer_dev
    patiently [ -c /dev/apic_timer ]
    cd $PROGRAMS
    python3 - <<'PY'
from apic_timer import Timer
never, soon = Timer(), Timer()
never.arm(2**64 - 1)
soon.arm(soon.now() + soon.cycles(ns=3600 * 10**9))
print(open("/sys/kernel/debug/apic_timer/pending").read(), end="")
PY
    rmmod apic_timer_dev
    unload
    """,
)
def test_a_timer_for_never(guest):
    """It is as far ahead as can be printed, not overdue: apic-timer status shows the least."""
    rows = [re.search(r"expires (\d+), in (-?\d+) cycles", row) for row in guest.ok().splitlines()]
    soon, never = sorted((int(row[1]), int(row[2])) for row in rows)
    assert never == (2**64 - 1, 2**63 - 1)
    assert 0 < soon[1] < 2**50


@pytest.mark.guest(
    some(engine=("smp", "virtual")),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=0 waiting=300
    pending=$DEBUG/apic_timer/pending
    exec 3<$pending 4<$pending 5<$pending 6<$pending 7<$pending 8<$pending 9<$pending
    # Each goes on where it was, whatever is deleted meanwhile.
    dd bs=1 count=1 <&3 2>/dev/null | grep -c c
    cat $pending | wc -l
    cat $pending <$pending 2>&1 | grep -ci busy
    rmmod apic_timer_busy
    dd bs=1 count=1 <&3 2>/dev/null | grep -c p
    cat <&4 | wc -l
    exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
    unload
    """,
)
def test_eight_readers_of_pending(guest):
    """A ninth is refused; readers that stay open keep their position in the rest."""
    assert guest.ok().split() == ["1", "300", "1", "1", "0"]


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    ls $DEBUG/apic_timer
    unload
    [ ! -e $DEBUG/apic_timer ]
    """,
)
def test_files(guest):
    assert guest.ok().split() == ["errors", "info", "lead", "pending", "stats"]


@pytest.mark.guest(
    TABLE,
    """
    load apic_timer
    cat $DEBUG/apic_timer/lead
    """,
    brief=True,
)
def test_lead(guest):
    """Each CPU has its own lead, measured when it was attached."""
    row = re.compile(
        r"cpu (\d+): exact (\d+), (\d+) when the tick is stopped; "
        r"mean \d+ busy \d+ idle \d+ stopped; defer (\d+); "
        r"dispatch (\d+) exact, (\d+) plain, call (\d+), learn (\d+), at once (\d+), steps (\d+)"
    )
    rows = [row.fullmatch(line) for line in guest.ok().splitlines()]
    assert all(rows) and len(rows) >= guest.machine.cpus
    for found in rows[: guest.machine.cpus]:
        exact, stopped, defer, dispatch, plain, call, learn, at_once, steps = map(
            int, found.groups()[1:]
        )
        assert call <= 64 and call <= dispatch and at_once <= plain and learn > 0
        # Only certain costs are subtracted, so none where the TSC counts in steps. Emulated CPUs
        # take turns: if one ends during a measured call, that call takes longer than others.
        assert (call and at_once) or steps or guest.machine.cpus > 1, found.string
        assert dispatch < exact <= stopped and exact < defer
