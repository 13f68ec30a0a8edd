"""apic-timer doctor names each fault of a machine's file tree, and undoes what it fixed."""

import ctypes
import fcntl
import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from machine_files import GOOD, TOOL

DEBUG = "sys/kernel/debug/apic_timer"
VERDICT = "sys/kernel/debug/apic_clock/verdict"
CPU = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0"
PR_SET_TIMERSLACK = 29


def native(**changes) -> dict[str, str]:
    """Return the file of measurements, with some of it changed."""
    facts = dict(row.split(" ", 1) for row in GOOD["native"].splitlines())
    facts |= {name: str(value) for name, value in changes.items()}
    return {"native": "".join(f"{name} {value}\n" for name, value in facts.items())}


def cpuinfo(flags: str) -> dict[str, str]:
    return {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: arat\n"}


def stats(counter: str, count: int) -> dict[str, str]:
    rows = [f"{counter} {count} 0" if row.split()[0] == counter else row
            for row in GOOD[f"{DEBUG}/stats"].splitlines()]  # fmt: skip
    return {f"{DEBUG}/stats": "\n".join(rows) + "\n"}


def verdict(reason: str, conclusion: str) -> dict[str, str]:
    facts = GOOD[VERDICT].split("reason ")[0]
    return {VERDICT: f"{facts}reason {reason}\nverdict {conclusion}\n"}


def deep_idle(latency: int, request: str) -> dict[str, str]:
    state = f"{CPU}/cpu1/cpuidle/state0"
    return {f"{state}/latency": f"{latency}\n", f"{state}/name": "C6\n", f"{state}/disable": "0\n",
            "sys/module/apic_timer/parameters/latency_qos": f"{request}\n"}  # fmt: skip


# The fault, and the text that names it
FAULTS = {
    "late.irqs_off": {**stats("expired_late", 12),
                      f"{DEBUG}/errors": "cycles cpu0 cpu1\n0..0 1000 5\n8192..16383 12 0\n"},
    "idle.deep": deep_idle(133, "N"),
    "gaps.smi_like": native(gap=400000, smis=-1),
    "smi.count": native(gap=400000, smis=2),
    "freq.governor": {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave\n"},
    "vm.steal": {"proc/stat": "cpu  100000 0 50000 800000 50 0 30 9000 0 0\n",
                 **native(hypervisor="KVMKVMKVM")},
    "tsc.unstable": {f"{CLOCK}/current_clocksource": "hpet\n",
                     f"{CLOCK}/available_clocksource": "hpet acpi_pm\n"},
    "tsc.verdict": verdict("TSCs moved while their skew was measured", "untrusted"),
    "owner.lapic": stats("hw_dead", 3),
    "defer.small": {f"{DEBUG}/lead": GOOD[f"{DEBUG}/lead"].replace("defer 9000", "defer 90000")},
    "budget.small": {f"{DEBUG}/lead": GOOD[f"{DEBUG}/lead"].replace("exact 4200", "exact 14200")},
    "timers.throttled": stats("throttled", 5),
    "irq.affinity": {f"{CPU}/isolated": "1\n"},
    "module": {"sys/module/apic_timer/version": "0.0.9\n"},
}  # fmt: skip


def findings(tool, root) -> dict[str, dict]:
    done = tool("doctor", "--json", "--root", root)
    found = {f["id"]: f for f in json.loads(done.stdout)["findings"]}
    assert done.returncode == any(f["level"] == "warn" for f in found.values()), done.stderr
    return found


def warned(found: dict[str, dict]) -> set[str]:
    return {name for name, f in found.items() if f["level"] == "warn"}


def test_good(tool, tree, golden):
    done = tool("doctor", "--root", tree())
    assert done.returncode == 0, done.stdout
    golden("doctor.txt", done.stdout)


def test_nothing_is_wrong_with_a_good_machine(tool, tree):
    found = findings(tool, tree())
    assert warned(found) == set()
    assert {f["level"] for f in found.values()} == {"ok"}


@pytest.mark.parametrize("name", FAULTS)
def test_names_the_fault(tool, tree, name):
    """It names this fault and no other; SMIs are gaps too."""
    found = findings(tool, tree(FAULTS[name]))
    assert warned(found) - {"gaps.smi_like"} == {name} - {"gaps.smi_like"}
    assert name in warned(found)
    assert found[name]["remedy"] and found[name]["read"]
    if name not in ("module", "tsc.verdict"):
        assert found[name]["cost_cycles"] > 0 and found[name]["cost_of"]


WITHIN = ": moments on two CPUs are the same within {} cycles"


@pytest.mark.parametrize("conclusion, level, cost", [
    ("exact" + WITHIN.format(22), "ok", 22),
    ("corrected" + WITHIN.format(2020), "note", 2020),
    ("bounded" + WITHIN.format(312), "note", 312),
    ("bounded", "note", None),
    ("untrusted", "warn", None),
    ("bounded" + WITHIN.format(-7), "note", None),
    ("7", "unknown", None),
])  # fmt: skip
def test_verdict_of_the_clocks(tool, tree, conclusion, level, cost):
    """Its cost is the possible skew of two CPUs, if known, and its reason is named."""
    found = findings(tool, tree(verdict("a reason of some words", conclusion)))["tsc.verdict"]
    assert (found["level"], found["cost_cycles"]) == (level, cost)
    assert found["finding"].endswith(": a reason of some words") or level == "unknown"
    assert ("remedy" in found) == (level != "ok")


def test_verdict_that_is_not_there(tool, tree):
    root = tree({VERDICT: None})
    found = findings(tool, root)["tsc.verdict"]
    assert (found["level"], found["remedy"]) == ("unknown", "run it as root, with debugfs mounted")
    (root / "sys/module/apic_clock/version").unlink()
    (root / "sys/module/apic_clock").rmdir()
    found = findings(tool, root)["tsc.verdict"]
    assert (found["level"], found["remedy"]) == ("unknown", "sudo modprobe apic_clock")


def test_tai_that_is_utc(tool, tree):
    """This is normal: a note, with the cost for users of moments from elsewhere."""
    found = findings(tool, tree(native(tai=0)))["clock.tai"]
    assert (found["level"], found["cost_cycles"]) == ("note", 37 * 2_000_000_000)
    assert found["remedy"]


@pytest.mark.parametrize("residues, said", [
    (", ".join(["0"] * 16), "residue 0 on all CPUs"),
    ("0", "residue 0 on all CPUs"),
    ("13, 13, 1", "residues 13, 13, 1 by CPU"),
    ("1, 13", "residues 1, 13 by CPU"),
])  # fmt: skip
def test_residues(tool, tree, residues, said):
    """A machine with 16 CPUs used to list 16 zeros."""
    found = findings(tool, tree(native(step=2, residues=residues)))["tsc.step"]
    assert found["level"] == "note" and said in found["finding"]


def test_hrtimers_cost_their_errors(tool, tree):
    info = GOOD[f"{DEBUG}/info"].replace(
        "proxy, one-shot LAPIC timer, xAPIC", "hrtimer, kernel hrtimers"
    )
    errors = "cycles cpu0 cpu1\n0..0 1000 5\n2048..4095 3 0\n"
    found = findings(tool, tree({f"{DEBUG}/info": info, f"{DEBUG}/errors": errors}))
    assert (found["source.hrtimer"]["level"], found["source.hrtimer"]["cost_cycles"]) == (
        "note", 4095)  # fmt: skip


@pytest.mark.parametrize("modules, level", [([], "ok"), (["apic_timer_dev"], "note"),
                                            (["apic_calendar"], "note")])  # fmt: skip
def test_preemption_matters_to_threads(tool, tree, modules, level):
    preempt = "sys/kernel/debug/sched/preempt"
    loaded = {f"sys/module/{name}/version": "0.1.0\n" for name in modules}
    for words in ("none (voluntary) full\n", "(none) voluntary full\n"):
        found = findings(tool, tree({preempt: words, **loaded}))["kernel.preempt"]
        assert found["level"] == level
        assert found.get("remedy") == ("boot with preempt=full" if level == "note" else None)
    for words in ("none voluntary (full)\n", "none voluntary full (lazy)\n"):
        found = findings(tool, tree({preempt: words, **loaded}))["kernel.preempt"]
        assert found["level"] == "ok"
    unlike = findings(tool, tree({preempt: "full\n", **loaded}))["kernel.preempt"]
    assert unlike["level"] == "unknown"
    real_time = {preempt: "full\n", "sys/kernel/realtime": "1\n", **loaded}
    assert findings(tool, tree(real_time))["kernel.preempt"]["level"] == "ok"


FRACTION, ZONEINFO = "proc/sys/vm/percpu_pagelist_high_fraction", "proc/zoneinfo"


def high(row: str) -> str:
    return GOOD[ZONEINFO].replace("high:  252", row)


@pytest.mark.parametrize("changes, level, pages", [
    ({}, "ok", 252),
    # Not set: the kernel may lengthen a list.
    ({FRACTION: "0\n"}, "note", 252),
    ({FRACTION: "0\n", ZONEINFO: high("high:  13856")}, "note", 13856),
    ({FRACTION: "0\n", ZONEINFO: high("high:  61\n high_max: 29816")}, "note", 29816),
    # Set, but not to the shortest.
    ({FRACTION: "8\n", ZONEINFO: high("high:  253")}, "note", 253),
    ({FRACTION: None}, "unknown", None),
    ({ZONEINFO: None}, "unknown", None),
    ({ZONEINFO: "high: batch:\n"}, "unknown", None),
    ({FRACTION: "0\n", "sys/kernel/realtime": "1\n"}, "ok", None),
])  # fmt: skip
def test_pages_that_are_freed_in_one_go(tool, tree, changes, level, pages):
    found = findings(tool, tree(changes))["kernel.pages"]
    assert found["level"] == level
    if pages:
        assert f"up to {pages} pages" in found["finding"]
    assert level != "note" or FRACTION.rpartition("/")[2] in found["remedy"]


def test_fix_frees_few_pages(tool, tree):
    root = tree({FRACTION: "0\n"})
    done = tool("doctor", "--fix", "--root", root, "--", "cat", root / FRACTION)
    assert done.stdout.strip().endswith("1048576")
    assert (root / FRACTION).read_text().strip() == "0"


def test_costs_are_what_was_measured(tool, tree):
    def cost(name: str) -> int:
        return findings(tool, tree({**GOOD, **FAULTS[name]}))[name]["cost_cycles"]

    assert cost("late.irqs_off") == 16383
    assert cost("idle.deep") == 20000
    assert cost("gaps.smi_like") == 400000
    assert cost("freq.governor") == 20
    assert cost("budget.small") == 14200
    assert cost("timers.throttled") == 500 * 2000
    assert cost("tsc.unstable") == 58


@pytest.mark.parametrize("errors", [None, "cycles cpu0 cpu1\n"])
def test_worst_error_that_is_not_known(tool, tree, errors):
    """For example if the kernel is locked down, and after a reset."""
    found = findings(tool, tree({**FAULTS["late.irqs_off"], f"{DEBUG}/errors": errors}))
    assert found["late.irqs_off"]["level"] == "warn"
    assert found["late.irqs_off"]["cost_cycles"] is None


def test_all_faults_at_once(tool, tree, golden):
    changes: dict[str, str] = {}
    for fault in FAULTS.values():
        for path, text in fault.items():
            if path.endswith("/stats") and path in changes:
                rows = {r.split()[0]: r for r in changes[path].splitlines()}
                rows |= {r.split()[0]: r for r in text.splitlines()
                         if r not in GOOD[path].splitlines()}  # fmt: skip
                text = "\n".join(rows.values()) + "\n"
            if path.endswith("/lead") and path in changes:
                text = changes[path].replace("exact 4200", "exact 14200")
            changes[path] = text
    changes |= native(gap=400000, smis=2, step=26, residues="13, 14", invariant=0)
    changes |= cpuinfo("fpu tsc")
    done = tool("doctor", "--root", tree(changes))
    assert done.returncode == 1
    golden("doctor-faults.txt", done.stdout)


def test_virtual_machine_is_no_smi(tool, tree):
    found = findings(tool, tree(native(hypervisor="KVMKVMKVM", gap=400000, smis=-1)))
    assert found["gaps.smi_like"]["level"] == "note" and found["vm.guest"]["level"] == "note"
    assert found["vm.guest"]["finding"].startswith("virtual machine of KVM: ")
    unknown = findings(tool, tree(native(hypervisor="OwnOwnOwnOwn")))["vm.guest"]
    assert unknown["finding"].startswith("virtual machine of OwnOwnOwnOwn: ")
    assert warned(found) == set()


@pytest.mark.parametrize("text, level", [
    (cpuinfo("fpu arat tsc"), "ok"), (cpuinfo("fpu tsc arat"), "ok"), (cpuinfo("fpu tsc"), "note"),
    (cpuinfo("fpu arat2 xarat"), "note"), ({"proc/cpuinfo": "processor\t: 0\n"}, "unknown"),
    ({"proc/cpuinfo": None}, "unknown"),
])  # fmt: skip
def test_arat_by_the_kernels_flag(tool, tree, text, level):
    """It also knows of CPUs that do not report it by CPUID."""
    assert findings(tool, tree(text))["cpu.arat"]["level"] == level


def test_cpus_with_a_hole(tool, tree):
    """The numbers of CPUs need not be consecutive."""
    faults = {**FAULTS["freq.governor"], **FAULTS["idle.deep"]}
    moved = {name.replace("/cpu1/", "/cpu2/"): text for name, text in faults.items()}
    root = tree({f"{CPU}/online": "0,2\n", **moved})
    shutil.rmtree(root / CPU / "cpu1")
    assert warned(findings(tool, root)) == {"freq.governor", "idle.deep"}


def test_deep_idle_that_is_asked_away(tool, tree):
    assert findings(tool, tree(deep_idle(133, "Y")))["idle.deep"]["level"] == "note"


def test_without_the_module(tool, tmp_path):
    """The machine's files are still checked; an empty tree has no findings."""
    found = findings(tool, tmp_path)
    assert warned(found) == set()
    assert found["module"]["level"] == "unknown" and found["owner.lapic"]["level"] == "unknown"


FREQUENCY = f"{CPU}/cpu1/cpufreq"
GOVERNOR = f"{FREQUENCY}/scaling_governor"
IRQ = "proc/irq/24/smp_affinity_list"
FIXABLE = {**FAULTS["freq.governor"], **FAULTS["irq.affinity"], **FAULTS["idle.deep"]}


def read(root, *names: str) -> list[str]:
    return [(root / name).read_text().strip() for name in names]


def test_fix_while_a_command_runs(tool, tree):
    root = tree(FIXABLE)
    script = f"cat {root / GOVERNOR}; echo; cat {root / IRQ}; exit 7"
    done = tool("doctor", "--fix", "--root", root, "--", "sh", "-c", script)
    assert done.returncode == 7
    assert done.stdout.split()[-2:] == ["performance", "0"]
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]
    # An interrupt that has no other CPU stays in place.
    assert read(root, "proc/irq/25/smp_affinity_list") == ["0"]


def test_fix_leaves_out_cpus_that_are_offline(tool, tree):
    """The kernel refuses to read and write their files."""
    online = GOVERNOR.replace("cpu1", "cpu0")
    root = tree({online: "powersave\n", "sys/devices/system/cpu/online": "0\n"})
    (root / GOVERNOR).unlink()
    (root / GOVERNOR).mkdir()
    done = tool("doctor", "--fix", "--root", root, "--", "cat", root / online)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("performance")
    assert read(root, online) == ["powersave"]


def written(directory, command: Callable[[], None]) -> list[str]:
    """Return the names of the files in a directory that were written meanwhile, in order.

    The kernel merges events that are equal and follow each other.
    """
    libc, event = ctypes.CDLL(None, use_errno=True), struct.Struct("iIII")
    queue = libc.inotify_init1(os.O_CLOEXEC)
    close_write = 8
    assert libc.inotify_add_watch(queue, os.fsencode(directory), close_write) >= 0
    command()
    data, names = os.read(queue, 1 << 16), []
    os.close(queue)
    while data:
        length = event.unpack_from(data)[3]
        names.append(data[event.size : event.size + length].rstrip(b"\0").decode())
        data = data[event.size + length :]
    return names


@pytest.mark.parametrize("governor, name, before, forced", [
    ("powersave", "energy_performance_preference", "balance_power", "performance"),
    ("userspace", "scaling_setspeed", "1400000", "2100000"),
])  # fmt: skip
def test_fix_restores_what_the_kernel_changes(tool, tree, governor, name, before, forced):
    """The governor comes first: under another one the kernel refuses the value, or forgets it."""
    root = tree({GOVERNOR: f"{governor}\n", f"{FREQUENCY}/{name}": f"{before}\n"})

    def fix():
        done = tool("doctor", "--fix", "--root", root, "--", "sh", "-c",
                    f"echo {forced} >{root / FREQUENCY / name}")  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")

    assert written(root / FREQUENCY, fix) == ["scaling_governor", name, "scaling_governor", name]
    assert read(root, GOVERNOR, f"{FREQUENCY}/{name}") == [governor, before]


@pytest.mark.parametrize("governor", ["powersave", "userspace"])
def test_fix_restores_nothing_that_is_the_same(tool, tree, governor):
    """A driver that has restored it by itself may refuse any write."""
    names = ("energy_performance_preference", "scaling_setspeed")
    root = tree({GOVERNOR: f"{governor}\n", **{f"{FREQUENCY}/{name}": "1\n" for name in names}})
    fix = written(root / FREQUENCY, lambda: tool("doctor", "--fix", "--root", root, "--", "true"))
    assert fix == ["scaling_governor"] and read(root, GOVERNOR) == [governor]


@pytest.mark.parametrize("governor, unsupported", [("userspace", "<unsupported>"),
                                                   ("schedutil", "1400000")])  # fmt: skip
def test_fix_restores_no_speed_that_nobody_set(tool, tree, governor, unsupported):
    """Other governors print a text instead of the frequency."""
    speed = f"{FREQUENCY}/scaling_setspeed"
    root = tree({GOVERNOR: f"{governor}\n", speed: f"{unsupported}\n"})
    tool("doctor", "--fix", "--root", root, "--", "sh", "-c", f"echo 2100000 >{root / speed}")
    assert read(root, GOVERNOR, speed) == [governor, "2100000"]


def test_options_of_the_command(tool, tree):
    """Arguments after its name belong to the command."""
    done = tool("doctor", "--root", tree(FIXABLE), "--fix", "sh", "-c", "exit 7", "--cpus", "1")
    assert done.returncode == 7


def test_json_alone(tool, tree):
    root = tree(FIXABLE)
    with subprocess.Popen([TOOL, "doctor", "--fix", "--json", "--root", root], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:  # fmt: skip
        assert running.stderr.readline().endswith("fixed until this program is stopped (Ctrl-C)\n")
        running.send_signal(signal.SIGINT)
        found = json.loads(running.stdout.read())["findings"]
    # A WARN is no failure here: it was printed, and fixed.
    assert running.returncode == 0 and "warn" in {f["level"] for f in found}
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]


def test_two_at_once(tool, tree):
    """The second would restore the first one's changes."""
    root = tree(FIXABLE)
    first = begin(root, "sleep", "100")
    done = tool("doctor", "--fix", "--root", root, "--", "true")
    assert done.returncode == 2 and "another doctor --fix is running" in done.stderr
    assert read(root, GOVERNOR, IRQ) == ["performance", "0"]
    first.terminate()
    first.wait(20)
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]
    assert tool("doctor", "--fix", "--root", root, "--", "true").returncode == 0


def test_kept_away_by_nobody_else(tool, tree):
    """A lock on a file that any user may open is not doctor's."""
    root = tree(FIXABLE)
    with (root / "sys/devices/system/cpu/online").open() as online:
        fcntl.flock(online, fcntl.LOCK_EX)
        assert tool("doctor", "--fix", "--root", root, "--", "true").returncode == 0


def test_command_has_the_signals_of_the_program(tool, tree):
    """The command ignores the same signals and no others: a closed pipe ends it."""
    status = ["grep", "-E", "Sig(Ign|Blk|Cgt)", "/proc/self/status"]
    fix = shlex.join([str(TOOL), "doctor", "--fix", "--root", str(tree(FIXABLE))])
    script = f'trap "" HUP; "$@"; exec {fix} -- "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", *status], capture_output=True, text=True)
    rows = done.stdout.splitlines()
    assert done.returncode == 0 and rows[:3] == rows[-3:]


def begin(root, *command: str, ignored: str = "", **options) -> subprocess.Popen:
    """Run doctor --fix until it has changed something.

    Signals have effect except the ignored one, even if the tests are run by nohup, or by a shell in
    the background.
    """
    running = subprocess.Popen(
        ["env", "--default-signal", f"--ignore-signal={ignored}",
         TOOL, "doctor", "--fix", "--root", root, "--", *command],
        stdout=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    for _ in range(200):
        if read(root, GOVERNOR, IRQ) == ["performance", "0"]:
            return running
        time.sleep(0.05)
    raise AssertionError("it fixes nothing")


STOPS = [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1,
         signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO,
         signal.SIGPWR, signal.SIGSTKFLT, signal.SIGXCPU, signal.SIGXFSZ]  # fmt: skip


@pytest.mark.parametrize("number", STOPS)
def test_command_gets_what_a_process_sends(tool, tree, number):
    root = tree(FIXABLE)
    running = begin(root, "sh", "-c", "echo begun; exec sleep 100")
    for row in running.stdout:
        if row == "begun\n":
            break
    os.kill(running.pid, number)
    assert running.wait(20) == 128 + number
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]


def test_hangup_that_is_ignored(tool, tree):
    """For example by nohup."""
    root = tree(FIXABLE)
    running = begin(root, ignored="HUP")
    for row in running.stdout:
        if row.startswith("fixed until"):
            break
    os.kill(running.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.5)
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(20) == 0
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]


@pytest.mark.parametrize("before, after", [("1", "0"), ("1-3", "0"), ("0-3", "0"), ("0", "0")])
def test_interrupt_gets_another_cpu(tool, tree, before, after):
    """It gets an online CPU, even if it has only those of the timers."""
    root = tree({f"{CPU}/isolated": "1\n", IRQ: f"{before}\n"})
    level = {"0": "ok", "1": "note", "1-3": "note"}.get(before, "warn")
    assert findings(tool, root)["irq.affinity"]["level"] == level
    done = tool("doctor", "--fix", "--root", root, "--", "cat", root / IRQ)
    assert done.stdout.split()[-1] == after
    assert read(root, IRQ) == [before]


def interrupt(root, number: int, cpus: str, effective: str | None = None) -> None:
    """Add an interrupt; `effective` is the one of several CPUs that takes it."""
    directory = root / f"proc/irq/{number}"
    directory.mkdir(exist_ok=True)
    (directory / "smp_affinity_list").write_text(f"{cpus}\n")
    if effective is not None:
        (directory / "effective_affinity_list").write_text(f"{effective}\n")


def test_interrupts_that_a_driver_may_hold(tool, tree):
    """For example NVMe's queues in 6.1: no lasting warning."""
    root = tree({f"{CPU}/isolated": "1\n", IRQ: "0\n"})
    for number in (30, 31, 32):
        interrupt(root, number, "1")
    found = findings(tool, root)["irq.affinity"]
    assert found["level"] == "note" and "only on the timers' CPUs: 3;" in found["finding"]
    (root / IRQ).write_text("0-1\n")
    found = findings(tool, root)["irq.affinity"]
    assert found["level"] == "warn" and "CPUs: 1; 3 more arrive only there" in found["finding"]


def test_interrupts_that_the_kernel_lets_nobody_move(tool, tree):
    """In 6.12 their files are read-only; the files of others are not, whatever their contents."""
    root = tree({f"{CPU}/isolated": "1\n", f"{CPU}/online": "0-3\n", IRQ: "0\n"})
    for number, cpus, effective in ((0, "0-3", "0"), (30, "1", "1"), (31, "1,3", "1")):
        interrupt(root, number, cpus, effective)
        (root / f"proc/irq/{number}/smp_affinity_list").chmod(0o444)
    found = findings(tool, root)["irq.affinity"]
    assert found["level"] == "note"
    assert found["finding"].endswith("CPUs: 2, none of which can be moved")

    interrupt(root, 32, "1", "1")  # set by an administrator
    found = findings(tool, root)["irq.affinity"]
    assert found["level"] == "warn"
    assert found["finding"].endswith("CPUs: 1; 2 others can't be moved")

    files = [root / f"proc/irq/{number}/smp_affinity_list" for number in (0, 30, 31, 32)]
    done = tool("doctor", "--fix", "--root", root, "--", "cat", *files)
    assert done.stdout.split()[-4:] == ["0-3", "1", "1,3", "0,2-3"]
    assert "drivers do not let 2 of 3 interrupts be moved" in done.stderr


def test_interrupt_of_the_kernels_timer(tool, tree):
    """It cannot be moved in 6.1 either, and goes to one CPU."""
    root = tree({f"{CPU}/isolated": "1\n", IRQ: "0\n"})
    interrupt(root, 0, "0-1", "0")
    assert findings(tool, root)["irq.affinity"]["level"] == "ok"
    interrupt(root, 0, "0-1", "1")
    assert findings(tool, root)["irq.affinity"]["level"] == "note"


def test_an_administrator_has_moved_one_to_the_timers(tool, tree):
    """There one interrupt's read-only file suffices, even if no device has that interrupt."""
    root = tree({f"{CPU}/isolated": "1\n", IRQ: "1\n", "sys/kernel/irq/2/actions": "\n"})
    interrupt(root, 2, "0-1")
    (root / "proc/irq/2/smp_affinity_list").chmod(0o444)
    found = findings(tool, root)["irq.affinity"]
    assert found["level"] == "warn" and found["finding"].endswith("CPUs: 1")


def test_interrupts_that_stay(tool, tree):
    """Files that cannot be written, as in a read-only /proc, are counted once, with the reason."""
    root = tree({f"{CPU}/isolated": "33\n", f"{CPU}/online": "0-33\n", IRQ: "33\n"})
    for number in (30, 31, 32):
        interrupt(root, number, "")
        file = root / f"proc/irq/{number}/smp_affinity_list"
        file.unlink()
        file.symlink_to("/proc/self/coredump_filter")  # 00000033, and it accepts no list

    def child():
        Path("/proc/self/coredump_filter").write_text("0x33")

    done = tool("doctor", "--fix", "--root", root, "--", "true", preexec_fn=child)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.endswith("can't move 3 of 4 interrupts: Invalid argument\n")


def test_interrupt_that_no_device_has(tool, tree):
    def level(actions: str) -> str:
        irq = {f"{CPU}/isolated": "1\n", IRQ: "0-1\n", "sys/kernel/irq/24/actions": actions}
        return findings(tool, tree(irq))["irq.affinity"]["level"]

    assert (level("\n"), level("eth0\n")) == ("ok", "warn")


def test_as_many_cpus_as_a_kernel_can_have(tool, tree):
    """None is left out of a list."""
    root = tree({f"{CPU}/isolated": "1\n", f"{CPU}/online": "0-8191\n", IRQ: "0-8191\n"})
    found = findings(tool, root)["irq.affinity"]
    assert found["level"] == "warn" and found["finding"].endswith("CPUs: 1")
    done = tool("doctor", "--fix", "--root", root, "--", "cat", root / IRQ)
    assert done.stdout.split()[-1] == "0,2-8191"


def test_all_cpus_are_the_timers(tool, tree):
    done = tool("doctor", "--json", "--cpus", "0-1", "--root", tree())
    found = {f["id"]: f for f in json.loads(done.stdout)["findings"]}["irq.affinity"]
    assert found["level"] == "note" and "no CPU is left" in found["finding"]


@pytest.mark.parametrize("cpus, offline", [("1-3", "2-3"), ("5", "5"), ("0,7,9", "7,9")])
@pytest.mark.parametrize("more", [(), ("--fix", "--", "true")])
def test_cpus_that_are_not_there(tool, tree, cpus, offline, more):
    done = tool("doctor", "--root", tree(), "--cpus", cpus, *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"apic-timer: doctor: CPUs of --cpus that are not online: {offline}\n"


@pytest.mark.parametrize("online", [None, "?\n"])
def test_cpus_of_a_machine_that_lists_none(tool, tree, online):
    """For example without /sys."""
    done = tool("doctor", "--root", tree({f"{CPU}/online": online}), "--cpus", "5")
    assert (done.returncode, done.stderr) == (0, "")


def test_command_gets_an_alarm(tool, tree):
    """An alarm that was set before: nobody sends it, and exec() keeps it."""
    root = tree(FIXABLE)
    running = begin(root, "sleep", "100", preexec_fn=lambda: signal.alarm(3))
    assert running.wait(20) == 128 + signal.SIGALRM
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]


@pytest.mark.parametrize("number", STOPS)
def test_fix_is_undone_by_a_signal(tool, tree, number):
    root = tree(FIXABLE)
    running = begin(root)
    # The message comes after the last change.
    for row in running.stdout:
        if row.startswith("fixed until"):
            break
    os.kill(running.pid, number)
    assert running.wait(20) == 0
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]


def test_command_that_is_not_there(tool, tree):
    root = tree(FIXABLE)
    done = tool("doctor", "--fix", "--root", root, "--", "/nowhere")
    assert done.returncode == 127 and "can't run /nowhere" in done.stderr
    assert read(root, GOVERNOR, IRQ) == ["powersave", "0-1"]


def test_wakes_without_the_slack_of_its_timer(tool):
    """A sleep may end as much later; it is no property of the machine. COMMAND still has it."""
    libc = ctypes.CDLL(None)

    def child():
        assert not libc.prctl(PR_SET_TIMERSLACK, 200_000_000)

    done = tool("doctor", "--json", preexec_fn=child)
    found = json.loads(done.stdout)
    guest = {finding["id"]: finding for finding in found["findings"]}["vm.guest"]
    if found["hypervisor"]:
        assert guest["cost_cycles"] < 100 * found["tsc_khz"]
    show = "import ctypes; print(ctypes.CDLL(None).prctl(30))"  # PR_GET_TIMERSLACK
    done = tool("doctor", "--fix", "--", sys.executable, "-c", show, preexec_fn=child)
    assert done.stdout.split()[-1] == "200000000"


def test_natively(tool):
    """Without the module it measures this machine, and writes its findings as JSON."""
    done = tool("doctor", "--json")
    found = json.loads(done.stdout)
    assert found["tsc_khz"] > 100_000
    assert len(found["findings"]) == len(findings_ids(tool))
    assert done.returncode in (0, 1)


def test_whose_parent_waits_for_nobody(tool):
    """Its child cannot be waited for then, and reports no CPU."""
    done = tool("doctor", "--json",
                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))  # fmt: skip
    assert done.stderr == "" and json.loads(done.stdout)["looked_at"] != ""


needs_2_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")


@needs_2_cpus
@pytest.mark.parametrize("command", ["doctor", "clocks"])
def test_cpus_that_a_process_is_not_given(tool, command):
    """For example isolated CPUs: requested ones are measured, and first."""
    given, wanted, *_ = sorted(os.sched_getaffinity(0))
    done = tool(command, "--json", "--cpus", f"{given},{wanted}" if command == "clocks" else wanted,
                preexec_fn=lambda: os.sched_setaffinity(0, {given}))  # fmt: skip
    found = json.loads(done.stdout)
    if command == "doctor":
        assert found["looked_at"] == f"{given}{'-' if wanted == given + 1 else ','}{wanted}"
    else:
        assert [(row["against"], row["cpu"]) for row in found["skew"]] == [(given, wanted)]


def findings_ids(tool) -> list[str]:
    return [f["id"] for f in json.loads(tool("doctor", "--json", "--root", "/nowhere").stdout)
            ["findings"]]  # fmt: skip
