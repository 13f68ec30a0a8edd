"""The tests that pytest leaves out without --matrix."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import test_boot
import test_calendar
import test_clock_trust
import test_handover
import test_kernel_selftests
import test_owners
import test_package
import test_sleep
from guests import QUICK, QUICK_BRIEF
from lab.kernels import kernels
from machines import TABLE, Machine

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]
# Tests for several kernels that skip the newest one without --matrix.
LONG_ON_7_2 = ("test_account", "test_timeout", "test_demo", "test_idle", "test_busy",
               "test_thrifty", "test_clock", "test_at_a_time", "test_kernel_finish",
               "test_better_than_nanosleep",
               "test_starve_thread", "test_starve_softirq", "test_starve_interrupts",
               "test_starve_tick", "test_starve_irq_work", "test_install", "test_plug_in_for_tc",
               "test_consumer", "test_dkms_consumer", "test_uninstall_leaves_nothing",
               "test_clean", "test_program")  # fmt: skip
# Tests that run only on the first of their machines without --matrix.
ONE = ("test_bounded", "test_instruments", "test_top_takes_less_than_a_hundredth_of_a_cpu",
       "test_trace", "test_nothing_is_lost", "test_hundred_thousand_pending",
       "test_edges", "test_shaper_is_emptied", "test_many_shapers", "test_cost",
       "test_together")  # fmt: skip
FIRST = "6.1-2cpu-proxy"  # the first real-time machine with two CPUs
MACHINES = [*TABLE, *test_sleep.MACHINES, *test_clock_trust.TRUSTED.values()]


@pytest.fixture(scope="module")
def chosen(tmp_path_factory) -> dict[str, set[str]]:
    """Return the guest and lab tests that pytest would run, by choice."""
    output = tmp_path_factory.mktemp("selections") / "found"
    argv = [sys.executable, TESTS / "harness/selections.py", output, TESTS / "guest", TESTS / "lab"]
    done = subprocess.run(argv, cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return {choice: {test.split("::", 1)[1] for test in tests}
            for choice, tests in json.loads(output.read_text()).items()}  # fmt: skip


@pytest.fixture(scope="module")
def short(chosen) -> set[str]:
    return chosen["short"]


@pytest.fixture(scope="module")
def matrix(chosen) -> set[str]:
    return chosen["matrix"]


def takes_long(test: str) -> bool:
    """Tell whether a test needs --matrix on any machine."""
    name, _, case = test.rstrip("]").partition("[")
    later = kernels.SUPPORTED[1:]
    long_cases = {
        **dict.fromkeys(LONG_ON_7_2, ["7.2"]),
        "test_same_results": test_kernel_selftests.LONG,
        "test_successor": [f"{way}-{series}" for way in test_handover.WAYS for series in later],
        "test_fuzz": ["1000000", "500000"],
        "test_so_txtime": ["thread"],
    }
    return (
        name in ("test_off_and_on_500_times", "test_load_2000_times_under_load")
        or name
        in (
            "test_debian_own",
            "test_pending_while_off",
            "test_common_time_begins_anew",
            "test_packets_while_off",
            "test_calendar_while_off",
            "test_demo_shapes",
            "test_doorbells",
            "test_all_arrive",
            "test_none_twice",
            "test_what_is_known_is_said",
            "test_without_the_lab",
            "test_signaltest",
            "test_stress_ng",
            "test_repeats",
            "test_the_same_bytes",
            "test_after_make_install",
            "test_injected",
            "test_converted",
            "test_written",
            "test_four_together",
            "test_ring_of_three",
            "test_written_while_trusted",
            "test_preload_and_verdicts",
            "test_repeats_however_often_qemu_is_woken",
            "test_pause_is_cheap_and_changes_nothing",
            "test_verdicts_of_a_good_machine",
            "test_pins",
            "test_next_to_the_kernels_own",
            "test_disabled_counter",
            "test_two_cpus_start_together",
            "test_torture",
            "test_mean_without_tick",
        )
        or name in ("test_our_cases", "test_their_cases", "test_pace_a_udp_stream")
        or name in ("test_kernel_with_checks", "test_stops", "test_without_high_resolution")
        or name in ("test_whole_report", "test_tsc_by_its_msr", "test_a_million_pending")
        or (hasattr(test_package, name) and case == "trixie")
        or hasattr(test_owners, name)
        or (name in ONE and case != QUICK.id)
        or (name == "test_off_and_on_30_times" and case != FIRST)
        or (
            name == "test_calendar_rule"
            and case.rpartition("-")[2] in test_calendar.ONCE
            and FIRST not in case
        )
        or case in long_cases.get(name, [])
    )


@functools.cache
def owner(test: str) -> str:
    """Return the id of a test's machine; some ids begin with another machine's id."""
    case = test.partition("[")[2].rstrip("]")
    return max((m.id for m in MACHINES if f"{case}-".startswith(f"{m.id}-")), key=len, default="")


def of(tests: set[str], machine: Machine) -> set[str]:
    """List the tests that run in a machine."""
    return {test for test in tests if owner(test) == machine.id}


@pytest.mark.parametrize("line", range(len(TABLE)))
def test_machines(short, matrix, line):
    """A machine runs all tests with --matrix; without, slow machines run a part or none."""
    machine = TABLE[line]
    whole, part = of(matrix, machine), of(short, machine)
    assert f"test_comes_to_its_end[{machine.id}]" in whole
    if machine.matrix:
        assert not part
    elif machine.brief:
        assert f"test_source_and_hardware[{machine.id}]" in part
        assert f"test_all_events[{machine.id}]" in whole - part
    else:
        assert part == {test for test in whole if not takes_long(test)}


def test_nothing_else_is_left_out(short, matrix):
    assert short < matrix
    slow = [machine for machine in MACHINES if machine.matrix or machine.brief]
    expected = set().union(*(of(matrix - short, machine) for machine in slow))
    expected |= {f"test_parameter[{m.id}]" for m in test_boot.MACHINES if m.matrix}
    expected |= {test for test in matrix if takes_long(test)}
    assert matrix - short == expected


def test_quick(short, matrix, chosen):
    """Quick runs most tests of a virtual-time machine, and a slow machine's tests in real time."""
    quick = chosen["quick"]
    assert quick < short
    in_guests = {test for test in quick if owner(test)}
    assert {owner(test) for test in in_guests} == {QUICK.id, QUICK_BRIEF.id}
    for machine in (QUICK, QUICK_BRIEF):
        assert f"test_comes_to_its_end[{machine.id}]" in quick
    whole, taken = of(short, QUICK), of(quick, QUICK)
    assert taken == whole - chosen["long"]
    assert len(taken) > 0.75 * len(whole)
    slow = next(machine for machine in TABLE if machine.brief and machine.kernel == "7.2")
    briefly = {test.replace(slow.id, QUICK_BRIEF.id) for test in of(short, slow)}
    both = briefly & of(short, QUICK_BRIEF)
    assert both - chosen["long"] <= of(quick, QUICK_BRIEF) < of(short, QUICK_BRIEF)
    assert len(both) > 50


def test_quick_boots_nothing_else(chosen):
    """Tests that boot their own guests take too long; the two machines run next to the rest."""
    rest = {test for test in chosen["quick"] if not owner(test)}
    for name in ("test_sections_are_shared_out", "test_budget", "test_this_tree"):
        assert name in rest
    names = {test.partition("[")[0] for test in rest}
    assert not names & {"test_a_panic_is_shown", "test_install", "test_successor"}
