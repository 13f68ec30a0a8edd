"""The number of machines that run at once is right; nothing is booted."""

import os
import subprocess
import time
from threading import Barrier, Event, get_native_id

import machines
import pytest
from lab.base.errors import LabError
from lab.engines.result import Result
from machines import NICE, TABLE, Boot, Pool, Section, Share, guarded, share_out, some


def nothing(machines):
    """Build nothing."""


def only(pool: Pool, machine):
    """Wait for a machine's only boot."""
    (share,) = pool.shares(machine)
    return pool.get(share)


def test_one_less_until_somebody_waits():
    begun, may_end = [], {machine: Event() for machine in TABLE[:6]}

    def boot(machine, sections):
        begun.append(machine)
        assert may_end[machine].wait(60)
        return Boot(1, Result("ok", "", "", ""), None)

    def number_begun(wanted: int) -> bool:
        """Wait until that many have begun, and a while longer for one too many."""
        limit = time.monotonic() + 60
        while len(begun) < wanted and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(0.2)
        return len(begun) == wanted

    pool = Pool(boot, workers=3, prepare=nothing)
    pool.plan([], may_end)
    pool.start()
    try:
        assert number_begun(2)
        for machine in list(begun):
            may_end[machine].set()
        assert number_begun(4)
        only(pool, begun[0])
        assert number_begun(5)
    finally:
        for event in may_end.values():
            event.set()
        pool.close()


def test_longest_first():
    """Unknown ones come before all others, in the order of the table."""
    begun = []

    def boot(machine, sections):
        begun.append(machine)
        return Boot(1, Result("ok", "", "", ""), None)

    one, two, three, four = TABLE[:4]
    pool = Pool(boot, workers=1, expected={one.id: 10, two.id: 30}, prepare=nothing)
    pool.plan([], [one, two, three, four])
    pool.start()
    for machine in (one, two, three, four):
        only(pool, machine)
    assert begun == [three, four, two, one]
    assert sorted(boot.seconds for _, boot in pool.boots) == [1] * 4
    pool.close()


def test_virtual_time_takes_what_is_left():
    """Machines in virtual time run next to those in real time, which get a CPU at once."""
    niced, together = {}, Barrier(2, timeout=60)

    def boot(machine, sections):
        niced[machine] = os.getpriority(os.PRIO_PROCESS, get_native_id())
        child = subprocess.run(["nice"], capture_output=True, text=True, check=True)
        assert int(child.stdout) == niced[machine]
        together.wait()
        return Boot(1, Result("ok", "", "", ""), None)

    real, virtual = some(engine="smp")[0], some(engine="virtual")[0]
    pool = Pool(boot, workers=1, prepare=nothing)
    pool.plan([], [real, virtual])
    pool.start()
    for machine in (real, virtual):
        assert only(pool, machine).seconds == 1
    assert niced == {real: os.getpriority(os.PRIO_PROCESS, 0), virtual: NICE}
    pool.close()


def test_all_is_built_before():
    """The build is immediate and not niced: tests that need the same modules wait for it."""
    done = []

    def boot(machine, sections):
        done.append(machine)
        return Boot(1, Result("ok", "", "", ""), None)

    def prepare(every):
        time.sleep(0.5)
        done.append((set(every), os.getpriority(os.PRIO_PROCESS, get_native_id())))

    wanted = [some(engine="virtual")[0], some(engine="smp")[0]]
    pool = Pool(boot, workers=2, prepare=prepare)
    pool.plan([], wanted)
    pool.start()
    for machine in wanted:
        only(pool, machine)
    assert done[0] == (set(wanted), os.getpriority(os.PRIO_PROCESS, 0))
    assert set(done[1:]) == set(wanted)
    pool.close()


def test_what_cannot_be_built_is_left_to_its_machine(monkeypatch):
    built = []

    def build(kernel, compiler):
        built.append((kernel, compiler))
        if kernel == "6.1":
            raise LabError("no such thing")

    monkeypatch.setattr(machines.patched, "find", lambda name: name)
    monkeypatch.setattr(machines.build, "build", build)
    monkeypatch.setattr(machines.tool, "tool", lambda: built.append("apic-timer"))
    every = some(kernel=("6.1", "7.2"))
    scripts = {machine: [Section(machine, "test", "$TOOL status")] for machine in every}
    machines.prepare(scripts)
    assert built == [("6.1", "clang"), ("6.1", "gcc"), ("7.2", "gcc"), "apic-timer"]


def test_nothing_is_begun_for_no_machine():
    """For example if only tests run that boot no machine."""
    prepared = []
    pool = Pool(nothing, workers=2, prepare=prepared.append)
    pool.plan([], [])
    for _ in range(3):
        pool.start()
    pool.close()
    assert prepared == []


def test_no_two_sections_of_one_name():
    """Otherwise a test would get the outcome of the other one's section."""
    one, two = TABLE[:2]
    pool = Pool(lambda machine, sections: Boot(1, Result("ok", "", "", ""), None))
    pool.plan([Section(one, "a.test", ""), Section(one, "b.test", ""),
               Section(two, "a.test", "")], [])  # fmt: skip
    with pytest.raises(ValueError, match="two sections named a.test"):
        pool.plan([Section(one, "a.test", ""), Section(one, "a.test", "false")], [])
    pool.close()


@pytest.mark.parametrize("status", [0, 3])
def test_section_waits_for_what_it_started(status):
    """Otherwise it would write into the output of the next one."""
    parts = [Section(TABLE[0], "first", f"(sleep 0.3; echo first) &\n(exit {status})"),
             Section(TABLE[0], "second", "echo second")]  # fmt: skip
    script = "".join(f"{guarded(part)}echo $?\n" for part in parts)
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    want = ["first", "0"] if not status else ["3"]
    assert ran.stdout.split()[: len(want) + 2] == [*want, "second", "0"]


BUSY = next(machine for machine in TABLE if machine.boots > 1)
MANY = [Section(BUSY, f"test_{number}", "true") for number in range(40)]


def lengths(shares, seconds) -> list[float]:
    return [sum(seconds[section.name] for section in share.sections) for share in shares]


def test_sections_are_shared_out():
    """Each runs once, in order, and the boots end at about the same time."""
    seconds = {section.name: 1.0 for section in MANY} | {"test_7": 30.0}
    shares = share_out(BUSY, MANY, seconds)
    assert len(shares) == BUSY.boots == 2
    assert lengths(shares, seconds) == [35, 34]
    for share in shares:
        assert share.machine is BUSY
        assert list(share.sections) == [s for s in MANY if s in share.sections]
    assert sorted(s.name for share in shares for s in share.sections) == sorted(
        section.name for section in MANY
    )
    # Unknown sections count as average ones: 10 s here.
    shares = share_out(BUSY, MANY, {"test_0": 10, "gone": 10})
    assert [len(share.sections) for share in shares] == [20, 20]
    more = [Section(BUSY, f"test_{number}", "true") for number in range(200)]
    assert [len(share.sections) for share in share_out(BUSY, more, {})] == [100, 100]


def test_one_boot_is_enough():
    """For a machine limited to one; and where there is little or nothing to do."""
    seconds = {section.name: 100.0 for section in MANY}
    other = next(machine for machine in TABLE if machine.boots == 1)
    few = {section.name: 0.4 for section in MANY}
    for machine, sections, known in ((other, MANY, seconds), (BUSY, MANY, few),
                                     (BUSY, MANY[:2], {}), (BUSY, [], seconds)):  # fmt: skip
        assert share_out(machine, sections, known) == [Share(machine, tuple(sections))]


def test_each_share_is_a_boot():
    """They begin in order of their own lengths, and outcomes are found in the right one."""
    begun = []

    def boot(machine, sections):
        begun.append((machine, [section.name for section in sections]))
        text = "".join(f"@begin@ {s.name}\n@end@ {s.name} 0\n" for s in sections)
        return Boot(7, Result("ok", text, "", ""), None)

    other, short = [m for m in TABLE if m.boots == 1 and not m.real_time][:2]
    pool = Pool(boot, workers=1, prepare=nothing,
                expected={BUSY.id: 100, other.id: 60, short.id: 40},
                took={BUSY.id: {section.name: 1.0 for section in MANY}})  # fmt: skip
    pool.plan(MANY, [other, short])
    pool.start()
    for section in MANY:
        share = pool.share(section)
        assert section in share.sections
        assert pool.get(share).outcome(section).status == 0
    for machine in (other, short):
        only(pool, machine)
    assert [machine for machine, _ in begun] == [other, BUSY, BUSY, short]
    assert sorted(begun[1][1] + begun[2][1]) == sorted(section.name for section in MANY)
    assert {m: [b.seconds for b in boots] for m, boots in pool.ended().items()} == {
        BUSY: [7, 7], other: [7], short: [7],
    }  # fmt: skip
    # A failed section runs alone, in a second boot that was not planned.
    pool.again(pool.share(MANY[5]), MANY[5])
    assert begun[4] == (BUSY, ["test_5"])
    assert len(pool.boots) == 5 and len(pool.ended()[BUSY]) == 2
    pool.close()
