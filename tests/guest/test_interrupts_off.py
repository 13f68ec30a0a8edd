"""How long interrupts are off in the module, with any number of timers: faults/train.c."""

import re

import pytest
from machines import some

# To the handler of a raw shot that interrupts a thread, and the time allowed, in cycles.
PATH, LIMIT = 600, 2000

# The kernel prints with interrupts off.
BEGIN = """
    unload
    printk=$(cat /proc/sys/kernel/printk)
    echo 1 >/proc/sys/kernel/printk
    load apic_timer
    module=/sys/module/apic_timer
    load apic_timer_train text=$(cat $module/sections/.text) text_size=$(cat $module/coresize)
    train=/sys/module/apic_timer_train/parameters
    tell() {
        echo "$* $(cat $train/worst) $(cat $train/shots)" $(cat $train/where)
        echo 0 >$train/worst
        echo 0 >$train/shots
    }
    """
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
    """Interrupts that a module has off are found, and for how long."""
    rows = [list(map(int, row.split()[1:4])) for row in guest.ok().splitlines()]
    assert [cycles for cycles, _, _ in rows] == [500, 2500, 5000]
    for cycles, worst, shots in rows:
        assert shots > 50
        assert 0.9 * cycles < worst < cycles + PATH + 200


@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    BEGIN
    + """
    for apart in 0 1000; do
        for count in 10 1000 100000 1000000; do
            insmod $MODULES/apic_timer_crowd.ko count=$count apart=$apart
            tell add $apart $count
            if [ $count -le 100000 ]; then
                cat $DEBUG/apic_timer/pending >/dev/null
                tell pending $apart $count
            fi
            rmmod apic_timer_crowd
            tell cancel $apart $count
        done
    done
    """
    + END,
    one=True,
)
def test_bounded(guest):
    """Reading "pending" and cancelling, of equal timers and others, up to a million."""
    rows = re.findall(r"^(\w+) (\d+) (\d+) (\d+) (\d+)(?: .*)?$", guest.ok(), re.MULTILINE)
    print(guest.output)
    assert len(rows) == 2 * (3 * 4 - 1)
    for what, apart, count, worst, shots in rows:
        assert int(worst) < PATH + LIMIT, (what, apart, count)
        # Where it takes its time, there were shots.
        assert int(count) < 100_000 or int(shots) > 500, (what, apart, count)
