"""Where a run spent its time: the tables at its end, and the last duration of each machine.

Seconds are wall time, except for `up` and the columns after it, which are in the guest's own time:
when its first section began, and the longest sections. In virtual time idle seconds cost nothing,
so a section's seconds there are those in which a CPU was busy: each takes several seconds of wall
time. Sums may exceed the run, because machines run in parallel with tests.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

from lab.base.cache import cache_dir
from machines import Boot, Machine

LONGEST = 3  # sections reported per machine
MACHINES, SECTIONS = "machines.json", "sections.json"  # in the cache


def sections(machine: Machine, boot: Boot) -> tuple[float, list[tuple[float, str]]]:
    """Return when a guest's first section began, and each one's (seconds, name), longest first."""
    stamps = re.findall(
        r"^\[ *([\d.]+)\] @(?:begin@ (\S+)|over@) ([\d.]+)$", boot.kernel_log, re.MULTILINE
    )
    if not stamps:
        return 0, []
    if stamps[-1][1]:  # the machine was lost in this section
        last = re.findall(r"^\[ *([\d.]+)\]", boot.kernel_log, re.MULTILINE)[-1]
        stamps.append((last, "", stamps[-1][2]))
    found = []
    for (begin, name, idle), (end, _, idle_at_end) in pairwise(stamps):
        seconds = float(end) - float(begin)
        if not machine.real_time:
            seconds = seconds * machine.cpus - (float(idle_at_end) - float(idle))
        found.append((max(seconds, 0), name))
    return float(stamps[0][0]), sorted(found, reverse=True)


def of_machines(boots: Iterable[tuple[Machine, Boot]]) -> list[str]:
    """Return one line per boot of a machine, the longest first."""
    lines = ["seconds       up  sections  machine"]
    for machine, boot in sorted(boots, key=lambda pair: -pair[1].seconds):
        up, every = sections(machine, boot)
        longest = ", ".join(f"{name} {seconds:.0f}" for seconds, name in every[:LONGEST])
        lines.append(f"{boot.seconds:7.0f}  {up:7.1f}  {len(every):8}  {machine.id}"
                     f"{' (lost)' if boot.lost else ''}: {longest}")  # fmt: skip
    return lines if len(lines) > 1 else []


def of_files(reports: Iterable) -> list[str]:
    """Return one line per file of tests, the longest first; reports are pytest's."""
    seconds, tests = defaultdict(float), defaultdict(set)
    for report in reports:
        file = report.nodeid.partition("::")[0]
        seconds[file] += report.duration
        tests[file].add(report.nodeid)
    lines = [f"{seconds[file]:7.0f}  {len(tests[file]):5}  {file}"
             for file in sorted(seconds, key=seconds.get, reverse=True)]  # fmt: skip
    return ["seconds  tests  file", *lines] if lines else []


def of_rest(spent: Mapping[str, float]) -> list[str]:
    """Return one line per other activity that took time, the longest first."""
    return [f"{spent[what]:7.0f}  {what}" for what in sorted(spent, key=spent.get, reverse=True)]


def expected() -> dict[str, float]:
    """Return the wall time of each machine's boots in the last whole run, by id."""
    return _read(MACHINES)


def took() -> dict[str, dict[str, float]]:
    """Return the seconds of sections in machines with several boots, by id and name."""
    return _read(SECTIONS)


def remember(boots: Mapping[Machine, list[Boot]]) -> None:
    """Keep both for the next run, except for lost machines."""
    whole = {m: every for m, every in boots.items() if not any(boot.lost for boot in every)}
    _write(MACHINES, {m.id: round(sum(b.seconds for b in every), 1) for m, every in whole.items()})
    _write(SECTIONS, {
        m.id: {name: round(s, 3) for boot in every for s, name in sections(m, boot)[1]}
        for m, every in whole.items() if m.boots > 1
    })  # fmt: skip


def _read(name: str) -> dict:
    try:
        return json.loads((cache_dir() / name).read_text())
    except (FileNotFoundError, ValueError):
        return {}


def _write(name: str, found: dict) -> None:
    if found:
        temp = cache_dir() / f"{name}.new"
        temp.write_text(json.dumps(_read(name) | found, indent=1) + "\n")
        temp.rename(cache_dir() / name)
