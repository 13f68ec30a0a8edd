"""Each call of the interface works as documented: tests/modules/selftest/*.c, a result per case."""

import re
from pathlib import Path

import pytest
from machines import TABLE, Machine, some

SOURCES = Path(__file__).resolve().parents[1] / "modules/selftest"


def declared() -> dict[str, int]:
    """Read the names of cases and the CPUs that each needs from the sources."""
    found = {}
    for source in sorted(SOURCES.glob("*.c")):
        text = source.read_text()
        for kind, case, cpus in re.findall(r"^\tCASE(\w*)\((\w+)(?:, (\d))?\),$", text, re.M):
            assert case not in found, f"two cases are called {case}"
            found[case] = int(cpus or {"": 1, "_SMP": 2}[kind])
    return found


CASES = declared()


def cases(machine: Machine) -> list[str]:
    """List the cases for which a machine has enough CPUs."""
    return [case for case, cpus in CASES.items() if cpus <= machine.cpus]


def cases_that_judge(machine: Machine) -> list[str]:
    """List the cases that give a verdict. "cost" only measures: test_cost judges.

    The end of a fence can be judged only if the CPU is neither delayed nor slow. In virtual time,
    machines with one CPU run the cases that need no other.
    """
    never = {"cost"} if machine.engine == "virtual" else {"cost", "fence"}
    if machine.engine == "virtual" and machine.cpus > 1 and not machine.matrix:
        never |= {case for case, cpus in CASES.items() if cpus == 1}
    return [case for case in cases(machine) if case not in never]


@pytest.mark.guest(
    TABLE,
    """
    load apic_timer
    load apic_timer_selftest
    echo {case} >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    """,
    cases=cases_that_judge,
    brief=True,
)
def test_case(guest):
    verdict, *notes = guest.ok().splitlines()
    assert verdict == "ok"
    print("\n".join(notes))


@pytest.mark.guest(
    some(engine="smp", kernel=("6.1", "7.2"), cpus=2, source="proxy"),
    """
    load apic_timer
    load apic_timer_selftest
    echo 1 >$TRACING/events/apic_timer/apic_timer_mod/enable
    echo pending_while_modified >$DEBUG/apic_timer_selftest/run
    echo 0 >$TRACING/events/apic_timer/apic_timer_mod/enable
    echo >$TRACING/trace
    cat $DEBUG/apic_timer_selftest/result
    """,
)
def test_pending_while_modified(guest):
    """The same takes longer, and shows more to another CPU, if the change is traced."""
    assert guest.ok().splitlines()[0] == "ok"


@pytest.mark.guest(
    TABLE,
    """
    load apic_timer
    load apic_timer_selftest
    cat $DEBUG/apic_timer_selftest/cases
    """,
)
def test_all_cases_are_known(guest):
    assert sorted(guest.ok().split()) == sorted(cases(guest.machine))


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    cat $DEBUG/apic_timer/info
    """,
    brief=True,
)
def test_source_and_hardware(guest):
    """The machine is what the table says; otherwise the other results are meaningless."""
    rows = [row for row in guest.ok().splitlines() if row.startswith("cpu ")]
    assert len(rows) == guest.machine.cpus
    mode = "TSC-deadline" if guest.machine.engine == "bochs" else "one-shot"
    hardware = f"{mode} LAPIC timer, {'x2APIC' if guest.machine.x2apic else 'xAPIC'}"
    if guest.machine.source == "hrtimer":
        hardware = "kernel hrtimers"
    for cpu, row in enumerate(rows):
        assert row.startswith(f"cpu {cpu}: source {guest.machine.source}, {hardware}, TSC ")


@pytest.mark.guest(
    some(kernel=("6.1", "7.2", "6.1-patched"), engine="smp", cpus=2),
    """
    unload
    load apic_timer watchdog_ms=0
    load apic_timer_selftest
    echo masked_for_long >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result $DEBUG/apic_timer/stats
    unload
    """,
)
def test_without_watchdog(guest):
    """A stopped timer stays stopped; only another interrupt may serve what is due."""
    verdict, note, *stats = guest.ok().splitlines()
    assert verdict == "ok"
    assert note == ("ran meanwhile" if guest.machine.broadcast else "did not run")
    assert [line.split()[1:] for line in stats if line.startswith("hw_dead ")] == [["0", "0"]]


@pytest.mark.guest(
    some(engine="smp", cpus=4),
    """
    unload
    load apic_timer watchdog_ms=1
    load apic_timer_selftest
    echo late_among_watchers >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    unload
    """,
)
def test_watchers_are_many(guest):
    """CPUs that find another late call it, but no two of them at once."""
    verdict, note = guest.ok().splitlines()
    assert verdict == "ok"
    assert int(note.split()[1]) > 0


@pytest.mark.guest(
    some(engine="virtual", cpus=2, kernel="6.1"),
    """
    unload
    load apic_timer watchdog_ms=5
    load apic_timer_selftest
    echo masked_again_and_again >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result $DEBUG/apic_timer/stats
    log | grep 'was stopped or masked'
    unload
    """,
    brief=True,
)
def test_log_is_not_flooded(guest):
    """Firmware that stops the timer repeatedly causes a few lines, which have the count.

    A stop is found when the timer is overdue by a watchdog period, at the next check.
    """
    verdict, note, *rest = guest.ok().splitlines()
    assert verdict == "ok"
    assert int(note.split()[2]) < 12_000
    (lost,) = [line.split()[2] for line in rest if line.startswith("hw_dead ")]
    report = re.compile(r"CPU 1: .*was stopped or masked.*\((\d+) times so far\)")
    told = [report.search(line) for line in rest]
    times = [int(found[1]) for found in told if found]
    assert int(lost) >= 40
    assert 0 < len(times) <= 20
    assert times == sorted(set(times))


@pytest.mark.long
@pytest.mark.guest(
    some(engine="virtual"),
    """
    load apic_timer
    load apic_timer_selftest
    echo cost >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    """,
    one=True,
)
def test_cost(guest):
    """A call's cost does not depend on the number of pending timers. Cycles are instructions."""
    rows = re.findall(r"^(\w+), (\d+) pending: apic_timer (\d+) .* hrtimer \d+ ", guest.ok(), re.M)
    print(guest.output)
    mean = {(name, int(pending)): int(value) for name, pending, value in rows}
    names = {name for name, _ in mean}
    assert set(mean) == {(name, 10**n) for name in names for n in (0, 1, 2, 3, 5, 6)}
    assert names >= {"add", "add_new_head", "modify", "delete_recent", "delete_old", "expiry"}
    # Timers that stay pending are sorted, which takes a search.
    sorting = {"add_to_stay"}
    assert all(mean[name, 10**6] < 1.3 * mean[name, 1] for name in names - sorting)
    assert all(mean[name, 10**6] < 2 * mean[name, 1000] for name in sorting)


@pytest.mark.guest(
    some(engine="virtual", cpus=2),
    """
    load apic_timer
    load apic_timer_selftest
    echo every_cpu_to_every_cpu >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    """,
    brief=True,
)
def test_other_cpus_are_told(guest):
    """A timer armed for an idle CPU is on time there, not at that CPU's next interrupt."""
    (late,) = re.findall(r"^latest by (\d+) cycles$", guest.ok(), re.MULTILINE)
    assert int(late) < 100_000
