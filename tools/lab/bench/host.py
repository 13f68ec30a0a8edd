"""The benchmark on the running kernel, without the lab: the same rows, and the machine's data.

It needs root. Modules are loaded and unloaded again. Nothing else is changed, except that a
loopback interface that is down is brought up and taken down again.
"""

import os
import platform
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..base.cache import temporary
from ..base.errors import LabError
from ..base.progress import say
from ..build import build
from . import main as bench
from . import rows as bench_rows
from .rows import Samples
from .script import Script
from .size import FULL, SHORT, Size

MSR_SMI_COUNT = 0x34  # Intel's count of system management interrupts since reset
PROGRAMS = ("busybox", "cyclictest", "hackbench", "insmod", "rmmod", "setsid", "taskset", "awk")

# Time is real here: seconds that a guest skips must be waited for.
_FAR = {1_000_000_000: 30, 10_000_000_000: 10, 60_000_000_000: 3}
HOST = replace(FULL, seeds=(1,), shots=100_000, jiffy_shots=10_000,
               distances={ns: _FAR.get(ns, n) for ns, n in FULL.distances.items()})  # fmt: skip
HOST_SHORT = replace(SHORT, distances={ns: 100 for ns in SHORT.distances if ns < 1_000_000_000})


def main(modules: Path | None = None, *, short: bool = False, only: Iterable[str] = (),
         output: Path = bench.OUTPUT, plots: bool = True) -> int:  # fmt: skip
    """Run the benchmark on this machine. `modules`: directory of the .ko files, if not the tree's.

    Return 0 when all of it was measured. LabError if that is impossible, with the reason.
    """
    found = [build.find_ko(modules or build.TREE, name) for name in bench.MODULES]
    _check()
    cpu = max(os.sched_getaffinity(0))
    machine = describe() | {"measured_cpu": cpu}
    unload_msr = _load_msr()
    try:
        before = smi_counts()
        size: Size = HOST_SHORT if short else HOST
        # On one CPU: comparisons of several are the lab's task.
        scripts = [script for script in bench.plan(size, only)
                   if script.cpus == 1 and not bench.for_lab(script)]  # fmt: skip
        samples = bench_rows.merge(_run(script, found, cpu) for script in scripts)
        machine["smi_count"] = {"before": before, "after": smi_counts()}
    finally:
        if unload_msr:
            subprocess.run(["rmmod", "msr"], check=False)
    rows = bench_rows.rows(samples, kernel=platform.release(), engine="host",
                           cpus=os.cpu_count() or 1)  # fmt: skip
    bench_rows.write(output / "bench.json", rows, machine)
    for name, value in machine.items():
        print(f"{name:<20}{value}")
    print()
    bench.report(rows, samples, output if plots else None)
    return 0


def _check() -> None:
    """Refuse impossible requests before anything is changed."""
    if os.geteuid():
        raise LabError("bench --host loads modules: run it as root")
    for module in ("apic_timer", *bench.MODULES):
        if Path(f"/sys/module/{module}").exists():
            raise LabError(f"{module} is loaded: unload it first; some measurements run without it")
    path = "/usr/local/sbin:/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    missing = [p for p in PROGRAMS if not any(Path(d, p).exists() for d in path.split(":"))]
    if missing:
        raise LabError(f"{', '.join(missing)} not found: run `tools/setup host`")
    if not os.path.ismount("/sys/kernel/debug"):
        raise LabError("debugfs is not mounted: mount -t debugfs debugfs /sys/kernel/debug")


def _run(script: Script, modules: list[Path], cpu: int) -> Samples:
    """Run a script on a CPU of this machine, with the modules in one directory as in a guest."""
    with temporary("apic-timer-bench.") as home:
        for name in ("bin", "files", "modules", "work"):
            (home / name).mkdir()
        for module in modules:
            (home / "modules" / module.name).symlink_to(module.resolve())
        (home / "bin/put").write_text('#!/bin/sh\nexec cat >"$FILES/$1"\n')
        (home / "bin/put").chmod(0o755)
        (home / "script").write_text(script.text())
        path = f"{home}/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        done = subprocess.run(
            ["taskset", "-c", str(cpu), "sh", "-e", str(home / "script")],
            env={**os.environ, "PATH": path, "MODULES": f"{home}/modules",
                 "FILES": f"{home}/files", "WORK": f"{home}/work"},
            cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        )  # fmt: skip
        if done.returncode:
            raise LabError(f"bench {script.name}: status {done.returncode}\n{done.stdout[-3000:]}")
        say("bench", f"{script.name}, seed {script.seed}: done")
        return script.samples({p.name: p.read_bytes() for p in (home / "files").iterdir()})


def describe() -> dict[str, object]:
    """Return the properties of this machine that affect the figures."""
    info = _read("/proc/cpuinfo")
    fields = dict(
        (part.strip() for part in line.split(":", 1)) for line in info.splitlines() if ":" in line
    )
    flags = fields.get("flags", "").split()
    system = "/sys/devices/system"
    states = sorted(Path(f"{system}/cpu/cpu0/cpuidle").glob("state*"))
    return {
        "cpu_model": fields.get("model name", "unknown"),
        "microcode": fields.get("microcode", "unknown"),
        "kernel": platform.version(),
        "command_line": _read("/proc/cmdline"),
        "cpuidle_driver": _read(f"{system}/cpu/cpuidle/current_driver"),
        "cpuidle_governor": _read(f"{system}/cpu/cpuidle/current_governor"),
        "cpuidle_states": {_read(f"{s}/name"): "off" if _read(f"{s}/disable") == "1" else "on"
                           for s in states},
        "cpufreq_governor": _read(f"{system}/cpu/cpu0/cpufreq/scaling_governor"),
        "cpu_dma_latency_us": _dma_latency(),
        "tsc": [f for f in ("constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_deadline_timer",
                            "tsc_adjust", "waitpkg") if f in flags],
        "clocksource": _read(f"{system}/clocksource/clocksource0/current_clocksource"),
    }  # fmt: skip


def smi_counts() -> dict[str, int] | None:
    """Return the SMI count of each CPU that has one; None if none can be read."""
    counts = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/dev/cpu/{cpu}/msr", "rb", buffering=0) as msr:
                msr.seek(MSR_SMI_COUNT)
                counts[str(cpu)] = struct.unpack("<Q", msr.read(8))[0]
        except OSError:
            continue
    return counts or None


def _load_msr() -> bool:
    """Load the msr driver for the SMI count; tell whether it must be unloaded again."""
    if Path("/sys/module/msr").exists() or Path("/dev/cpu/0/msr").exists():
        return False
    return subprocess.run(["modprobe", "msr"], capture_output=True).returncode == 0


def _dma_latency() -> int | None:
    """Return the strictest latency, in us, that a program or driver requests of idle states."""
    try:
        return struct.unpack("<i", Path("/dev/cpu_dma_latency").read_bytes()[:4])[0]
    except (OSError, struct.error):
        return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "none"
