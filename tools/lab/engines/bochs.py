"""Boot a kernel in Bochs, run a script in it, return its output.

Bochs has features that QEMU's emulated CPUs lack: a TSC-deadline timer, x2APIC without an IOMMU,
CPU models of Intel's. Its TSC counts the instructions that its CPUs have executed, so the same run
twice gives the same bytes, even with several CPUs.
"""

import gzip
import os
import re
import subprocess
import time
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Thread

from ..base.background import guarded
from ..base.cache import temporary
from ..base.errors import LabError
from ..build import native
from ..kernels import unpacked
from ..kernels.kernels import Kernel
from . import image, limit, pvh
from .options import PARAMETERS, Guest, engine
from .result import Result

SUITES = ("trixie", "trixie-security")
PACKAGES = ["bochs", "bochs-term", "bochsbios", "vgabios", "ncurses-base"]
HZ = 50_000_000  # of the TSC and of the LAPIC timer; one instruction takes one cycle
# Bochs lets each CPU execute a burst of instructions in turn, and advances the TSC by the average
# length of a burst; a halted CPU counts with this length, which is near that of a real burst. With
# Bochs's default of 16, a CPU whose neighbour is halted would see the TSC at twice the speed.
HALTED = 5
SERIAL_PORTS = ("console", "data", "files")
# Page table isolation would take most of the time.
OWN = f"console=ttyS0 quiet reboot=t nopti {PARAMETERS}"
MODEL = "corei7_ivy_bridge_3770k"
# This model has TSC_ADJUST. The kernel uses its TSC deadline only from this microcode version on,
# which Bochs reads from a file: number of the MSR, type, then in halves the value on reset, the
# reserved bits, and the bits that cannot be changed.
HASWELL = "corei7_haswell_4770, msrs={home}/msrs"
HASWELL_MSRS = "0x0000008b 0 00000028 00000000 00000000 00000000 ffffffff ffffffff\n"
X2APIC_BASE = 0xFEE00D00  # enabled, x2APIC, boot CPU
X2APIC_PARAMETERS = "noapic x2apic_phys"

CONFIGURATION = """\
plugin_ctrl: speaker=0, gameport=0, parallel=0, iodebug=0
display_library: term
cpu: model={model}, reset_on_triple_fault=0
cpu: count={cpus}, quantum={halted}, ips={hz}
clock: sync=none, time0=1700000000
megs: {memory}
romimage: file={share}/BIOS-bochs-latest
vgaromimage: file={share}/VGABIOS-lgpl-latest
optromimage1: file={home}/rom, address={rom:#x}
ata0-master: type=disk, path={home}/disk, mode=flat
log: {home}/log
panic: action=fatal
error: action=ignore
info: action=ignore
"""

# Name, length, bytes. gzip detects lost bytes.
PUT = """\
gzip -c >/tmp/put.$$
echo "$1 $(wc -c </tmp/put.$$)" >/dev/ttyS2
cat /tmp/put.$$ >/dev/ttyS2
rm /tmp/put.$$"""
SETUP = "stty -F /dev/ttyS2 raw -echo"


@engine(cpus=1, memory=512, timeout=600, seed=42, x2apic=False, tsc_adjust=False)
def run(kernel: Kernel, script: str, guest: Guest) -> Result:
    """Run a shell script (busybox sh -e) in a Bochs guest of a stock kernel.

    The guest is as in virtual.run. ``put NAME < FILE`` transfers 11 kB per second of guest time,
    after compression.
    """
    with temporary("apic-timer-vm.") as home:
        system = image.build(script, guest.modules, guest.files, put=PUT, setup=SETUP)
        system.write(home / "initrd")
        _configure(home, kernel, guest)
        reason = _emulate(home, _argv(home), _environment(kernel, guest.seed), guest.timeout)
        return image.result(home / "console", home / "data", _files(home / "files"), reason)


def root() -> Path:
    """Return the directory with Bochs; LabError if it is not available."""
    return unpacked.unpacked("bochs", SUITES, PACKAGES)


def _configure(home: Path, kernel: Kernel, guest: Guest) -> None:
    """Write Bochs's configuration, and the disk and ROM that start the kernel."""
    initrd = (home / "initrd").read_bytes()
    parameters = f"{OWN} {X2APIC_PARAMETERS if guest.x2apic else ''} {guest.append}".strip()
    disk = pvh.write_disk(home / "disk", kernel, initrd, guest.memory, parameters)
    (home / "msrs").write_text(HASWELL_MSRS)
    (home / "rom").write_bytes(pvh.rom(kernel, disk, X2APIC_BASE if guest.x2apic else 0))
    text = CONFIGURATION.format(
        cpus=guest.cpus, halted=HALTED, hz=HZ, memory=guest.memory,
        share=root() / "usr/share/bochs", home=home, rom=pvh.ROM,
        model=HASWELL.format(home=home) if guest.tsc_adjust else MODEL,
    )  # fmt: skip
    for n, name in enumerate(SERIAL_PORTS, start=1):
        text += f"com{n}: enabled=1, mode=file, dev={home}/{name}\n"
    (home / "configuration").write_text(text)
    # Debian's Bochs stops in its debugger before the first instruction.
    (home / "debugger").write_text("continue\n")


def _argv(home: Path) -> list[str]:
    return [*unpacked.loader(root()), f"{root()}/usr/bin/bochs-bin", "-q",
            "-f", f"{home}/configuration", "-rc", f"{home}/debugger"]  # fmt: skip


def _environment(kernel: Kernel, seed: int) -> dict[str, str]:
    library = native.compiled(kernel, "srand.c", ["-O2", "-shared", "-fPIC"])
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "LAB_SEED": str(seed),
        "TERM": "xterm",
        "TERMINFO": f"{root()}/usr/share/terminfo",
        "LTDL_LIBRARY_PATH": f"{root()}/{unpacked.LIBRARIES}/bochs/plugins",
    }


def _emulate(home: Path, argv: list[str], environment: dict[str, str], timeout: float) -> str:
    """Run Bochs to its end; return why there is no verdict, in case there is none.

    Bochs ends with a status of 1 and a message when its guest powers off, and ignores SIGTERM.
    """
    with open(home / "screen", "wb") as screen, subprocess.Popen(
        argv, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=screen,
        stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        Thread(target=_watch_screen, args=(home / "screen", process), daemon=True).start()
        try:
            with guarded(process):
                limit.wait(process, timeout)
        except subprocess.TimeoutExpired:
            return f"no verdict within {timeout:g} s"
        finally:
            process.kill()
    log = (home / "log").read_text(errors="replace") if (home / "log").exists() else ""
    found = re.findall(r">>PANIC<< (.*)", log)
    return f"Bochs ended: {found[-1]}" if found else f"Bochs does not run:\n{_tail(home)}"


def _watch_screen(said: Path, process: subprocess.Popen) -> None:
    """Read and discard Bochs's terminal output until it ends.

    Bochs blocks once 4 KiB are unread: the blinking cursor alone writes that much within a quarter
    of an hour of wall time.
    """
    while process.poll() is None:
        found = re.search(r'connected to screen "(.+)"', said.read_text(errors="replace"))
        if not found:
            time.sleep(0.1)
            continue
        # Reading the terminal fails when Bochs ends.
        with (
            suppress(OSError),
            open(os.open(found[1], os.O_RDONLY | os.O_NOCTTY), "rb", 0) as screen,
        ):
            while screen.read(4096):
                pass
        return


def _tail(home: Path) -> str:
    return (home / "screen").read_text(errors="replace")[-1000:]


def _files(path: Path) -> dict[str, bytes]:
    """Return the files that `put` wrote, by name."""
    data = path.read_bytes() if path.exists() else b""
    files, at = {}, 0
    while found := re.compile(rb"([^\n]+) (\d+)\n").match(data, at):
        at = found.end() + int(found[2])
        try:
            files[found[1].decode()] = gzip.decompress(data[found.end() : at])
        except (EOFError, OSError, zlib.error) as error:
            raise LabError(f"{found[1].decode()} arrived corrupted: {error}") from error
    return files
