"""The lab's QEMU, as a program that can be run as if it was installed."""

import functools
import os
import subprocess
import threading
from pathlib import Path

from ..base.cache import cache_dir
from ..base.errors import LabError
from ..base.progress import say
from ..build import plugins, userland

MINIMUM = 10  # major version: see userland.py
# Kernels copy and clear by bytes where the CPU claims to be fast at that, and emulation takes each
# byte as an iteration of a loop: 4096 for a page. By eight bytes it is 512, and a guest that reads
# files takes about half as much of its host's time. In virtual time an iteration counts as an
# instruction: 4 us for a page, much more than such a CPU takes.
CPU = "max,-erms,-fsrm"

_WRAPPER = """\
#!/bin/sh
# Run the unpacked QEMU with its own libraries, modules and firmware.
root={root}
export QEMU_MODULE_DIR=$root/usr/lib/x86_64-linux-gnu/qemu
exec {loader} "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" \\
\t-L "$root/usr/share/seabios" "$@"
"""


def binary() -> Path:
    """Return an executable that takes QEMU's options. LabError if it is not available."""
    root = userland.root()
    text = _WRAPPER.format(root=root, loader=" ".join(userland.loader()))
    wrapper = cache_dir("bin") / "qemu-system-x86_64"
    if not wrapper.exists() or wrapper.read_text() != text:
        temp = wrapper.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temp.write_text(text)
        temp.chmod(0o755)
        if int(_version(temp).split()[3].split(".")[0]) < MINIMUM:
            raise LabError(f"QEMU is too old, the lab needs {MINIMUM}: {_version(temp)}")
        temp.rename(wrapper)
    return wrapper


def virtual_time(seed: int, cpus: int = 1) -> list[str]:
    """Return options for virtual time: an instruction takes 1 ns, and the TSC runs at 1 GHz.

    Idle time is skipped, and the same `seed` gives the same bytes. With several CPUs this is only
    nearly so: a thread of QEMU skips idle time. Now and then, mostly on a busy machine, it does so
    just after a CPU has halted but before that CPU's last instructions are counted; the guest then
    wakes too late by that many. With one CPU, recording keeps the two threads apart.
    """
    record = ",rr=record,rrfile=/dev/null" if cpus == 1 else ""
    return ["-accel", "tcg", "-icount", f"shift=0,sleep=off{record}", "-seed", str(seed),
            *(cheap_pause() if cpus == 1 else ()), "-rtc", "base=2000-01-01,clock=vm",
            "-machine", "q35", "-cpu", CPU, "-bios", "qboot.rom", "-nodefaults",
            "-no-user-config", "-no-reboot"]  # fmt: skip


@functools.cache
def cheap_pause() -> tuple[str, ...]:
    """Return options that make PAUSE cheap for the host: see ../plugins/pause.c."""
    try:
        return ("-plugin", plugins.option(plugins.plugin("pause")))
    except LabError as error:  # guests behave the same without it
        say("lab", f"virtual time runs more slowly: {error}")
        return ()


def real_time(machine: str = "q35", cpu: str = CPU) -> list[str]:
    """Return options for real time, with the firmware of the machine: CPUs are threads."""
    return ["-accel", "tcg", "-machine", machine, "-cpu", cpu, "-nodefaults", "-no-user-config",
            "-no-reboot"]  # fmt: skip


def version() -> str:
    """Return the version line of the lab's QEMU."""
    return _version(binary())


def _version(program: Path) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"the lab's QEMU does not run: {done.stderr}")
    return done.stdout.splitlines()[0]
