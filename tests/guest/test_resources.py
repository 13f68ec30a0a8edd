"""The cost of many pending timers, and the permissions of files and devices."""

import re

import pytest
from machines import some

PENDING = 100_000


@pytest.mark.long
@pytest.mark.guest(
    some(kernel=("6.1", "7.2"), cpus=1, engine="virtual", source="proxy"),
    f"""
    unload
    load apic_timer
    load apic_timer_busy rate=0
    memory() {{ awk '$1 ~ /^(MemAvailable|Slab):/ {{ print "'$1'", $1, $2 }}' /proc/meminfo; }}
    rmmod apic_timer_busy
    memory before
    load apic_timer_busy rate=2000 waiting={PENDING}
    memory pending
    echo reset >$DEBUG/apic_timer/errors
    grep -c waiting_handler $DEBUG/apic_timer/pending
    cat $DEBUG/apic_timer/errors
    rmmod apic_timer_busy
    memory after
    unload
    """,
    one=True,
)
def test_hundred_thousand_pending(guest):
    """All are shown; no exact timer is late meanwhile, so interrupts are off only briefly."""
    output = guest.ok()
    count = int(re.search(r"^(\d+)$", output, re.M)[1])
    assert count == PENDING
    rows = re.findall(r"^(-?)\d+\.\.(\d+) (\d+)$", output, re.M)
    assert sum(int(n) for _, _, n in rows) > 100
    assert not [row for row in rows if row[0]]  # early
    assert max(int(high) for _, high, _ in rows) < 4096  # cycles, and ns
    # They take only the consumer's own memory, struct apic_timer_list.
    kib = {tuple(row[:2]): int(row[2]) for row in map(str.split, output.splitlines())
           if len(row) == 3 and row[0] in ("before", "pending", "after")}  # fmt: skip
    used = kib["before", "MemAvailable:"] - kib["pending", "MemAvailable:"]
    print(f"{used * 1024 / PENDING:.0f} bytes a timer")
    assert 0 < used * 1024 / PENDING < 160
    assert kib["pending", "Slab:"] - kib["before", "Slab:"] < 512


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp", source="proxy"),
    """
    unload
    load apic_timer
    cd $DEBUG/apic_timer
    nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    for file in *; do
        nobody cat $file 2>/dev/null && echo read $file
        # Root gets as far as the file's own rules.
        [ $file = errors ] || ! (echo reset >$file) 2>/dev/null || echo written $file
    done
    for word in '' x reset2 RESET $(head -c 5000 /dev/zero | tr '\\0' r); do
        (echo "$word" >errors) 2>/dev/null && echo taken "$word"
    done
    echo reset >errors
    nobody sh -c 'echo reset >errors' 2>/dev/null && echo reset by nobody
    cd /sys/module/apic_timer/parameters
    for name in *; do
        value=$(cat $name)
        (echo 1 >$name) 2>/dev/null && echo changed $name
        [ "$(cat $name)" = "$value" ]
    done
    (echo hrtimer >source) 2>/dev/null && echo swapped
    cat source
    cd /
    unload
    for parameter in spin_budget_ns=x spin_budget_ns=-1 defer_ns=99999999999 watchdog_ms= \
            late_ns=1.5 busy_us=0x latency_qos=perhaps nosuch=1; do
        load apic_timer $parameter 2>/dev/null && echo loaded $parameter && unload
    done
    echo end
    """,
)
def test_only_root_and_only_sense(guest):
    """Only root reads or writes; malformed writes and values are rejected; nothing changes."""
    lines = guest.ok().splitlines()
    # The kernel reports an unknown parameter, and continues.
    assert lines == ["proxy", "loaded nosuch=1", "end"]
