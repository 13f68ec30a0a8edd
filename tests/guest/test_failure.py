"""Kernel calls that fail while the module loads: each error path restores the machine.

tests/modules/faults/fail.c makes the nth call of a kernel function from apic_timer fail. A case is
SYMBOL:NTH:VALUE or SYMBOL:NTH:VALUE:PARAMETERS of apic_timer; the call returns VALUE.
"""

import pytest
from machines import some

ENOMEM, ENOSPC = -12, -28
REFUSED = [
    f"register_module_notifier:1:{ENOMEM}",
    f"__cpuhp_setup_state:1:{ENOSPC}",
    f"__cpuhp_setup_state:1:{ENOSPC}:source=hrtimer",
]
LOADED = [
    # The proxy is not available, so hrtimers are used.
    f"__cpuhp_setup_state:1:{ENOSPC}:source=auto",
    # The module also works without some or all of its files.
    f"debugfs_create_dir:1:{ENOMEM}",
    *(f"debugfs_create_file:{n}:{ENOMEM}" for n in range(1, 6)),
]
LOAD = """
    unload
    before=$(tick_devices)
    set -- $(echo {case} | tr : ' ')
    insmod $MODULES/apic_timer_fail.ko symbol=$1 nth=$2 value=$3
    # Not busybox's insmod, which tries a second time by another system call.
    /usr/sbin/insmod $MODULES/apic_timer.ko source=$SOURCE $4 2>/dev/null || echo refused
    [ $(cat /sys/module/apic_timer_fail/parameters/calls) -ge $2 ]
    rmmod apic_timer_fail
"""
# It leaves nothing behind, and the next commands find the machine as it was.
AFTERWARDS = """
    [ ! -e $DEBUG/apic_timer ] && [ ! -e /sys/module/apic_timer ]
    [ "$(tick_devices)" = "$before" ]
    load apic_timer
    load apic_timer_selftest
    echo one_shot >$DEBUG/apic_timer_selftest/run
    head -n 1 $DEBUG/apic_timer_selftest/result
    unload
    [ "$(tick_devices)" = "$before" ]
"""
MACHINES = some(kernel="6.1", cpus=2, engine="smp", source="proxy")


@pytest.mark.guest(MACHINES, LOAD + AFTERWARDS, cases=lambda machine: REFUSED)
def test_refused(guest):
    assert guest.ok().splitlines() == ["refused", "ok"]


@pytest.mark.guest(
    MACHINES,
    LOAD
    + """
    load apic_timer_busy rate=200
    ran=/sys/module/apic_timer_busy/parameters/ran
    patiently eval '[ $(cat $ran) -gt 0 ]' || true
    echo ran $(cat $ran)
    unload
    """
    + AFTERWARDS,
    cases=lambda machine: LOADED,
)
def test_loads_nevertheless(guest):
    ran, again = guest.ok().splitlines()
    assert int(ran.split()[1]) > 0
    assert again == "ok"
