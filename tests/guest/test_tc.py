"""tc's plug-in for the qdisc `apic`: printed options can be typed, and bad values are rejected."""

import json
import re

import pytest
from machines import some

VIRTUAL = some(cpus=1, source="proxy", engine="virtual")
OLDEST = some(kernel="6.1", cpus=1, source="proxy", engine="virtual", compiler="gcc")

BEGIN = """
    unload
    load apic_timer
    load sch_apic
    load apic_timer_sink
    ip link set sink0 up
    ip addr add 10.9.9.1/24 dev sink0
"""

# Options, and some of the values that "tc -j" prints for them.
ROUND = {
    "": {"rate": 0, "mode": "auto", "cpu": "any", "horizon": 10**10, "limit": 10000},
    "rate 50mbit": {"rate": 50_000_000},
    "rate 1": {"rate": 1},
    "rate 1.5gbit burst 15k overhead -14": {"rate": 1_500_000_000, "burst": 15_360,
                                            "overhead": -14},
    "rate 1tbit burst 128m overhead 24": {"rate": 10**12, "burst": 2**27, "overhead": 24},
    "rate 6mbps": {"rate": 48_000_000},
    "rate 1234567bit": {"rate": 1_234_567},
    "mode soft cpu 0": {"mode": "soft", "cpu": 0, "mode_now": "soft"},
    "mode hard": {"mode": "hard", "mode_now": "hard"},
    "clock tai late drop late_after 20us": {"clock": "tai", "late": "drop", "late_after": 20_000},
    "horizon 1.5s beyond cap": {"horizon": 1_500_000_000, "beyond": "cap"},
    "limit 1 flow_limit 100 order flow": {"limit": 1, "flow_limit": 100, "order": "flow"},
    "pacing off ce_threshold 5ms split_gso off": {"pacing": "off", "ce_threshold": 5_000_000,
                                                  "split_gso": "off"},
    "doorbell 400ns": {"doorbell": 400},
    "ce_threshold 1ns late_after 0": {"ce_threshold": 1, "late_after": 0},
}  # fmt: skip

# Printed options, without the parts in parentheses, are typed again.
TYPED = """
    typed() { tc qdisc show dev sink0 | sed 's/.*refcnt [0-9]* //; s/ ([a-z]*)//; s/ *$//'; }
    again() {
        tc qdisc replace dev sink0 root handle 1: apic $1
        echo "case $1"
        first=$(typed)
        echo "first $first"
        tc -j qdisc show dev sink0
        echo
        tc qdisc del dev sink0 root
        tc qdisc add dev sink0 root handle 1: apic $first
        echo "second $(typed)"
        tc qdisc del dev sink0 root
    }
"""


@pytest.mark.long
@pytest.mark.guest(
    VIRTUAL, BEGIN + TYPED + "".join(f"    again '{words}'\n" for words in ROUND) + "    unload\n"
)
def test_round_trip(guest):
    """The output of `tc qdisc show` can be typed again, and `tc -j` has the values as numbers."""
    cases = guest.ok().split("\ncase ")[0:]
    cases = [part.removeprefix("case ") for part in cases if "first " in part]
    assert len(cases) == len(ROUND)
    for (words, wanted), part in zip(ROUND.items(), cases, strict=True):
        assert part.split("\n")[0] == words
        first, second = (
            re.search(rf"^{name} (.*)$", part, re.M)[1] for name in ("first", "second")
        )
        assert first and first == second
        ((found,),) = ([q for q in json.loads(line) if q["kind"] == "apic"]
                       for line in part.splitlines() if line.startswith("[{"))  # fmt: skip
        options = found["options"]
        assert {name: options[name] for name in wanted} == wanted


# Errors of the plug-in itself, which has not asked the kernel.
BAD = {
    "rate 50mbits": 'apic: rate: "50mbits" is not a rate such as 50mbit',
    "rate -1": 'apic: rate: "-1" is not a rate such as 50mbit',
    "rate 0.5": 'apic: rate: "0.5" is not a rate such as 50mbit',
    "rate 99999999999999999999": 'apic: rate: "99999999999999999999" is not a rate such as 50mbit',
    "rate 2tbit": "apic: rate: 2tbit is out of range: 0bit to 1099511627776bit",
    "rate": "apic: rate needs a value",
    "rate 1mbit rate 2mbit": "apic: rate is given twice",
    "burst 134217729": "apic: burst: 134217729 is out of range: 0b to 134217728b",
    "overhead 256": "apic: overhead: 256 is out of range: -64 to 255",
    "overhead -65": "apic: overhead: -65 is out of range: -64 to 255",
    "mode fast": 'apic: mode: "fast" is not one of auto|hard|soft|thread',
    "cpu one": 'apic: cpu: "one" is not the number of a CPU, or any',
    "clock utc": 'apic: clock: "utc" is not one of mono|tai|realtime',
    "late_after 11s": "apic: late_after: 11s is out of range: 0ns to 10s",
    "horizon 10min": 'apic: horizon: "10min" is not a time such as 100us',
    "horizon 999ns": "apic: horizon: 999ns is out of range: 1us to 1000s",
    "ce_threshold 1001s": "apic: ce_threshold: 1001s is out of range: 0ns to 1000s",
    "limit 0": "apic: limit: 0 is out of range: 1 to 4294967295",
    "doorbell 101us": "apic: doorbell: 101us is out of range: 0ns to 100us",
    "split_gso maybe": 'apic: split_gso: "maybe" is not one of off|on',
    "quantum 3": 'apic: unknown option "quantum"; see "tc qdisc add dev X root apic help"',
}  # fmt: skip

REFUSED = """
    refused() {
        echo "case $1"
        ! tc qdisc change dev sink0 root handle 1: apic $1
    }
    tc qdisc add dev sink0 root handle 1: apic rate 3mbit limit 77
    tc qdisc show dev sink0
"""


@pytest.mark.guest(
    OLDEST,
    BEGIN
    + REFUSED
    + "".join(f"    refused '{words}'\n" for words in BAD)
    # Errors of the kernel, about limits that only it knows.
    + """
    refused 'cpu 4000'
    echo "case mode hard"
    ! tc qdisc add dev lo root apic mode hard
    echo "case end"
    tc qdisc show dev sink0
    unload
    """,
)
def test_values_that_are_refused(guest):
    """Each bad value gives one line with the expected values, and changes nothing."""
    before, *cases, after = guest.ok().split("case ")
    assert after.removeprefix("end\n") == before[before.index("qdisc apic") :]
    assert "rate 3Mbit" in before and "limit 77" in before
    found = dict(case.rstrip("\n").split("\n", 1) for case in cases)
    for words, line in BAD.items():
        assert found[words] == line
    for words in ("cpu 4000", "mode hard"):
        assert re.fullmatch(r"Error: [^\n]+", found[words]), found[words]


@pytest.mark.guest(
    OLDEST,
    BEGIN
    + """
    (
        export TC_LIB_DIR=/nowhere
        ! tc qdisc add dev sink0 root apic rate 50mbit
        tc qdisc add dev sink0 root apic
        tc qdisc show dev sink0
    )
    tc qdisc show dev sink0
    unload
    """,
)
def test_without_the_plug_in(guest):
    """Without the plug-in, tc behaves as docs/howto/install.md describes."""
    output = guest.ok()
    assert 'Unknown qdisc "apic", hence option "rate" is unparsable' in output
    assert re.search(r"qdisc apic .*\[Unknown qdisc, optlen=\d+\]", output)
    assert "rate 0bit" in output


@pytest.mark.guest(
    VIRTUAL,
    BEGIN
    + """
    tc qdisc add dev sink0 root apic mode hard
    udpsend count=50 gap=100000
    echo @json
    tc -s -j qdisc show dev sink0
    echo
    echo @text
    tc -s -d qdisc show dev sink0
    tc qdisc add dev sink0 root apic help 2>&1 | head -n 1 || :
    unload
    """,
)
def test_statistics(guest):
    """JSON has all counters; a terminal gets percentiles of the errors."""
    output = guest.ok()
    data, text = output.split("@json\n")[1].split("@text\n")
    (found,) = (q for q in json.loads(data) if q["kind"] == "apic")
    assert found["packets"] == 50
    assert found["sent_hard"] + found["sent_soft"] == 50
    assert found["sent_hard"] >= 45
    assert sum(found["errors"]) == 50
    assert found["tsc_khz"] > 900_000
    assert re.search(r"^  sent_hard \d+ sent_soft \d+", text, re.M)
    assert re.search(
        r"^  error in TSC cycles, at most: p50 \d+ p99 \d+ p99.9 \d+ max \d+", text, re.M
    )
    assert "Usage: ... apic [OPTION VALUE]..." in text
