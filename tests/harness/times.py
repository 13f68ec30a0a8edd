"""Where the time of a run went: the tables at its end, and how long a machine took the last time.

Seconds are of wall time but for `up` and what follows it, which are the guest's own: when its
first section began, and the longest sections. Sums may exceed the run: machines run beside tests.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from lab.base.cache import cache_dir
from machines import Boot, Machine

LONGEST = 3  # sections told of a machine


def sections(boot: Boot) -> tuple[float, list[tuple[float, str]]]:
    """Return when a guest's first section began, and (seconds, name) of each, longest first."""
    stamps = re.findall(r"^\[ *([\d.]+)\] @begin@ (\S+)$", boot.kernel_log, re.MULTILINE)
    every = re.findall(r"^\[ *([\d.]+)\]", boot.kernel_log, re.MULTILINE)
    begins = [(float(time), name) for time, name in stamps]
    if not begins:
        return 0, []
    ends = [*begins, (float(every[-1]), "")]
    return begins[0][0], sorted(((b - a, n) for (a, n), (b, _) in pairwise(ends)), reverse=True)


def of_machines(boots: Iterable[tuple[Machine, Boot]]) -> list[str]:
    """One line for each boot of a machine, the longest first."""
    lines = ["seconds       up  sections  machine"]
    for machine, boot in sorted(boots, key=lambda pair: -pair[1].seconds):
        up, every = sections(boot)
        longest = ", ".join(f"{name} {seconds:.0f}" for seconds, name in every[:LONGEST])
        lines.append(f"{boot.seconds:7.0f}  {up:7.1f}  {len(every):8}  {machine.id}"
                     f"{' (lost)' if boot.lost else ''}: {longest}")  # fmt: skip
    return lines if len(lines) > 1 else []


def of_files(reports: Iterable) -> list[str]:
    """One line for each file of tests, the longest first; reports as pytest keeps them."""
    seconds, tests = defaultdict(float), defaultdict(set)
    for report in reports:
        file = report.nodeid.partition("::")[0]
        seconds[file] += report.duration
        tests[file].add(report.nodeid)
    lines = [f"{seconds[file]:7.0f}  {len(tests[file]):5}  {file}"
             for file in sorted(seconds, key=seconds.get, reverse=True)]  # fmt: skip
    return ["seconds  tests  file", *lines] if lines else []


def of_rest(spent: Mapping[str, float]) -> list[str]:
    """One line for each of the other things that took time, the longest first."""
    return [f"{spent[what]:7.0f}  {what}" for what in sorted(spent, key=spent.get, reverse=True)]


def _file() -> Path:
    return cache_dir() / "machines.json"


def expected() -> dict[str, float]:
    """Return the wall time of each machine's last boot in a whole run, by its id."""
    try:
        return json.loads(_file().read_text())
    except (FileNotFoundError, ValueError):
        return {}


def remember(boots: Iterable[tuple[Machine, Boot]]) -> None:
    """Keep the wall times for the next run."""
    found = {machine.id: round(boot.seconds, 1) for machine, boot in boots if not boot.lost}
    if found:
        temp = _file().with_suffix(".new")
        temp.write_text(json.dumps(expected() | found, indent=1) + "\n")
        temp.rename(_file())
