"""Times in a virtual-time guest do not depend on the load of this machine."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from lab.build import build, network
from lab.engines import limit, qemu, virtual
from lab.kernels import kernels
from lab.run import demo_calendar

pytestmark = pytest.mark.long

# Each sleep is idle time, which QEMU skips.
MOMENTS = "for i in $(seq 600); do usleep 2000; grep '^now at' /proc/timer_list; done"
# Voluntary context switches of an idle guest, and of nothing else that this process runs.
IDLE = """
import resource
from lab.engines import virtual
from lab.kernels import kernels

assert virtual.run(kernels.ensure("6.1"), "sleep 300").ok
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw)
"""
# A boot, and QEMU's CPU time for it.
BOOT = """
import os, resource
from lab.engines import qemu, virtual
from lab.kernels import kernels

if "DEAR" in os.environ:
    qemu.cheap_pause = lambda: ()
kernel = kernels.ensure("6.1")
qemu.virtual_time(42)  # the plug-in is built by now
before = resource.getrusage(resource.RUSAGE_CHILDREN)
print(virtual.run(kernel, "cat /proc/interrupts; dmesg", timeout=300))
after = resource.getrusage(resource.RUSAGE_CHILDREN)
print((after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime))
"""
# A guest's view of its machine, returned files, and errors of timers.
ELSEWHERE = """
import sys
from lab.build import build
from lab.engines import virtual
from lab.kernels import kernels

kernel = kernels.ensure("6.1")
script = '''
cat /proc/cpuinfo /proc/meminfo /proc/interrupts /proc/iomem /proc/uptime
ls -lR /modules /usr; hostname; set
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_timer_bench.ko
insmod $MODULES/apic_timer_bench_ours.ko
bench=/sys/kernel/debug/apic_timer_bench
echo apic_timer_exact octaves 50 20000 20000000 1 >$bench/run
put samples <$bench/samples
'''
names = ("apic_timer", "apic_timer_bench", "apic_timer_bench_ours")
modules = [build.find_ko(build.build(kernel), name) for name in names]
result = virtual.run(kernel, script, modules=modules, timeout=300)
print(result.verdict, result.output, result.kernel_log, result.console, result.files)
"""


@pytest.mark.flaky(reruns=0)
def test_bytes_do_not_depend_on_where_it_runs(tmp_path):
    """They do not depend on directories, environment, number of CPUs, or set order in Python."""
    far = tmp_path / ("far" * 40)  # longer than a socket's address may be
    far.mkdir()
    usual = found(ELSEWHERE, {}, str(build.TREE))
    assert usual.startswith("ok ") and "'samples': b" in usual
    changed = {"TMPDIR": str(far), "PYTHONHASHSEED": "7", "LANG": "C", "MORE": "y" * 50_000}
    one_cpu = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    assert found(ELSEWHERE, changed, str(far), *one_cpu) == usual


def found(script: str, environment: dict[str, str], directory: str, *prefix: str) -> str:
    """Return what another process of the lab printed."""
    variables = {**os.environ, "PYTHONPATH": f"{build.TREE}/tools", **environment}
    argv = [*prefix, sys.executable, "-c", script]
    done = subprocess.run(argv, env=variables, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_idle_time_costs_little():
    """No device of QEMU goes on waking its threads: an idle kernel wakes 10 times per second."""
    switches = int(found(IDLE, {}, str(build.TREE)))
    print(f"{switches} voluntary context switches in 300 s of idle time")
    assert switches < 100_000


@pytest.mark.matrix  # it depends on QEMU, whose version is locked
@pytest.mark.flaky(reruns=0)
def test_repeats_however_often_qemu_is_woken(patch_here, tmp_path):
    undisturbed = moments()
    path, woken = tmp_path / "monitor", []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        options = [*qemu.virtual_time(42), "-monitor", f"unix:{path}"]
        patch_here(qemu, "virtual_time", lambda *_: options)
        threading.Thread(target=wake, args=[server, woken], daemon=True).start()
        assert moments() == undisturbed
    print(f"woken {len(woken)} times")
    # The number depends on the machine's speed: here, several wake-ups per sleep.
    assert len(woken) > 3 * undisturbed.count("now at")


def test_qemu_has_one_event_loop(patch_here):
    """QEMU wakes every thread with an event loop at each idle period of a guest in virtual time."""
    options, threads = qemu.virtual_time(42), set()

    def watched(process, _) -> int:
        while process.poll() is None:
            for file in Path(f"/proc/{process.pid}/task").glob("*/comm"):
                with suppress(OSError):  # the thread has ended
                    threads.add(file.read_text().strip())
            time.sleep(0.1)
        return process.returncode

    patch_here(qemu, "virtual_time", lambda *_: [*options, "-name", "debug-threads=on"])
    patch_here(limit, "wait", watched)
    virtual.run(kernels.ensure("6.1"), "sleep 1", timeout=300).check()
    print(threads)
    assert "ALL CPUs/TCG" in threads
    assert not [name for name in threads if "iothread" in name]


CALL = """
insmod $MODULES/apic_timer.ko
cat /sys/kernel/debug/apic_timer/lead
"""


def call() -> tuple[int, int]:
    """Return the cycles that mode exact subtracts for a handler's call, and the TSC's step."""
    kernel = kernels.ensure("6.1")
    modules = [build.find_ko(build.build(kernel), "apic_timer")]
    output = virtual.run(kernel, CALL, modules=modules, timeout=300).check().output
    print(output)
    return tuple(int(n) for n in re.search(r"\bcall (\d+),.*\bsteps (\d+)$", output, re.M).groups())


def without_hypervisor(patch_here) -> None:
    """Boot guests whose CPU does not say that it is a virtual one."""
    usual = qemu.virtual_time

    def options(*arguments) -> list[str]:
        return [f"{word},-hypervisor" if word == qemu.CPU else word for word in usual(*arguments)]

    patch_here(qemu, "virtual_time", options)


def test_nothing_is_taken_off_without_a_hypervisor(patch_here):
    """A real CPU may become faster than measured, even though all calls took the same time."""
    taken, steps = call()
    assert taken > 0 and steps == 0
    without_hypervisor(patch_here)
    assert call() == (0, 0)


# A probe that never makes a call fail: the calls that the core's watchdog measures take longer.
SLOWER = """
insmod $MODULES/apic_timer_fail.ko symbol=apic_timer_probe times=0
sleep 0.5
"""
PATH = f"""
insmod $MODULES/apic_timer.ko
insmod $MODULES/sch_apic.ko
export TC_LIB_DIR=/usr/lib/x86_64-linux-gnu/tc
/usr/sbin/tc qdisc add dev lo root apic rate 1mbit
/usr/sbin/tc -s qdisc show dev lo
{SLOWER}
/usr/sbin/tc -s qdisc show dev lo
"""


def paths() -> list[int]:
    """Return the cycles that the shaper subtracts for the call of a driver: at first, and later."""
    kernel = kernels.ensure("6.1")
    built = build.build(kernel)
    names = ("apic_timer", "sch_apic", "apic_timer_fail")
    output = virtual.run(
        kernel, PATH, modules=[build.find_ko(built, name) for name in names],
        files=network.files(kernel), timeout=300,
    ).check().output  # fmt: skip
    return [int(path) for path in re.findall(r"\bpath (\d+)", output)]


def test_the_shaper_takes_off_what_is_certain(patch_here):
    """It follows the core, so that no packet is early."""
    at_first, later = paths()
    assert at_first > 0
    assert later == 0
    without_hypervisor(patch_here)
    assert paths() == [0, 0]


def test_a_function_takes_off_what_is_certain(monkeypatch, patch_here):
    """So does the calendar: a function then starts after the whole call."""

    fault = build.find_ko(build.build(kernels.ensure("6.1")), "apic_timer_fail")
    last = "insmod $MODULES/apic_calendar.ko\n"
    run = virtual.run

    def run_slower(kernel, script, modules, **options):
        assert last in script
        return run(
            kernel, script.replace(last, last + SLOWER), modules=[*modules, fault], **options
        )

    def least() -> int:
        return min(demo_calendar.measure("6.1", 100).errors["pulse"])

    taken = least()
    with monkeypatch.context() as patch:
        patch.setattr(virtual, "run", run_slower)
        slower = least()
    without_hypervisor(patch_here)
    left = least()
    print(f"the earliest start is {taken} cycles after its moment, {left} without a hypervisor,",
          f"{slower} once calls are slower")  # fmt: skip
    assert 0 <= taken < left - 5
    assert 0 <= taken < slower - 5


@pytest.mark.matrix  # likewise
@pytest.mark.flaky(reruns=0)
def test_pause_is_cheap_and_changes_nothing():
    """PAUSE costs the host as little as other instructions; the guest cannot see the difference."""
    for left in reversed(range(3)):
        cheap, seconds = booted()
        assert qemu.cheap_pause()
        usual, longer = booted(DEAR="1")
        print(f"a boot takes {seconds:.1f} s of the host's CPU, {longer:.1f} s without")
        assert cheap == usual
        # Other load on the host slows its CPUs, more in one of the boots.
        if seconds < 0.9 * longer or not left:
            break
    assert seconds < 0.9 * longer


def booted(**environment: str) -> tuple[str, float]:
    """Return all output of a guest that only boots, and how long QEMU ran for it."""
    output, seconds = found(BOOT, environment, str(build.TREE)).rsplit("\n", 2)[:2]
    return output, float(seconds)


@pytest.mark.flaky(reruns=0)
def test_another_qemu_makes_pause_dear(patch_here, capfd):
    """With a QEMU whose functions have other names, guests still run; one line reports it."""
    other = ('-DHELPER="helper_of_another_name"',)
    plugin = qemu.plugins.plugin
    patch_here(qemu.plugins, "plugin", lambda name: plugin(name, other))
    qemu.cheap_pause.cache_clear()
    try:
        assert "-plugin" not in qemu.virtual_time(42)
        assert "-plugin" not in qemu.virtual_time(43)
    finally:
        qemu.cheap_pause.cache_clear()
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("lab: virtual time runs more slowly: the lab's QEMU rejects")
    assert "pause: this QEMU lacks the functions it needs" in said[0]


def moments() -> str:
    """Return the moments, in ns, at which a repeatedly sleeping guest woke."""
    result = virtual.run(kernels.ensure("6.1"), MOMENTS, timeout=300)
    assert result.ok, result.verdict
    assert result.output.count("now at") == 600
    return result.output


def wake(server: socket.socket, woken: list[bytes]):
    """Wake QEMU's thread that skips idle time, by empty commands, until QEMU ends."""
    monitor, _ = server.accept()
    with monitor, suppress(OSError):
        while monitor.send(b"\n"):
            woken.append(monitor.recv(4096))
            time.sleep(0.0001)
