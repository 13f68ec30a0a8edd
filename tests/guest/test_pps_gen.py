"""samples/pps_gen: each edge at its moment, none missing, and clear words for bad input."""

import re

import pytest
from machines import some

EDGES = re.compile(r"^(\w+) (\w+) edges (\d+) missed (\d+) earliest (-?\d+) latest (-?\d+)$", re.M)


@pytest.mark.long
@pytest.mark.guest(
    some(engine="virtual", cpus=1, source="proxy"),
    """
    load apic_timer
    load apic_clock
    for bad in "" "io=0x378 line=rts" "io=0x378 clock=boottime" "io=0x378 period_ns=1000" \\
            "io=0x378 width_ns=999999999" "io=0x60"; do
        insmod $MODULES/pps_gen_apic.ko $bad 2>/dev/null && echo accepted "$bad"
    done
    parameters=/sys/module/pps_gen_apic/parameters
    for load in idle busy; do
        for clock in realtime tai; do
            [ $load = idle ] || { while :; do :; done & }
            insmod $MODULES/pps_gen_apic.ko io=0x378 clock=$clock period_ns=10000000
            sleep 1.2
            text="$load $clock"
            for name in edges missed earliest latest; do
                text="$text $name $(cat $parameters/$name)"
            done
            # At any moment, in a pulse perhaps.
            rmmod pps_gen_apic
            [ $load = idle ] || kill $!
            echo "$text"
        done
    done
    for i in 1 2 3 4 5 6 7 8 9 10; do
        insmod $MODULES/pps_gen_apic.ko io=0x378 period_ns=200000 width_ns=100000
        sleep 0.01$i
        rmmod pps_gen_apic
    done
    # Half a period early, from each tenth of a second: what is the first edge?
    for i in 1 2 3 4 5 6 7 8; do
        insmod $MODULES/pps_gen_apic.ko io=0x378 offset_ns=-500000000
        sleep 1.1
        echo "early $(cat $parameters/edges) $(cat $parameters/latest)"
        rmmod pps_gen_apic
    done
    insmod $MODULES/pps_gen_apic.ko io=0x378 period_ns=10000000
    date -s "@$(($(date +%s) + 10))" >/dev/null
    sleep 0.2
    echo "set $(cat $parameters/missed)"
    rmmod pps_gen_apic
    date -s "@$(($(date +%s) - 10))" >/dev/null
    log | grep pps_gen_apic
    """,
    one=True,
)
def test_edges(guest):
    output = guest.ok()
    print(output)
    assert "accepted" not in output
    for words in ("which port?", "neither strobe nor dtr", "neither realtime nor tai",
                  "out of range", "belong to another driver"):  # fmt: skip
        assert words in output
    rows = EDGES.findall(output)
    assert len(rows) == 4
    for load, clock, edges, missed, earliest, latest in rows:
        assert 100 <= int(edges) <= 125, (load, clock)
        assert int(missed) == 0, (load, clock)
        # From the handler's first instruction to the port's write.
        assert 0 <= int(earliest) <= int(latest), (load, clock)
        assert int(latest) - int(earliest) <= 5, (load, clock)
    early = re.findall(r"^early (\d+) (-?\d+)$", output, re.M)
    assert len(early) == 8
    for edges, latest in early:
        assert int(edges) >= 1
        assert 0 <= int(latest) <= 200
    (missed,) = re.findall(r"^set (\d+)$", output, re.M)
    # date cuts the fraction of a second off.
    assert 890 <= int(missed) <= 1010
