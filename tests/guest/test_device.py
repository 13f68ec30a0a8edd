"""/dev/apic_timer: lateness of threads in virtual time, and rules in guests with Python."""

import ctypes
import errno
import json
import random
import re
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace

import calendar_rules
import device
import pytest
from lab.bench import figures
from lab.build import build, jitterdebugger, user, userland
from lab.engines import virtual
from lab.kernels import kernels, sources
from machines import Machine, some

TREE = Path(__file__).resolve().parents[2]
CASES = ("node", "never_early", "shared_clock", "page", "structures", "rate", "turns", "changed",
         "pending", "ranges", "readers", "memory", "passing", "namespace", "numbered", "shifted",
         "forks", "killed", "killed_anywhere", "execs", "hotplug", "seccomp", "stopped",
         "signalled", "receipts", "fence", "priority", "uring_wait", "outrun",
         "unload")  # fmt: skip
CHECKED = ("6.1-debug", "6.1-kcsan")  # kernels with run-time checks
RULED = some(kernel=("6.1", "6.12", "7.2", *CHECKED, "6.1-rt", "7.2-rt"), cpus=2, engine="smp",
             source="proxy")  # fmt: skip
RULED += some(kernel=("6.12", "7.2"), cpus=4, engine="smp", source="proxy")
SHOTS, WARM_UP = 3000, 2000
DISTANCES = {"idle": "20000 1020000", "syscall": "20000 120000"}
SCRIPT = """
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_timer_dev.ko
"""


def test_every_rule_is_run():
    """Each case of harness/device.py is run here."""
    assert all(callable(getattr(device, case)) for case in CASES)


def bounds(page: str) -> list[list[str]]:
    """Return, from a page, what holders of an open file might do, and the tests of each bound."""
    text = (TREE / "docs/reference" / page).read_text().partition("## Who may do what\n")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [[row[0], *re.findall(r"`(\w+)`", row[-1])] for row in rows[2:]]


@pytest.mark.parametrize("page, rules", [("user-device.md", device),
                                         ("calendar.md", calendar_rules)])  # fmt: skip
def test_each_bound_has_a_test(page, rules):
    """Each row names its tests: rules of that device, functions in this file, or KUnit suites."""
    found = bounds(page)
    assert len(found) >= 8
    for what, *tests in found:
        assert tests, what
        for name in tests:
            assert (callable(getattr(rules, name, None)) or name in globals()
                    or (TREE / f"tests/kunit/{name}.c").exists()), name  # fmt: skip


def cases_of(machine) -> tuple[str, ...]:
    """Return the rules for a machine; kernels that the lab builds lack some features."""
    lacking = ("uring_wait", "memory", "numbered") if machine.kernel in CHECKED else ()
    if not machine.kernel.endswith("-rt"):  # elsewhere an interrupt wakes, not a thread
        lacking += ("outrun",)
    return tuple(case for case in CASES if case not in lacking)


@pytest.mark.long(but=("structures", "ranges", "signalled", "killed", "receipts", "unload"))
@pytest.mark.guest(
    RULED,
    """
    unload
    load apic_timer
    load apic_timer_dev
    patiently [ -c /dev/apic_timer ]
    rule device {case}
    [ ! -d /sys/module/apic_timer_dev ] || rmmod apic_timer_dev
    unload
    """,
    cases=cases_of,
    brief=True,
)
def test_rule(guest):
    print(guest.ok())


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp", source="proxy"),
    """
    unload
    load apic_timer spin_budget_ns=1000000
    load apic_timer_dev
    patiently [ -c /dev/apic_timer ]
    rule device shallow
    rmmod apic_timer_dev
    unload
    """,
)
def test_sleeper_need_not_poll(guest):
    """With a budget that exceeds all latencies, a sleeper's CPU is not asked to poll."""
    print(guest.ok())


@pytest.mark.guest(
    [Machine("6.1", 2, engine="sleeper"), Machine("7.2", 2, engine="sleeper", matrix=True)],
    """
    unload
    load apic_timer late_ns=100000000
    load apic_timer_dev
    for how in tsc any mono read readany poll; do
        ${SHARED:-}/asleep $how 700 >/tmp/asleep.$how &
    done
    usleep 200000
    # As far as that one CPU is left, whose interrupts are off.
    echo core >/sys/power/pm_test
    echo 1 >/sys/module/suspend/parameters/pm_test_delay
    echo mem >/sys/power/state
    wait
    cat /tmp/asleep.*
    echo none >/sys/power/pm_test
    rmmod apic_timer_dev
    unload
    """,
)
def test_suspend(guest):
    """A moment that comes during suspend has passed after resume, for every kind of waiter."""
    ends = sorted(line.split() for line in guest.ok().splitlines())
    hows = ("any", "mono", "poll", "read", "readany", "tsc")
    assert ends == [[how, "0", "1", "0", "0"] for how in hows]


@pytest.mark.guest(
    some(kernel=CHECKED, cpus=2, engine="smp", source="proxy"),
    f"""
    unload
    load apic_timer
    load apic_timer_dev
    (cd "{TREE}" && gcc {" ".join(user.FLAGS)} -o /dev/shm/fuzz tests/user/fuzz.c)
    for seed in 1 2 3; do
        /dev/shm/fuzz 300000 $seed & /dev/shm/fuzz 300000 1$seed
        wait $!
    done
    rmmod apic_timer_dev
    unload
    """,
)
def test_fuzz_checked(guest):
    """Run two fuzzers at a time, on kernels with run-time checks."""
    guest.ok()


@pytest.fixture(scope="module", params=["6.1", pytest.param("7.2", marks=pytest.mark.matrix)])
def measured(request):
    """Return errors of the first user instruction, and times spent waiting, by load and mode."""
    kernel = kernels.ensure(request.param)
    script = SCRIPT
    for load, distance in DISTANCES.items():
        if load == "syscall":
            script += "setsid hackbench -l 1000000000 -g 1 -f 5 >/dev/null 2>&1 &\nsleep 0.5\n"
        for mode in ("device", "kernel", "monotonic", "nanosleep"):
            name = f"{load}-{mode}"
            script += (f"latency {mode} {SHOTS} {distance} 1 {WARM_UP} >/tmp/e 3>/tmp/w\n"
                       f"put {name} </tmp/e\nput {name}-waited </tmp/w\n")  # fmt: skip
    script += "kill -9 -$! || true\nsleep 0.5\n"
    # One that runs at multiples of a time, and two that do so at a time.
    grid = f"latency device {SHOTS} 150000 150000 1 {WARM_UP}"
    script += f"{grid} >/tmp/e 3>/tmp/w\nput grid </tmp/e\nput grid-waited </tmp/w\n"
    script += "".join(f"{grid} >/tmp/e{i} 3>/tmp/w{i} &\npid{i}=$!\n" for i in (1, 2))
    for i in (1, 2):
        script += f"wait $pid{i}\nput pair{i} </tmp/e{i}\nput pair{i}-waited </tmp/w{i}\n"
    # Once more, with a lower quantile.
    script += "rmmod apic_timer_dev\ninsmod $MODULES/apic_timer_dev.ko quantile=9900\n"
    script += (f"latency device {SHOTS} {DISTANCES['idle']} 1 {WARM_UP} >/tmp/e 3>/tmp/w\n"
               "put idle-thrifty </tmp/e\nput idle-thrifty-waited </tmp/w\n")  # fmt: skip
    result = virtual.run(kernel, script, timeout=600,
                         modules=modules(kernel), memory=1024,
                         files={"usr/bin/latency": user.program(kernel, "latency")})  # fmt: skip
    assert result.ok, result.verdict
    found = {name: figures.summary(figures.decode(data)) for name, data in result.files.items()}
    for name, row in found.items():
        print(name, {key: round(value) for key, value in row.items()})
    return found


def modules(kernel: kernels.Kernel, *, calendar: bool = False) -> list[Path]:
    """Return the modules: the core, the device, and optionally the calendar and its functions."""
    built = build.build(kernel)
    names = ["apic_timer", "apic_timer_dev"]
    names += ["apic_calendar", "apic_calendar_pulse"] if calendar else []
    return [build.find_ko(built, name) for name in names]


def test_idle(measured):
    """With the library's own wait, threads are at most 4 cycles late, and never early."""
    row = measured["idle-device"]
    assert row["min"] >= 0
    assert row["p99"] <= 4
    assert row["p999"] <= 4
    # One wake-up takes longer than any before: that of the load average, every 5 s.
    assert row["max"] <= 1500
    assert measured["idle-device-waited"]["mean"] <= 2000


def test_thrifty(measured):
    """With a lower quantile, threads spend less time waiting."""
    row = measured["idle-thrifty"]
    assert row["min"] >= 0
    assert row["p50"] <= 4
    thrifty, usual = (measured[f"idle-{mode}-waited"] for mode in ("thrifty", "device"))
    assert thrifty["mean"] < usual["mean"]


def test_clock(measured):
    """A moment of CLOCK_MONOTONIC is met as precisely as a TSC value."""
    row = measured["idle-monotonic"]
    assert row["min"] >= 0
    assert row["p99"] <= 4


def test_busy(measured):
    """With system calls as the load, nearly all threads are as precise."""
    row = measured["syscall-device"]
    assert row["min"] >= 0
    assert row["p999"] <= 4


def test_at_a_time(measured):
    """A thread that has to wait for another one's moment does not learn to wake up earlier."""
    waited = {name: measured[f"{name}-waited"]["mean"]
              for name in ("idle-device", "grid", "pair1", "pair2")}  # fmt: skip
    # Alone, a thread waits for as long as its longest wake-ups take, which differ from run to run.
    alone = max(waited["idle-device"], waited["grid"])
    assert max(waited["pair1"], waited["pair2"]) <= 4 * alone
    assert min(measured[name]["p50"] for name in ("pair1", "pair2")) <= 4
    assert min(measured[name]["min"] for name in ("grid", "pair1", "pair2")) >= 0


def test_kernel_finish(measured):
    """When the kernel does the last wait, the thread is late by part of the kernel's exit path.

    It is never early.
    """
    for load in DISTANCES:
        row = measured[f"{load}-kernel"]
        assert row["min"] >= 0
        assert row["p50"] <= 200


def test_untaught():
    """A thread that reports nothing is not early, whatever another holder of the file reports."""
    kernel = kernels.ensure("6.1")
    result = virtual.run(
        kernel, f"{SCRIPT}untaught\nrmmod apic_timer_dev\n", modules=modules(kernel), timeout=300,
        files={"usr/bin/untaught": user.program(kernel, "untaught")},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}"
    early = dict(line.split() for line in result.output.splitlines() if line.count(" ") == 1)
    print(early)
    assert int(early["reports"]) > 1000
    assert int(early["silent"]) <= 0


def test_better_than_nanosleep(measured):
    for load in DISTANCES:
        assert measured[f"{load}-device"]["p99"] * 100 < measured[f"{load}-nanosleep"]["p50"]


def test_lockdown():
    """Under lockdown for confidentiality nobody can open the device or the calendar."""
    kernel = kernels.ensure("6.1")
    script = f"""{SCRIPT}
        insmod $MODULES/apic_calendar.ko
        mount -t securityfs none /sys/kernel/security
        for node in apic_timer apic_calendar; do
            (: </dev/$node) && echo open
        done
        echo confidentiality >/sys/kernel/security/lockdown
        for node in apic_timer apic_calendar; do
            (: </dev/$node) 2>&1 || echo refused
        done
        rmmod apic_calendar
        rmmod apic_timer_dev
    """
    result = virtual.run(kernel, script, modules=modules(kernel, calendar=True), timeout=300)
    assert result.ok, result.verdict
    assert result.output.startswith("open\nopen\n")
    assert result.output.count("Operation not permitted") == 2
    assert result.output.count("refused\n") == 2


HOSTILE = ("alone", "timers", "moment", "readers", "sleeps", "fences", "reopens", "windows")
RATE, BURST, PENDING = 20_000, 64, 256  # the module's defaults
HOSTILE_MS = 100
IRQ_WORK = re.compile(r"(\d+): irq_work_entry: .*\n.* (\d+): irq_work_exit: ")
KERNEL_EVENT = re.compile(r"apic_timer_kernel_event: .* error=(-?\d+)$", re.MULTILINE)


@pytest.fixture(scope="module", params=["6.1", pytest.param("7.2", marks=pytest.mark.matrix)])
def hostile(request):
    """Return what other tasks get of a CPU and of its tick while a user requests all it may.

    The results are by kind of request.
    """
    kernel = kernels.ensure(request.param)
    script = """
        insmod $MODULES/apic_timer.ko
        insmod $MODULES/apic_timer_dev.ko
        insmod $MODULES/apic_calendar.ko
        insmod $MODULES/apic_calendar_pulse.ko
        ifconfig lo up
        tracing=/sys/kernel/tracing
        echo x86-tsc >$tracing/trace_clock
        for event in apic_timer/apic_timer_kernel_event irq_vectors/irq_work_entry \\
                irq_vectors/irq_work_exit; do
            echo 1 >$tracing/events/$event/enable
        done
        expired() {
            awk '$1 == "expired" { print $2 }' /sys/kernel/debug/apic_timer/stats
        }
    """
    for how in HOSTILE:
        script += f"""
            echo >$tracing/trace
            before=$(expired)
            hostile {how} {HOSTILE_MS} >/tmp/found
            echo $(($(expired) - before)) >>/tmp/found
            put {how} </tmp/found
            put {how}-trace <$tracing/trace
        """
    script += """
        echo 0 >$tracing/events/enable
        rmmod apic_calendar_pulse
        rmmod apic_calendar
        rmmod apic_timer_dev
    """
    result = virtual.run(kernel, script, timeout=600, modules=modules(kernel, calendar=True),
                         files={"usr/bin/hostile": user.program(kernel, "hostile")})  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}"
    found = {}
    for how in HOSTILE:
        name, share, packets, expired = result.files[how].decode().split()
        assert name == how
        trace = result.files[f"{how}-trace"].decode()
        late = [int(n) for n in KERNEL_EVENT.findall(trace)]
        works = [int(end) - int(begin) for begin, end in IRQ_WORK.findall(trace)]
        found[how] = {"share": int(share), "packets": int(packets), "expired": int(expired),
                      "events": len(late), "late": max(late),
                      "work": max(works, default=0), "works": len(works)}  # fmt: skip
        print(how, found[how])
    return found


# Thousandths of the CPU time, and of the packets that arrive when nothing else runs. In virtual
# time all runs give the same figures. With five threads the fair share of one is 200; a calendar
# may take 900 of a CPU.
LEFT = {"timers": 900, "moment": 900, "readers": 700, "fences": 700, "reopens": 650, "sleeps": 170,
        "windows": 300}  # fmt: skip
# apic_timer's defer_ns, and the time until the deferred event runs: in "moment", after the handlers
# of all timers that a user may have.
TICK_LATE = {"moment": 25_000 + 500 * PENDING}
WORK = 5_000  # maximum duration of an irq_work, in cycles


def test_starve_thread(hostile):
    """An ordinary thread gets most of the CPU next to timers, and a fair share next to threads."""
    assert hostile["alone"]["share"] >= 950
    for how, share in LEFT.items():
        assert hostile[how]["share"] >= share, how


def test_starve_softirq(hostile):
    """Softirqs run, too: packets arrive as often as their sending thread gets to run."""
    for how, share in LEFT.items():
        assert hostile[how]["packets"] * 1000 >= hostile["alone"]["packets"] * share, how


def test_starve_interrupts(hostile):
    """All timers of a user together expire no more often than the user's rate allows."""
    seconds = 2 * HOSTILE_MS / 1000
    for how in set(HOSTILE) - {"windows"}:
        # Allow some time for starting and ending the processes.
        assert hostile[how]["expired"] <= BURST + PENDING + RATE * (seconds + 0.1), how


def test_starve_tick(hostile):
    """The kernel's events are as frequent as ever, and a fence defers them within its limit."""
    for how in HOSTILE:
        assert hostile[how]["events"] >= hostile["alone"]["events"] * 0.9, how
        assert hostile[how]["late"] <= TICK_LATE.get(how, 25_000), how


def test_starve_irq_work(hostile):
    """The irq_work that handlers leave behind is done a few items at a time."""
    # A pause is an expiry, too.
    assert hostile["moment"]["works"] >= hostile["moment"]["expired"] / 9
    for how in HOSTILE:
        assert hostile[how]["work"] <= WORK, how


# The kernel's own timer tests that sleep or use timers, and the programs of rt-tests.
JUDGES = ("nanosleep", "nsleep-lat", "set-timer-lat", "posix_timers")
RT_TESTS = tuple(f"{name} -q -l 200 -p 90" for name in ("pmqtest", "ptsematest", "signaltest -t 2"))


def kernels_own(name: str, directory: Path) -> Path:
    """Compile one of the kernel's timer tests, with the C library as a library."""
    source = sources.ensure("6.1")
    names = ["kselftest.h", *(f"timers/{each}.c" for each in JUDGES)]
    tree = sources.members(source, [f"tools/testing/selftests/{n}" for n in names])
    # This is not our code; its warnings do not matter.
    subprocess.run(["gcc", "-O2", "-w", "-o", directory / name,
                    tree / f"tools/testing/selftests/timers/{name}.c", "-lpthread", "-lrt"],
                   check=True)  # fmt: skip
    return directory / name


def verdicts(text: str) -> list[str]:
    """Return the verdicts in a program's output, without the measured figures."""
    return re.findall(r"\[\w+\]|\b(?:not )?ok\b|\bPass|\bFail|^status \d+", text, re.MULTILINE)


def preload_library(directory: Path) -> dict[str, Path]:
    """Build the library; return it as a guest's file."""
    subprocess.run(["make", "-C", TREE / "user", f"OUTPUT={directory}",
                    f"{directory}/libapictimer-preload.so"], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return {"lib/preload.so": directory / "libapictimer-preload.so"}


def test_preload(scratch):
    """Programs that do not know the device sleep by it as exactly."""
    kernel = kernels.ensure("6.1")
    script = f"""{SCRIPT}
        run() {{
            name=$1
            shift
            "$@" cyclictest -q -m -p 95 --policy=fifo -t 1 -i 500 -l {SHOTS} -N -h 1000000 \\
                --json=/tmp/json >/dev/null
            put $name </tmp/json
            "$@" jitterdebugger -N -a 0 -p 95 -i 500 -l 1000 -o /tmp >/dev/null
            put jitter-$name </tmp/results.json
        }}
        run without env
        run with env LD_PRELOAD=/lib/preload.so
        run off env LD_PRELOAD=/lib/preload.so APIC_TIMER_PRELOAD=0
        rmmod apic_timer_dev
        run missing env LD_PRELOAD=/lib/preload.so
    """
    result = virtual.run(
        kernel, script, modules=modules(kernel), timeout=600,
        files={**preload_library(scratch),
               "usr/bin/cyclictest": userland.root() / "usr/bin/cyclictest",
               "usr/bin/jitterdebugger": jitterdebugger.program()},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}"
    found = {}
    for name, data in result.files.items():
        jitter = name.startswith("jitter-")
        (thread,) = json.loads(data)["cpu" if jitter else "thread"].values()
        assert thread["count" if jitter else "cycles"] == (1000 if jitter else SHOTS)
        found[name] = figures.summary({int(k): v for k, v in thread["histogram"].items()})
        print(name, found[name])
    for program in ("", "jitter-"):
        assert found[f"{program}with"]["min"] >= 0
        assert found[f"{program}with"]["p99"] < 300  # clock_gettime() and the program take this
        for name in ("without", "off", "missing"):
            assert found[f"{program}{name}"]["p50"] > 2000


@pytest.mark.matrix
def test_preload_and_verdicts(scratch):
    """Tests of timers come to the same verdicts when they sleep by the device."""
    kernel = kernels.ensure("6.1")
    rt_tests = [command.split()[0] for command in RT_TESTS]
    script = f"""{SCRIPT}
        judge() {{
            for how in without with; do
                status=0
                [ $how = without ] || export LD_PRELOAD=/lib/preload.so
                "$@" >/tmp/verdict || status=$?
                unset LD_PRELOAD
                echo "status $status" >>/tmp/verdict
                put judged-$1-$how </tmp/verdict
            done
        }}
        {"".join(f"judge {command}; " for command in (*JUDGES, *RT_TESTS))}
    """
    result = virtual.run(
        kernel, script, modules=modules(kernel), timeout=600,
        files={**preload_library(scratch),
               **{f"usr/bin/{name}": kernels_own(name, scratch) for name in JUDGES},
               **{f"usr/bin/{name}": userland.root() / "usr/bin" / name for name in rt_tests}},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}"
    for judge in (*JUDGES, *rt_tests):
        without, preloaded = (result.files[f"judged-{judge}-{how}"].decode()
                              for how in ("without", "with"))  # fmt: skip
        print(judge, verdicts(preloaded))
        assert len(verdicts(without)) > (judge in JUDGES) and "status 0" in verdicts(without)
        assert verdicts(preloaded) == verdicts(without), preloaded


def test_preload_is_not_for_32_bits():
    """There a timerfd may be set by calls that it does not replace."""
    done = subprocess.run(["gcc", "-m32", "-fsyntax-only", TREE / "user/preload.c"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode and "not for programs of 32 bits" in done.stderr


PRELOADED = ("signalled", "never", "closes", "forks", "forks-late", "handler", "restarts",
             "early", "leaves")  # fmt: skip
HEADER = ("until", "spin", "skew", "stale", "same-epoch", "forked", "contained")


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    """Return what a program that expects the kernel's calls prints with the library, by case.

    And what a program prints that uses the header, while it sees a TSC that restarts.
    """
    kernel, scratch = kernels.ensure("6.1"), tmp_path_factory.mktemp("preloaded")
    for name in ("preloaded", "header"):
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{TREE}/user",
                        f"-I{TREE}/include/uapi", "-o", scratch / name,
                        TREE / f"tests/user/{name}.c", "-lpthread"], check=True)  # fmt: skip
    script = SCRIPT
    for case in PRELOADED:
        for how in ("without", "with"):
            env = "LD_PRELOAD=/lib/preload.so" if how == "with" else ""
            script += f"env {env} preloaded {case} >/tmp/said || true\n"
            script += f"put {case}-{how} </tmp/said\n"
    for case in HEADER:
        script += f"header {case} >/tmp/said || true\nput header-{case} </tmp/said\n"
    script += "rmmod apic_timer_dev\n"
    result = virtual.run(
        kernel, script, modules=modules(kernel), timeout=300,
        files={**preload_library(scratch),
               **{f"usr/bin/{name}": scratch / name for name in ("preloaded", "header")}},
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}"
    return {name: data.decode() for name, data in result.files.items()}


@pytest.mark.parametrize("case", PRELOADED)
def test_preloaded(preloaded, case):
    """The preload library's calls match the kernel's with signals and odd arguments."""
    assert preloaded[f"{case}-without"] == "ok\n"
    assert preloaded[f"{case}-with"] == "ok\n"


@pytest.mark.parametrize("case", HEADER)
def test_header(preloaded, case):
    """A wait in user space ends when the TSC restarts, as a sleep of the machine may have it do.

    A child of fork() closes what it has inherited, and only that.
    """
    assert preloaded[f"header-{case}"] == "ok\n"


def test_restart_in_python(monkeypatch):
    """A wait in Python ends likewise, and the kernel says why."""
    began = 10**15
    reads = iter([began + 10, *range(100)])
    timer = object.__new__(device.Timer)
    timer.fd, timer.epoch, timer._rdtsc = -1, 1, SimpleNamespace(read=lambda: next(reads))
    slept = []

    def ioctl(_fd: int, _command: int, asked: device.Sleep) -> None:
        if slept:
            raise OSError(errno.ESTALE, "another epoch")
        asked.resumed, asked.tsc = began, began + 1000
        slept.append(asked)

    monkeypatch.setattr(device.apic_timer.fcntl, "ioctl", ioctl)
    with pytest.raises(OSError, match="another epoch"):
        timer.sleep_until(began + 1000)
    assert next(reads) == 1


STRESSORS = ("timerfd", "clock", "timer", "nanosleep", "sleep", "cyclic")


@pytest.mark.matrix
@pytest.mark.guest(
    some(kernel="6.1", cpus=2, engine="smp", source="proxy"),
    f"""
    unload
    load apic_timer
    load apic_timer_dev
    preload=/dev/shm/user/libapictimer-preload.so
    make -s -C "{TREE}/user" OUTPUT=/dev/shm/user $preload
    cd /dev/shm
    for how in without with; do
        for stressor in {" ".join(STRESSORS)}; do
            status=0
            [ $how = without ] || export LD_PRELOAD=$preload
            stress-ng --$stressor 2 --timeout 1 --verify >/dev/shm/out 2>&1 || status=$?
            unset LD_PRELOAD
            [ $status -eq 0 ] || cat /dev/shm/out
            echo "$how $stressor $status"
        done
    done
    rmmod apic_timer_dev
    unload
    """,
)
def test_stress_ng(guest):
    """stress-ng's timers report no more errors with the preload library than without.

    They use CLOCK_REALTIME, signals and relative times; the library passes those to the kernel.
    """
    rows = [line.split() for line in guest.ok().splitlines()]
    found = {(how, what): int(n) for how, what, n in rows}
    for stressor in STRESSORS:
        assert found["with", stressor] == found["without", stressor] == 0


CONVERSIONS = """
#include "apic_timer_user.h"

uint64_t mono(const struct apic_timer_page *page, uint64_t tsc)
{
	return at_tsc_to_mono(&(struct at) { .page = page }, tsc);
}

uint64_t tsc(const struct apic_timer_page *page, uint64_t mono)
{
	return at_mono_to_tsc(&(struct at) { .page = page }, mono);
}
"""


def test_conversions(scratch):
    """The header converts moments years ago or ahead exactly, and rounds as documented.

    A moment before the TSC was set to 0, or before CLOCK_MONOTONIC began, does not exist.
    """
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    f"-I{TREE}/user", f"-I{TREE}/include/uapi", "-o", scratch / "conversions.so",
                    "-x", "c", "-"], input=CONVERSIONS, text=True, check=True)  # fmt: skip
    library = ctypes.CDLL(str(scratch / "conversions.so"))
    for function in (library.mono, library.tsc):
        function.restype = ctypes.c_uint64
        function.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    numbers = random.Random(1997)
    for khz, shift in ((1_000, 22), (800_000, 22), (2_400_000, 24), (5_000_000, 25)):
        for n in range(2000):
            at, mono = numbers.randrange(1 << 62, 1 << 63), numbers.randrange(1 << 59, 1 << 60)
            mult = (10**6 << shift) // khz + numbers.randrange(-9, 9)
            rest = numbers.randrange(1 << shift)
            page = struct.pack("8I4Q", 1, 2, khz, 1, device.apic_timer.CLOCK, mult, shift, 0,
                               at, mono, rest, 0)  # fmt: skip

            def shown(tsc: int) -> int:
                return mono + (((tsc - at) * mult + rest) >> shift)  # noqa: B023 - called here

            # Up to three years: 2 ** 57 ns.
            distance = numbers.randrange(1 << n % 57 + 1) * (1 if n & 64 else -1)
            when = at + distance * khz // 10**6
            assert library.mono(page, when) == shown(when), (khz, distance)
            found = library.tsc(page, mono + distance)
            assert shown(found - 1) < mono + distance <= shown(found), (khz, distance)
        if khz > 10**6:  # the TSC overflows before that clock
            assert library.tsc(page, (1 << 64) - 1) == (1 << 64) - 1
        # The TSC was set to 0 a second ago, when that clock was at 100 s.
        page = struct.pack("8I4Q", 1, 2, khz, 1, device.apic_timer.CLOCK, mult, shift, 0,
                           khz * 1000, 101 * 10**9, 0, 0)  # fmt: skip
        for mono in (0, 1, 10**9, 99 * 10**9):
            assert library.tsc(page, mono) == 1, (khz, mono)
        assert abs(library.tsc(page, 100 * 10**9 + 10**6) - khz) <= khz // 1000
        # That clock began at a TSC value of 10 s.
        page = struct.pack("8I4Q", 1, 2, khz, 1, device.apic_timer.CLOCK, mult, shift, 0,
                           khz * 12_000, 2 * 10**9, 0, 0)  # fmt: skip
        for when in (0, khz * 1000, khz * 9_900):
            assert library.mono(page, when) == 1, (khz, when)
        assert abs(library.mono(page, khz * 11_000) - 10**9) <= 10**6, khz


EXAMPLES = {
    "pacing 1000 500": r"500 periods of 1000 us: late by (\d+) ns on average, (\d+) at most; "
                       r"0 missed; waited \d+ ns each",
    # The end of its standard input would end it.
    "sleep 1 | event_loop 2000 100": r"100 periods of 2000 us, 0 of them overrun",
    "toggle 3fc 500 100": r"100 periods on port 3fc: the write was complete at most (\d+) ns "
                          r"after its moment",
}  # fmt: skip
NEAR_NS = 5_000  # a wake-up takes all of this


@pytest.mark.parametrize("series", ["6.1", pytest.param("7.2", marks=pytest.mark.matrix)])
def test_program(scratch, series):
    """A 64-bit and a 32-bit program meet their moments, read their timers, and know the time.

    The examples do, too.
    """
    kernel = kernels.ensure(series)
    files = {f"usr/bin/first{bits}": user.program(kernel, "first", *["-m32"] * (bits == 32))
             for bits in (64, 32)}  # fmt: skip
    names = ("pacing", "event_loop", "toggle")
    subprocess.run(["make", "-C", TREE / "user", f"OUTPUT={scratch}",
                    *(scratch / name for name in names)], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    files |= {f"usr/bin/{name}": scratch / name for name in names}
    script = "\n".join([SCRIPT, "first64 64", "first32 32", *EXAMPLES, "rmmod apic_timer_dev\n"])
    result = virtual.run(kernel, script, timeout=300, modules=modules(kernel), files=files)
    assert result.ok, f"{result.verdict}\n{result.output}"
    print(result.output)
    *first, pacing, event_loop, toggle = result.output.splitlines()
    assert first == ["ok"] * 2
    for line, expected in zip((pacing, event_loop, toggle), EXAMPLES.values(), strict=True):
        found = re.fullmatch(expected, line)
        assert found, line
        assert all(int(ns) < NEAR_NS for ns in found.groups()), line


@pytest.mark.parametrize("operations", [20_000, pytest.param(1_000_000, marks=pytest.mark.matrix)])
def test_fuzz(operations):
    """Random commands and arguments succeed or fail cleanly, and leave nothing pending."""
    kernel = kernels.ensure("6.1")
    seeds = (1, 2) if operations > 100_000 else (1,)
    runs = "\n".join(f"fuzz {operations} {seed}" for seed in seeds)
    result = virtual.run(
        kernel, f"{SCRIPT}{runs}\ngrep -c . /sys/kernel/debug/apic_timer/pending || true\n"
        "rmmod apic_timer_dev\nrmmod apic_timer\n",
        modules=modules(kernel), files={"usr/bin/fuzz": user.program(kernel, "fuzz")}, timeout=3000,
    )  # fmt: skip
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-2000:]}"
    assert result.output.split()[-1] == "0"
