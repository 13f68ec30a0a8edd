"""The kernel's own time continues undisturbed while timers fire."""

import pytest
from machines import TABLE, some

BUSY = """
    unload
    load apic_timer
    load apic_timer_busy rate={rate}
"""
FIRED = """
    echo fired $(cat /sys/module/apic_timer_busy/parameters/ran)
    unload
"""
# An emulated CPU cannot serve that many when threads share its host CPU.
FAST, SLOW = BUSY.format(rate=10000), BUSY.format(rate=1000)


def numbers(output: str) -> dict[str, list[float]]:
    """Read rows of a name and numbers."""
    rows = [row.split() for row in output.splitlines()]
    return {row[0]: [float(n) for n in row[1:]] for row in rows if row}


SLEEPS = """
    echo start $(uptime)
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.1
    done
    echo end $(uptime)
"""


@pytest.mark.long
@pytest.mark.guest(some(engine="virtual"), FAST + SLEEPS + FIRED)
def test_sleeps_in_virtual_time(guest):
    """20 sleeps of 100 ms take the right time, with the start of a process each."""
    found = numbers(guest.ok())
    assert 1.99 <= found["end"][0] - found["start"][0] <= 2.2
    assert found["fired"][0] > 2 * 10_000 * 0.9


@pytest.mark.guest(some(engine="smp"), SLOW + SLEEPS + FIRED)
def test_sleeps(guest):
    found = numbers(guest.ok())
    assert 1.99 <= found["end"][0] - found["start"][0] <= 20
    assert found["fired"][0] > 100


@pytest.mark.guest(
    some(engine="smp", cpus=2), SLOW + "echo timerfd $(python3 $SHARED/timerfd.py 10 200)" + FIRED
)
def test_timerfd(guest):
    """200 ticks of 10 ms: none is extra and none is lost, however late this machine is."""
    came, took = numbers(guest.ok())["timerfd"]
    assert came >= 2000  # more if the last read found several
    assert came - 1 <= took <= 10 * came


# The clock chip counts whole seconds; the kernel's clock is read at the start of one.
CLOCKS = """
    second() {
        was=$(cat /sys/class/rtc/rtc0/since_epoch)
        while now=$(cat /sys/class/rtc/rtc0/since_epoch); [ $now -eq $was ]; do
            sleep 0.002
        done
        echo $1 $now $(uptime) $(jiffies) $(date +%s)
    }
    second start
    sleep {sleep}
    second end
"""


def drift(output: str) -> tuple[float, float, float]:
    """Return the seconds by the clock chip, by CLOCK_MONOTONIC, and by jiffies of 4 ms."""
    found = numbers(output)
    (chip, clock, jiffies, _), (chip1, clock1, jiffies1, _) = found["start"], found["end"]
    return chip1 - chip, clock1 - clock, (jiffies1 - jiffies) / 250


@pytest.mark.long
@pytest.mark.guest(some(engine="virtual"), FAST + CLOCKS.replace("{sleep}", "1") + FIRED)
def test_clocks_agree_in_virtual_time(guest):
    output = guest.ok()
    chip, clock, jiffies = drift(output)
    assert chip >= 2
    assert clock == pytest.approx(chip, abs=0.03)
    # In virtual time QEMU's HPET ticks twice each time, with and without the module.
    if not guest.machine.broadcast:
        assert jiffies == pytest.approx(chip, abs=0.03)
    assert numbers(output)["fired"][0] > chip * 10_000 * 0.9


@pytest.mark.guest(some(engine="smp", cpus=2), SLOW + CLOCKS.replace("{sleep}", "5") + FIRED)
def test_clocks_agree(guest):
    chip, clock, jiffies = drift(guest.ok())
    assert clock == pytest.approx(chip, abs=1)
    # A periodic tick that this machine is too busy to emulate is lost, with and without us.
    if not guest.machine.broadcast:
        assert jiffies == pytest.approx(clock, abs=1)


TICKS = """
    counts() {
        awk '$1 == "0:" { hpet = $2 + $3 }
             /^cpu[01] / { for (i = 2; i < 10; i++) time[$1] += $i }
             $1 == "jiffies:" { print $2, hpet, time["cpu0"] * 2.5, time["cpu1"] * 2.5; exit }' \
            /proc/interrupts /proc/stat /proc/timer_list
    }
    # Several times: the ticks of a CPU that is held up merge.
    for n in 1 2 3; do
        echo start $(counts)
        sleep 4
        echo end $(counts)
    done
"""


@pytest.mark.guest([m for m in some(engine="smp") if m.broadcast], SLOW + TICKS + FIRED)
def test_no_tick_is_lost(guest):
    """Each tick is a jiffy, and reaches both CPUs, by the same vector as our shots.

    A CPU's time, in units of 10 ms, comes from its ticks of 4 ms. While its thread is delayed,
    ticks merge, so one of several readings has to agree.
    """
    rows = [line.split() for line in guest.ok().splitlines()]
    starts, ends = ([[float(n) for n in row[1:]] for row in rows if row[0] == name]
                    for name in ("start", "end"))  # fmt: skip
    agree = []
    for start, end in zip(starts, ends, strict=True):
        jiffies, ticks, *cpus = (b - a for a, b in zip(start, end, strict=True))
        print(jiffies, ticks, *cpus)
        assert ticks > 100
        agree.append(jiffies == pytest.approx(ticks, abs=20)
                     and cpus == pytest.approx([ticks] * 2, rel=0.1))  # fmt: skip
    assert any(agree)
    assert numbers(guest.output)["fired"][0] > 100


IDLE = """
    unload
    sleep 1
    echo without $(ticks)
    sleep 10
    echo without_end $(ticks)
    load apic_timer
    load apic_timer_busy rate=0 waiting=100
    sleep 1
    echo with $(ticks)
    sleep 10
    echo with_end $(ticks)
    unload
    """


@pytest.mark.guest(some(engine="virtual"), IDLE)
def test_idle_stays_idle(guest):
    """Distant timers do not wake an idle CPU: interrupts are about as many as without the module.

    The kernel's own work adds 20, in one window or the other. A check of ours every 100 ms would
    add 100.
    """
    found = numbers(guest.ok())
    for cpu in range(guest.machine.cpus):
        without = found["without_end"][cpu] - found["without"][cpu]
        attached = found["with_end"][cpu] - found["with"][cpu]
        print(f"cpu {cpu}: {without:g} interrupts in 10 s of idling, with us {attached:g}")
        assert attached <= without + 50


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    load apic_timer_busy rate=1000
    served() {
        awk -v source=$SOURCE '
            $1 == "expired" { for (i = 2; i <= NF; i++) if ($i <= 20) exit 1 }
            $1 == "kernel_events" && source == "proxy" {
                for (i = 2; i <= NF; i++) if ($i == 0) exit 1
            }' $DEBUG/apic_timer/stats
    }
    patiently served || true
    cat $DEBUG/apic_timer/stats
    unload
    """,
    brief=True,
)
def test_both_are_served(guest):
    """On every CPU both timers and the kernel's events ran."""
    rows = [row.split() for row in guest.ok().splitlines()]
    stats = {row[0]: [int(n) for n in row[1:]] for row in rows}
    assert stats["cpu"] == list(range(guest.machine.cpus))
    assert all(n > 20 for n in stats["expired"])
    if guest.machine.source == "proxy":
        assert all(n > 0 for n in stats["kernel_events"])
