"""/dev/apic_calendar: windows in virtual time, rules in guests with Python, and calendar files."""

import errno
import inspect
import os
import re
import struct
import subprocess
from collections import Counter
from pathlib import Path

import calendar_rules
import pytest
from lab.bench import calendar_goals, rows
from lab.build import build, user
from lab.engines import virtual
from lab.kernels import kernels
from lab.run import calendar, demo_calendar, together
from machines import some

TREE = Path(__file__).resolve().parents[2]
CASES = ("node", "namespace", "numbered", "rights", "memory", "paged", "delivered", "many",
         "structures", "refused", "runs", "switched", "told", "parked", "policies", "outlasted",
         "spared", "lent", "repaid", "announced", "adrift", "asleep", "restarted", "reported",
         "renewed", "vacated", "degraded", "recovered", "notified", "closes", "leaves", "stopped",
         "killed", "succeeded", "executed", "undisturbed", "died", "handled", "preempted",
         "abandoned", "resigned", "halted", "pinned", "unhindered", "traced", "crashed",
         "filtered", "begot", "replaced", "strayed", "owned", "closed", "everywhere", "unstable",
         "shifted", "tai", "restored", "offline", "departed", "hurried", "sleeps", "syscall",
         "torture", "forgotten", "unfinished", "unload")  # fmt: skip
# Rules of the module's own logic, which is the same on each kernel.
ONCE = ("paged", "delivered", "switched", "told", "outlasted", "spared", "announced", "adrift",
        "restarted", "reported", "renewed", "vacated", "degraded", "recovered", "undisturbed",
        "died", "handled", "traced", "crashed", "replaced", "strayed", "owned", "closed",
        "departed", "hurried")  # fmt: skip
CHECKED = ("6.1-debug", "6.1-kcsan")  # kernels with run-time checks
RULED = some(kernel=("6.1", "7.2", *CHECKED, "6.1-rt", "7.2-rt"), cpus=2, engine="smp",
             source="proxy")  # fmt: skip
MANY_CPUS = some(cpus=4, engine="smp", source="proxy")
RULED += [machine for machine in MANY_CPUS if machine.kernel in ("6.12", "7.2")]
SECTION = """
    unload
    load apic_timer late_ns=5000000
    load apic_calendar allow_unstable=1
    load apic_calendar_pulse
    patiently [ -c /dev/apic_calendar ]
    rule calendar_rules {case}
    unload
"""
LOAD = "".join(f"insmod $MODULES/{name}.ko\n" for name in demo_calendar.MODULES)
UNLOAD = "".join(f"rmmod {name}\n" for name in reversed(demo_calendar.MODULES))
CYCLES = 1000


def test_every_rule_is_run():
    """Each rule of harness/calendar_rules.py is run: here, or in test_clock_trust.py."""
    rules = {
        name for name, rule in inspect.getmembers(calendar_rules, inspect.isfunction)
        if rule.__module__ == calendar_rules.__name__
        and rule.__annotations__.get("return", "") is None
        and all(p.default is not p.empty for p in inspect.signature(rule).parameters.values())
    }  # fmt: skip
    parts = {"acted", "skipped"}  # of "policies"
    others = {"torture_long", "marked", "marked_before_start", "marked_before_armed"}
    assert rules - parts - others == set(CASES)


def cases_of(machine) -> tuple[str, ...]:
    """Return the rules for a machine; kernels that the lab builds lack some features."""
    lacking = ("notified", "leaves", "memory", "paged", "delivered", "numbered", "shifted")
    lacking = lacking if machine.kernel in CHECKED else ()
    # There a unit that spins keeps its tracer waiting until its window is over.
    lacking += ("traced",) * machine.kernel.endswith("-rt")
    # One CPU goes offline, another one is kept busy, and the rest has to do all else.
    lacking += ("unhindered",) * (machine.cpus < 3)
    return tuple(case for case in CASES if case not in lacking)


@pytest.mark.long(but=("rights", "refused", "stopped", "killed"))
@pytest.mark.guest(RULED, SECTION, cases=cases_of, brief=True, one=ONCE)
def test_calendar_rule(guest):
    print(guest.ok())


@pytest.mark.matrix
@pytest.mark.guest(
    [*MANY_CPUS, *some(kernel="6.1-debug", source="proxy")],
    SECTION, cases=lambda _: ("torture_long",),
)  # fmt: skip
def test_torture(guest):
    """Run random tables and switches for minutes."""
    print(guest.ok())


@pytest.mark.guest(
    some(kernel=CHECKED, cpus=2, engine="smp", source="proxy"),
    f"""
    unload
    load apic_timer
    load apic_calendar allow_unstable=1
    load apic_calendar_pulse
    (cd "{TREE}" && gcc {" ".join(user.FLAGS)} -o /dev/shm/fuzz tests/user/fuzz_calendar.c)
    for seed in 1 2 3; do
        /dev/shm/fuzz 30000 $seed 2 others & /dev/shm/fuzz 30000 1$seed 2 others
        wait $!
    done
    unload
    """,
)
def test_fuzz_checked(guest):
    """Run two fuzzers at a time, on kernels with run-time checks."""
    guest.ok()


def run_programs(command: str, files: dict[str, Path], timeout: int = 300,
                 series: str = "6.1") -> str:  # fmt: skip
    """Run programs in virtual time, with the modules; return their output."""
    kernel = kernels.ensure(series)
    built = build.build(kernel)
    pending = "grep -c . /sys/kernel/debug/apic_timer/pending || true\n"
    result = virtual.run(
        kernel, f"{LOAD}{command}\n{pending}{UNLOAD}",
        modules=[build.find_ko(built, name) for name in demo_calendar.MODULES], timeout=timeout,
        files={f"usr/bin/{name}": file for name, file in files.items()},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-2000:]}"
    return result.output


@pytest.mark.parametrize("series", ["6.1", pytest.param("7.2", marks=pytest.mark.matrix)])
def test_program(series):
    """A 64-bit and a 32-bit program load a table, run in its windows, and read their receipts."""
    kernel = kernels.ensure(series)
    files = {f"first{bits}": user.program(kernel, "first_calendar", *["-m32"] * (bits == 32))
             for bits in (64, 32)}  # fmt: skip
    output = run_programs("first64 64\nfirst32 32", files, series=series)
    assert output.count("ok\n") == 2 and output.endswith("ok\n0\n")


@pytest.mark.parametrize("operations", [10_000, pytest.param(500_000, marks=pytest.mark.matrix)])
def test_fuzz(operations):
    """Random commands have the outcomes that a model predicts, and leave nothing pending."""
    seeds = (1, 2) if operations > 100_000 else (1,)
    runs = "\n".join(f"fuzz_calendar {operations} {seed} 1" for seed in seeds)
    files = {"fuzz_calendar": user.program(kernels.ensure("6.1"), "fuzz_calendar")}
    assert run_programs(runs, files, timeout=3000).split()[-1] == "0"


def run_most_units(script: str, load: str = LOAD, cpu: int = 0) -> str:
    """Run a script in virtual time, with a calendar of the maximum number of units on a CPU."""
    kernel = kernels.ensure("6.1")
    built = build.build(kernel)
    units = [f"u{i}" for i in range(64)]
    table = "".join(f"unit {unit} cpu {cpu} thread toil\n" for unit in units)
    table += "table all major 4ms\n"
    table += "".join(f"at {100 + 50 * i}us run {u} for 20us\n" for i, u in enumerate(units))
    modules = [*demo_calendar.MODULES, "apic_timer_train", "apic_timer_slow_off"]
    result = virtual.run(
        kernel, f"{load}{script}{UNLOAD}", cpus=cpu + 1,
        modules=[build.find_ko(built, name) for name in modules], timeout=300,
        files={"usr/bin/calendar": user.program(kernel, "calendar"),
               "all.calendar": table.encode()},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-2000:]}"
    print(result.output[-5000:])
    return result.output


def test_interrupts_off():
    """Starting and stopping the maximum number of units never disables interrupts for long."""
    output = run_most_units(
        """
        module=/sys/module/apic_calendar
        train=/sys/module/apic_timer_train/parameters
        insmod $MODULES/apic_timer_train.ko text=$(cat $module/sections/.text) \
            text_size=$(cat $module/coresize)
        for i in 1 2 3; do
            calendar /all.calendar 2 >/dev/null
        done
        echo worst $(cat $train/worst) shots $(cat $train/shots) at $(cat $train/where)
        rmmod apic_timer_train
        """
    )
    worst, shots = map(int, re.search(r"worst (\d+) shots (\d+)", output).groups())
    assert worst < 2600  # the limit of tests/guest/test_interrupts_off.py
    assert shots > 50


def test_interrupts():
    """No timer interrupt lasts long, including the one in which the calendar ends."""
    output = run_most_units(
        """
        cd /sys/kernel/tracing
        echo x86-tsc >trace_clock
        echo 1 >events/irq_vectors/local_timer_entry/enable
        echo 1 >events/irq_vectors/local_timer_exit/enable
        echo 1 >events/apic_calendar/apic_calendar_stop/enable
        calendar /all.calendar 2 >/dev/null
        cat trace
        """
    )
    events = re.findall(r" (\d+): (local_timer_entry|local_timer_exit|apic_calendar_stop):", output)
    assert events[-1][1] != "local_timer_entry"
    assert "apic_calendar_stop" in {name for _, name in events}
    lasted, began = [], 0
    for tsc, name in events:
        if name == "local_timer_entry":
            began = int(tsc)
        elif name == "local_timer_exit" and began:
            lasted.append(int(tsc) - began)
    print(sorted(lasted)[-10:])
    # This includes the kernel's ticks.
    assert max(lasted) < 20_000


# The calendar gets the slot of a module that was loaded before apic_timer. Therefore apic_timer
# releases a CPU that goes offline first. Then the kernel fails the calendar's callback without
# calling it, and the CPU stays online.
LOAD_BELOW = "insmod $MODULES/apic_timer_slow_off.ko\n" + LOAD.replace(
    "\n", "\nrmmod apic_timer_slow_off\n", 1
)


def test_lost_cpu():
    """A handler that finds that apic_timer has released its CPU leaves the stop to the keeper."""
    output = run_most_units(
        """
        cpu=/sys/devices/system/cpu
        calendar /all.calendar 1000000 >/dev/null &
        sleep 0.1
        states=$(grep apic_ $cpu/hotplug/states)
        echo "$states"
        echo 1 >/sys/kernel/tracing/events/apic_calendar/apic_calendar_stop/enable
        echo "$states" | sed -n "s/: apic_calendar:online//p" >$cpu/cpu1/hotplug/fail
        echo 0 >$cpu/cpu1/online || echo online $(cat $cpu/cpu1/online)
        sleep 0.1
        grep apic_calendar_stop: /sys/kernel/tracing/trace
        kill $!
        wait $! || true
        """,
        LOAD_BELOW,
        cpu=1,
    )
    assert re.findall(r"apic_(\w+):online", output) == ["calendar", "timer"]
    assert "online 1\n" in output
    stops = re.findall(r"^ *(.*)-\d+ +\[\d+\] (\S+) .*: error=(.*)$", output, re.M)
    assert [(name, error) for name, _, error in stops] == [("apic_cal/keeper", f"-{errno.ENODEV}")]
    assert "h" not in stops[0][1]  # not in an interrupt


@pytest.mark.matrix
def test_two_cpus_start_together():
    """Windows that begin at the same TSC value on two CPUs start together in Bochs."""
    found = together.measure()
    print(rows.table(found))
    for what in together.PAIRS:
        (late,) = rows.select(found, bench=f"{calendar_goals.TOGETHER}/{what}/late")
        assert late["min"] >= 0
        assert late["n"] >= 500
    (apart,) = rows.select(found, bench=f"{calendar_goals.TOGETHER}/functions/apart")
    assert apart["p99"] <= 10


@pytest.fixture(scope="module", params=["6.1", pytest.param("7.2", marks=pytest.mark.matrix)])
def measured(request):
    """Return what demo_calendar finds, by load."""
    return {load: demo_calendar.measure(request.param, CYCLES, load)
            for load in ("idle", "syscall")}  # fmt: skip


def late(found, unit: str) -> list[int]:
    """Return the errors of a unit in ascending order."""
    return sorted(found.errors[unit].elements())


def test_account(measured):
    """Each window of each cycle has a receipt, and each window that began did so in time."""
    for found in measured.values():
        last = max(r.cycle for r in found.receipts)
        assert Counter(r.result for r in found.receipts).keys() <= {0, 1}
        assert [r.number for r in found.receipts] == list(range(len(found.receipts)))
        assert [(r.cycle, r.entry) for r in found.receipts] == [
            (cycle, entry) for cycle in range(last + 1) for entry in range(4)
        ]


def test_idle(measured):
    """Threads and functions start within 4 cycles, and never early.

    A thread is late, once, when its wake-up takes longer than any before: printed.
    """
    found = measured["idle"]
    for unit in demo_calendar.UNITS:
        print(unit, found.errors[unit])
        errors = late(found, unit)
        assert errors[0] >= 0
        assert errors[len(errors) * 99 // 100] <= 4
    assert late(found, "pulse")[-1] <= 4


def test_busy(measured):
    """With system calls as the load, nearly all start as precisely; the latest errors are printed.

    A timer that expires while interrupts are disabled starts its unit only once they are enabled.
    """
    found = measured["syscall"]
    errors = sorted(e for unit in demo_calendar.UNITS for e in late(found, unit))
    print({unit: late(found, unit)[-3:] for unit in demo_calendar.UNITS})
    assert errors[0] >= 0
    assert errors[len(errors) * 99 // 100] <= 4


def test_net():
    """Softirqs of the network delay threads, but not functions."""
    found = demo_calendar.measure("6.1", 300, "net")
    print({unit: late(found, unit)[-3:] for unit in demo_calendar.UNITS})
    errors = late(found, "pulse")
    assert errors[0] >= 0
    assert errors[len(errors) * 99 // 100] <= 4


def test_timeout(measured):
    """A thread that uses up its budget runs at most 50 cycles longer, and resumes in its window."""
    for load, found in measured.items():
        print(load, found.breaks[:1], len(found.breaks))
        assert len(found.breaks) > CYCLES // 10
        last = sorted(broken.last - broken.timeout for broken in found.breaks)
        assert last[-1] <= 50
        # A tick may take the thread's last few thousand cycles, but usually does not.
        assert last[len(last) // 2] >= -200
        for broken in found.breaks:
            # The thread resumes in its next window, which begins 900 us later, and no earlier.
            assert broken.resumed - broken.timeout >= 899_990


TIGHT = b"""\
unit sense cpu 0 user
unit plan cpu 0 user
table tight major 1ms
at 100us run sense for 100us
at 205us run plan for 100us
at 310us run sense for 50us
"""


def test_tight():
    """Threads run in all windows, even windows 5 us apart, which is less than some leads."""
    found = demo_calendar.measure("6.1", 300, file=TIGHT)
    # plan uses up its budget in every eighth window; the next windows must still run.
    print(Counter((r.entry, r.result) for r in found.receipts), found.errors)
    assert Counter(r.result for r in found.receipts if r.cycle >= 20).keys() <= {0, 1}
    # The wake-up of plan begins with the gap, and stopping sense takes part of the gap.
    assert 0 <= late(found, "plan")[0] and late(found, "plan")[-1] <= 1000
    assert 0 <= late(found, "sense")[0] and late(found, "sense")[-1] <= 5000


def test_no_gap_behind_an_early_end():
    """When a thread ends its window early, the next unit's wake-up can use the rest of it."""
    run = demo_calendar.Run(300, calendar.table(2000), 2000, calendar.FIRST, every=1)
    (found,) = demo_calendar.measure_all("6.1", [run])
    errors, lost = calendar.behind(found, "ran")
    print(errors, lost)
    assert set(lost) == {0} and lost[0] > 250
    assert min(errors) >= 0 and sorted(errors.elements())[errors.total() * 99 // 100] <= 4


def test_demo(measured):
    """The demo prints what it has found, and the receipt of the unit that was stopped."""
    text = demo_calendar.text(measured["idle"])
    print(text)
    for unit in demo_calendar.UNITS:
        assert f"\n{unit}" in text
    assert "timed out" in text


FILE = """\
unit a cpu 0 user signal 10
unit b cpu 1 function pulse
table one major 1ms
at 500us run a for 100us
at 100us run a for 50us   # entries may come in any order
at 0s run b for 5us
table two major 2ms
degrade to one after 3
at 1ms run b for 10us
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Build the program apic-calendar."""
    output = tmp_path_factory.mktemp("user")
    subprocess.run(["make", "-C", TREE / "user", f"OUTPUT={output}", output / "apic-calendar"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return output / "apic-calendar"


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("", "", None),
        ("cpu 1", "cpu 8", "2: no such CPU, or it is offline"),
        ("50us ", "398us ",
         "4: the window begins too soon after another one on its CPU ends (line 5)"),
        ("50us ", "1ms ", "5: the window ends after the major cycle"),
        ("100us run", "-1us run", "5: expected: at TIME run NAME for TIME"),
        ("500us run a", "120us run a",
         "4: the window begins before another one on its CPU ends (line 5)"),
        ("run b for 10us", "run c for 10us", "9: no such unit"),
        ("to one", "to two", "8: no such table above this one"),
        ("signal 10", "signal 65", "1: invalid overrun policy"),
        ("\ntable", "\nunit a cpu 2 user\ntable", "3: another unit has this name (line 1)"),
        ("major 1ms", "major 99us",
         "3: the major cycle is shorter than 100 us, or longer than a day"),
        ("for 5us", "for 4us", "6: the budget is too short"),
        ("table two", "tables two", "7: expected unit, table, at or degrade"),
        ("at 500us run a for 100us", "at 500us run a for 490us at",
         "4: expected: at TIME run NAME for TIME"),
        ("for 100us", "for 99999999999999999999us", "4: expected: at TIME run NAME for TIME"),
        ("table two", "\0table two", "7: a byte is 0"),
        ("unit a", "unit a\0", "1: a byte is 0"),
        # In ns, 290 ms more than 64 bits can hold.
        ("for 100us", "for 18446744074s", "4: expected: at TIME run NAME for TIME"),
    ],
)  # fmt: skip
def test_check(program, tmp_path, old, new, said):
    """A wrong file is refused by the module's own check, with the line number."""
    assert old in FILE
    file = tmp_path / "file.calendar"
    file.write_text(FILE.replace(old, new, 1) if old else FILE)
    done = subprocess.run([program, "check", file, "8"], capture_output=True, text=True)
    if said is None:
        assert (done.returncode, done.stderr) == (0, "")
        shown = subprocess.run([program, "show", file], capture_output=True, text=True)
        assert "table two: 2000.000 us, one after 3 overruns" in shown.stdout
    else:
        assert (done.returncode, done.stderr) == (1, f"{file}:{said}\n")


@pytest.mark.parametrize("cpus", ["-1", "0", " 8", "8x", ""])
def test_check_for_no_number_of_cpus(program, cpus):
    done = subprocess.run([program, "check", "file", cpus], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage:")


def test_show_for_many_cpus(program, tmp_path):
    """It takes no longer for CPUs that the calendar does not use."""
    file = tmp_path / "file.calendar"
    file.write_text(FILE)
    for cpus in ("8", "4294967295"):
        done = subprocess.run([program, "show", file, cpus], capture_output=True, timeout=10)
        assert done.returncode == 0 and b"  CPU 0" in done.stdout


def test_check_of_what_cannot_be_read(program, tmp_path):
    """It is no empty calendar, nor the first part of one."""
    done = subprocess.run([program, "check", tmp_path], capture_output=True, text=True)
    said = f"apic-calendar: {tmp_path}: {os.strerror(errno.EISDIR)}\n"
    assert (done.returncode, done.stderr) == (2, said)


SHOWN = """\
unit busy cpu 0 user
unit pulse cpu 0 function
unit toil cpu 0 thread
table shown major 1ms
at 100us run busy for 50us
at 300us run pulse for 10us
at 500us run toil for 50us
table slow major 10ms
degrade to shown after 3
at 1ms run toil for 50us
"""


LONG = """\
unit busy cpu 0 user
table long major 3600s
at 1ms run busy for 50us
"""


def test_output_that_cannot_be_written(program, tmp_path):
    file = tmp_path / "file.calendar"
    file.write_text(FILE)
    for arguments in ("--help", f"show {file}"):
        done = subprocess.run(["sh", "-c", f'"$0" {arguments} >/dev/full', program],
                              capture_output=True, text=True)  # fmt: skip
        said = "apic-calendar: can't write to standard output\n"
        assert (done.returncode, done.stderr) == (2, said)


def test_run(program, tmp_path):
    """A file runs until a signal, or for a number of seconds, and each unit gets its windows.

    Its end does not wait for that of a long major cycle.
    """
    good, wrong, long = (tmp_path / name for name in ("good", "wrong", "long"))
    good.write_text(SHOWN)
    long.write_text(LONG)
    wrong.write_text(SHOWN.replace("unit pulse cpu 0 function", "unit pulse cpu 0 function none"))
    kernel = kernels.ensure("6.1")
    built = build.build(kernel)
    result = virtual.run(
        kernel,
        f"""{LOAD}
        apic-calendar run /good 1 >/tmp/timed
        apic-calendar run /good >/tmp/until &
        sleep 0.3
        kill -TERM $!
        wait $!
        apic-calendar run /good 1 --table slow >/tmp/slow
        timeout -s KILL 10 apic-calendar run /long 1 >/tmp/long
        timeout -s KILL 10 sh -c 'apic-calendar run /long & sleep 1; kill -TERM $!; wait $!'
        apic-calendar run /wrong 2>/tmp/wrong && exit 1
        apic-calendar run /good --table none 2>/tmp/none && exit 1
        for name in timed until slow wrong none; do
            put $name </tmp/$name
        done
        {UNLOAD}""",
        modules=[build.find_ko(built, name) for name in demo_calendar.MODULES], timeout=300,
        files={"usr/bin/apic-calendar": program, "good": good, "wrong": wrong, "long": long},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-2000:]}"
    print(result.files)
    for name, least in (("timed", 900), ("until", 200)):
        lines = [line.split() for line in result.files[name].decode().splitlines()]
        assert lines[-5] == ["stopped"]
        for unit, (found, run, missed, *_) in zip(("busy", "pulse", "toil"), lines[-3:],
                                                  strict=True):  # fmt: skip
            assert (found, missed) == (unit, "0")
            assert int(run) >= least
    slow = [line.split() for line in result.files["slow"].decode().splitlines()[-3:]]
    assert [line[:2] for line in slow[:2]] == [["busy", "0"], ["pulse", "0"]]
    assert 90 <= int(slow[2][1]) <= 110
    assert result.files["wrong"] == b"/wrong:2: no module has registered this function\n"
    assert result.files["none"] == b"apic-calendar: /good: no table none\n"


BEHIND = """\
unit step cpu 0 function
unit busy cpu 0 user
table behind major 1ms
at 100us run step for 100us
at 205us run busy for 50us
"""


def test_lead_behind_a_function(program):
    """The time that a function takes from the gap before a thread is no part of its wake-up."""
    kernel = kernels.ensure("6.1")
    built = build.build(kernel)
    parameters = "/sys/module/apic_calendar_pulse/parameters"
    result = virtual.run(
        kernel,
        f"""{LOAD}
        for ns in 0 97000; do
            echo $ns >{parameters}/grind_ns
            apic-calendar run /behind 1 >/tmp/out
            put $ns </tmp/out
        done
        {UNLOAD}""",
        modules=[build.find_ko(built, name) for name in demo_calendar.MODULES], timeout=300,
        files={"usr/bin/apic-calendar": program, "behind": BEHIND.encode()},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-2000:]}"
    lines = {ns: result.files[ns].decode().splitlines()[-1].split() for ns in ("0", "97000")}
    print(lines)
    assert all(line[0] == "busy" and int(line[1]) >= 900 for line in lines.values())
    # The thread is woken as early as can be, but not as early as the parameter lead_max_ns allows.
    assert float(lines["97000"][-1]) < 20


def test_layout():
    """The structures in user/apic_calendar.py match those of the header."""
    import apic_calendar

    assert struct.calcsize("7Q6I") == 80
    for name, size in (("Unit", 96), ("Entry", 24), ("Load", 64), ("Start", 24), ("Stop", 16),
                       ("Bind", 8), ("Wait", 72), ("Query", 40), ("Status", 96),
                       ("Receipt", 80)):  # fmt: skip
        assert calendar_rules.ctypes.sizeof(getattr(apic_calendar, name)) == size
