"""Measure the CPU itself for docs/results, which no emulator can: in processes, without modules.

The dispatch of an expiry and the wait of a program (`make spin`), the queue of timers with cold
caches (`make queue`), and the loops and loads of the tool `apic-timer`. Needs make and gcc only.
"""

import json
import re
import subprocess
from pathlib import Path

from ..base.errors import LabError
from ..base.progress import say

TREE = Path(__file__).resolve().parents[3]
WAIT_S = 120  # for a core that others do not use
TOOL = "build/tool/apic-timer"
CACHE = Path("/sys/devices/system/cpu/cpu0/cache")
SPIN = re.compile(r"(.+): (.+?)" + r" +(-?\d+)" * 4)
UNTIL = re.compile(r"(\w+): (\d+) ahead" + r" +(-?\d+)" * 4)
QUEUE = re.compile(r" *(\d+) (\w+) +(\S+(?:,? \w+)?) +(\d+) +(\d+) +(\d+) +(\d+)(?: +(\d+))?")


def cpu() -> str:
    """Return the name of this machine's CPU, and whether it is virtual."""
    text = Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    where = ", in a virtual machine" if re.search(r"^flags\s*:.* hypervisor\b", text, re.M) else ""
    return f"{name[1] if name else 'unknown'}{where}"


def compiler() -> str:
    """Return the version of the compiler that builds the programs."""
    return _run(["gcc", "--version"]).splitlines()[0]


def measure() -> list[dict]:
    """Run everything; return the rows. LabError if something fails."""
    for target in ("build/spin/spin", "build/spin/until", "build/queue/time", TOOL):
        _run(["make", "-s", "-C", str(TREE), target])
    say("native", "dispatch")
    rows = of_spin(_run([str(TREE / "build/spin/spin")]))
    rows += of_until(_run([str(TREE / "build/spin/until")]))
    for program in ("count", "time"):
        say("native", f"queue, {program}")
        rows += of_queue(program, _run([str(TREE / "build/queue" / program)]))
    patient = ("--wait", f"{WAIT_S}")
    for command, more in (("clocks", ()), ("cycles", patient), ("memory", patient)):
        say("native", command)
        rows += _tool(command, json.loads(_run([str(TREE / TOOL), command, "--json", *more])))
    return [*rows, {"bench": "caches", **caches()}]


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def of_spin(text: str) -> list[dict]:
    """Return rows from `make spin`'s output, in TSC cycles; first the lines above its table."""
    rows = [{"bench": f"spin/{cache}/{what}", "min": int(least), "p50": int(p50), "p99": int(p99),
             "max": int(most)}
            for cache, what, least, p50, p99, most in map(re.Match.groups, filter(
                None, map(SPIN.fullmatch, text.splitlines())))]  # fmt: skip
    patterns = {"step": r"step of the TSC: (\d+)", "call": r"handler at least: (\d+) after a wait",
                "taken_off": r"taken off for that: (\d+) after a wait",
                "early": r"\nearly, .*: (\d+); seen"}  # fmt: skip
    numbers = {name: int(re.search(pattern, text)[1]) for name, pattern in patterns.items()}
    return [{"bench": "spin", **numbers}, *rows]


def of_until(text: str) -> list[dict]:
    """Return rows from the table of the library's wait, in TSC cycles; first the lines above it."""
    rows = [{"bench": "until/wait", "wait": wait, **{name: int(value) for name, value in zip(
                ("ahead", "min", "p50", "p99", "max"), values, strict=True)}}
            for wait, *values in map(re.Match.groups, filter(
                None, map(UNTIL.fullmatch, text.splitlines())))]  # fmt: skip
    patterns = {"taken_off": r"next instruction: (\d+)", "early": r"\nearly: (\d+)"}
    numbers = {name: int(re.search(pattern, text)[1]) for name, pattern in patterns.items()}
    return [{"bench": "until", **numbers}, *rows]


def of_queue(program: str, text: str) -> list[dict]:
    """Return rows from a table of `make queue`: "time" in ns, or "count" in timers touched."""
    names = ("n", "p50", "p99", "max", "lines")
    repeats = int(re.match(r"least of (\d+)\n", text)[1])
    rows = []
    for found in filter(None, map(QUEUE.fullmatch, text.splitlines())):
        pending, order, operation, *numbers = found.groups()
        rows.append({"bench": f"queue/{program}", "pending": int(pending), "order": order,
                     "operation": operation, "repeats": repeats,
                     **{name: int(value) for name, value in zip(names, numbers, strict=True)
                        if value}})  # fmt: skip
    return rows


def _tool(command: str, found: dict) -> list[dict]:
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    whole = {name: value for name, value in found.items() if name not in lists}
    return [{"bench": command, **whole},
            *({"bench": f"{command}/{name}", **row}
              for name, rows in lists.items() for row in rows)]  # fmt: skip


def caches() -> dict[str, int]:
    """Return the sizes of the data caches in KiB, by level."""
    found = {}
    for index in sorted(CACHE.glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            level = (index / "level").read_text().strip()
            found[f"l{level}"] = int((index / "size").read_text().strip().removesuffix("K"))
    return found
