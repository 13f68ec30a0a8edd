"""The result files of docs/results; each begins with the record of what made it: see `made_by`."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

from ..source import TREE, read, tracked

RESULTS = TREE / "docs/results"
# For each, the rooms of module/ other than core/ whose modules take part.
ROOMS = {"demo": ("device",), "bench": ("device", "measure"), "user": ("device",),
         "calendar": ("calendar",), "shaper": ("shaper",), "idle": (),
         "clocks": ("clock",), "torture": ("shaper",)}  # fmt: skip
IN_GUESTS = [RESULTS / f"{name}.json" for name in ROOMS]
DEMO, BENCH, USER, CALENDAR, SHAPER, IDLE, CLOCKS, TORTURE = IN_GUESTS
# One for each CPU that was measured itself, and the sources that its processes are built from.
NATIVE = sorted(RESULTS.glob("native-*.json"))
IN_PROCESSES = (
    r"module/core/(lib/queue\.[ch]|hw/spin\.h|timers/(dispatch|calibrate)\.[ch]|timers/probe\.S)",
    r"user/apic_timer_user\.h",
)
FILES = [*IN_GUESTS, *NATIVE]
MADE = ("kernel", "tree", "compiler", "QEMU", "CPU", "busybox", "rt-tests", "trace-cmd",
        "inputs", "size")  # fmt: skip


def tree_hash(result: Path) -> str:
    """Return a hash of the modules' sources that a result depends on.

    Comments and white space are left out, and so are headers that no such source includes. An
    include counts by the header that it brings.
    """
    rooms = "|".join(("core", *ROOMS.get(result.stem, ())))
    patterns = (rf"module/({rooms})/.*\.[ch]", rf"module/(({rooms})/)?Kbuild")
    if result.stem not in ROOMS:
        patterns = IN_PROCESSES
    texts = {file: _bare(file) for pattern in patterns for file in tracked(pattern)}
    shared = set(tracked(r"include/.*\.h"))
    new = list(texts.values())
    while new:
        wanted = {f"include/{name}" for name in re.findall(r"#include <(\S+)>", " ".join(new))}
        headers = {file: _bare(file) for file in (wanted & shared) - set(texts)}
        texts |= headers
        new = list(headers.values())
    key = hashlib.sha256()
    for _, text in sorted(texts.items()):
        rest = re.sub(r"#include [<\"]\S+[>\"]", "", text).split()
        key.update(" ".join(rest).encode() + b"\0")
    return key.hexdigest()[:16]


def _bare(file: str) -> str:
    if file.endswith((".c", ".h")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", read(file), flags=re.S)
    else:
        text = re.sub(r"^#.*$", "", read(file), flags=re.M)
    return " ".join(text.split())


def native(cpu: str) -> Path:
    """Return the result file of this CPU."""
    name = re.sub(r"\(r\)|\(tm\)|[^a-z0-9]+", " ", cpu.partition(",")[0].lower())
    name = "-".join(name.split())
    return RESULTS / f"native-{name}.json"


def made_by(result: Path, kernel, size: str) -> dict[str, str]:  # kernel: lab.kernels.Kernel
    """Return what figures depend on: kernel, sources, and every program in the guest."""
    from lab.build import userland
    from lab.engines import qemu
    from lab.kernels import kernels, lock
    from lab.kernels.chroot import run_in

    def first(pattern: str, *argv: str) -> str:
        done = subprocess.run([*userland.loader(), *argv], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        found = re.search(pattern, done.stdout)
        return found[1] if found else "unknown"

    programs = userland.root() / "usr/bin"
    others = [*lock.differing(kernels.part(kernel.series), kernel.root),
              *lock.differing("userland", userland.root())]  # fmt: skip
    compiler = run_in(kernel.root, ["gcc", "--version"]).stdout.splitlines()[0]
    found = {
        "kernel": kernel.release,
        "tree": tree_hash(result),
        "compiler": compiler,
        "QEMU": re.sub(r"^QEMU emulator version ", "", qemu.version()),
        "CPU": qemu.CPU,
        "busybox": first(r"BusyBox v(\S+ \(\S+ [^)]*\)|\S+)", f"{programs}/busybox", "--help"),
        "rt-tests": first(r"V ([\d.]+)", f"{programs}/cyclictest", "--help"),
        "trace-cmd": first(r"version ([\d.]+\S*)", f"{programs}/trace-cmd", "--version"),
        "inputs": f"not as locked: {', '.join(others)}" if others else "as locked",
        "size": size,
    }
    return {name: found[name] for name in MADE}


def header(made: dict[str, str]) -> str:
    """Return the record of what made the results, as a table."""
    rows = "".join(f"| {name} | {value} |\n" for name, value in made.items())
    return f"| made by | |\n| --- | --- |\n{rows}"


def write(file: Path, made: dict[str, str], **rest) -> None:
    """Write a result file; lists in `rest` get one line per row."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'"made": {json.dumps(made, indent=1)}']
    for name, value in rest.items():
        rows = ",\n".join(json.dumps(row) for row in value) if isinstance(value, list) else None
        lines.append(f'"{name}": ' + (json.dumps(value) if rows is None else f"[\n{rows}\n]"))
    file.write_text("{" + ",\n".join(lines) + "}\n")


def load(file: Path) -> dict:
    """Return the contents of a result file: "made", and the rest by name, such as "rows"."""
    return json.loads(file.read_text())


def stale() -> list[str]:
    """List the results made by module sources that differ from this tree's."""
    found = []
    for file in FILES:
        name = file.relative_to(TREE)
        if not file.exists():
            found.append(f"{name} is missing: make results")
        elif (made := load(file)["made"])["tree"] != (now := tree_hash(file)):
            where = made.get("kernel", made.get("CPU"))
            found.append(f"{name} is stale: measured on {where} with other sources of the "
                         f"modules ({made['tree']}, now {now}): make results")  # fmt: skip
    return found
