"""How many machines run at a time, without booting one."""

import os
import subprocess
import time
from threading import Barrier, Event, get_native_id

import pytest
from lab.engines.result import Result
from machines import NICE, TABLE, Boot, Pool, Section, some


def test_one_less_until_somebody_waits():
    begun, may_end = [], {machine: Event() for machine in TABLE[:6]}

    def boot(machine, sections):
        begun.append(machine)
        assert may_end[machine].wait(60)
        return Boot(1, Result("ok", "", "", ""), None)

    def number_begun(wanted: int) -> bool:
        """Wait for so many to have begun, and then for one too many."""
        limit = time.monotonic() + 60
        while len(begun) < wanted and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(0.2)
        return len(begun) == wanted

    pool = Pool(boot, workers=3)
    pool.plan([], may_end)
    pool.start()
    try:
        assert number_begun(2)
        for machine in list(begun):
            may_end[machine].set()
        assert number_begun(4)
        pool.get(begun[0])
        assert number_begun(5)
    finally:
        for event in may_end.values():
            event.set()
        pool.close()


def test_longest_first():
    """Those not known before all others, in the order of the table."""
    begun = []

    def boot(machine, sections):
        begun.append(machine)
        return Boot(1, Result("ok", "", "", ""), None)

    one, two, three, four = TABLE[:4]
    pool = Pool(boot, workers=1, expected={one.id: 10, two.id: 30})
    pool.plan([], [one, two, three, four])
    pool.start()
    for machine in (one, two, three, four):
        pool.get(machine)
    assert begun == [three, four, two, one]
    assert sorted(boot.seconds for _, boot in pool.boots) == [1] * 4
    pool.close()


def test_virtual_time_takes_what_is_left():
    """Machines in virtual time run beside those in real time, which get a CPU at once."""
    niced, together = {}, Barrier(2, timeout=60)

    def boot(machine, sections):
        niced[machine] = os.getpriority(os.PRIO_PROCESS, get_native_id())
        child = subprocess.run(["nice"], capture_output=True, text=True, check=True)
        assert int(child.stdout) == niced[machine]
        together.wait()
        return Boot(1, Result("ok", "", "", ""), None)

    real, virtual = some(engine="smp")[0], some(engine="virtual")[0]
    pool = Pool(boot, workers=1)
    pool.plan([], [real, virtual])
    pool.start()
    for machine in (real, virtual):
        assert pool.get(machine).seconds == 1
    assert niced == {real: os.getpriority(os.PRIO_PROCESS, 0), virtual: NICE}
    pool.close()


def test_no_two_sections_of_one_name():
    """Else a test would be given what the other one's section left behind."""
    one, two = TABLE[:2]
    pool = Pool(lambda machine, sections: Boot(1, Result("ok", "", "", ""), None))
    pool.plan([Section(one, "a.test", ""), Section(one, "b.test", ""),
               Section(two, "a.test", "")], [])  # fmt: skip
    with pytest.raises(ValueError, match="two sections named a.test"):
        pool.plan([Section(one, "a.test", ""), Section(one, "a.test", "false")], [])
    pool.close()
