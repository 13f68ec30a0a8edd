"""The accesses to ports in a guest, from boot on, as the plug-in `ports` recorded them.

`apic-timer report` draws the rows, like figure 3 of the paper of 1997: one reading of the clock, by
its ports 0x70 and 0x71.
"""

from collections import Counter
from dataclasses import dataclass

from ..build import plugins
from ..engines import virtual
from ..kernels.kernels import Kernel
from .symbols import Symbols

NOBODY = "not the kernel"  # firmware, say
TELL = 0xE9  # the port of `tell`
INDEX, DATA = 0x70, 0x71  # of the clock
SCRIPT = """
tell clock
cat /sys/class/rtc/rtc0/time
tell end
put symbols </proc/kallsyms
"""


@dataclass(frozen=True)
class Access:
    """One IN or OUT."""

    at: int  # instructions executed by the guest so far
    way: str  # "in", "out", "ins", "outs"
    port: int
    size: int
    value: int | None
    address: int  # of the instruction

    @classmethod
    def parse(cls, line: str) -> "Access":
        at, way, port, size, value, address = line.split()
        return cls(int(at), way, int(port, 16), int(size),
                   None if value == "-" else int(value, 16), int(address, 16))  # fmt: skip


def measure(kernel: Kernel, script: str = SCRIPT) -> tuple[list[Access], Symbols]:
    """Boot a guest and run a script, which must `put` its symbols; return all accesses."""
    result = virtual.run(kernel, script, timeout=600,
                         plugins={"ports": plugins.plugin("ports")}).check()  # fmt: skip
    accesses = [Access.parse(line) for line in result.files["ports"].decode().splitlines()]
    return accesses, Symbols(result.files["symbols"].decode())


def between(accesses: list[Access], begin: str, end: str) -> list[Access]:
    """Return the accesses between the guest's lines `begin` and `end`."""
    text, found, inside = "", [], False
    for access in accesses:
        if access.port != TELL:
            if inside:
                found.append(access)
            continue
        text += chr(access.value or 0)
        if text.endswith("\n"):
            inside = text == f"{begin}\n" or (inside and text != f"{end}\n")
            text = ""
    return found


def rows(accesses: list[Access], symbols: Symbols) -> dict:
    """Return the rows for a report: each access of one reading, and counts by port."""
    read = [a for a in between(accesses, "clock", "end") if a.port in (INDEX, DATA)]
    return {
        "accesses": len(accesses),
        "clock": [
            {"cycles": a.at - read[0].at, "way": a.way, "port": f"0x{a.port:02x}",
             "value": a.value, "by": symbols.find(a.address).name or NOBODY}
            for a in read
        ],
        "ports": _by_port([a for a in accesses if a.port != TELL], symbols),
    }  # fmt: skip


def _by_port(accesses: list[Access], symbols: Symbols) -> list[dict]:
    """Count by port, the busiest first; for each port name the function that accesses it most."""
    ways = Counter((a.port, a.way.startswith("in")) for a in accesses)
    places = Counter((a.port, a.address) for a in accesses)
    functions: dict[int, Counter[str]] = {}
    for (port, address), count in places.items():
        functions.setdefault(port, Counter())[symbols.find(address).name or NOBODY] += count
    found = [{"port": f"0x{port:02x}", "in": ways[port, True], "out": ways[port, False],
              "by": max(sorted(by), key=by.__getitem__)}
             for port, by in functions.items()]  # fmt: skip
    return sorted(found, key=lambda row: (-row["in"] - row["out"], row["port"]))
