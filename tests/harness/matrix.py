"""The table that ends a run with --matrix: each machine, and the results of its tests.

The same goes to build/matrix.json: a list of objects with kernel, engine, cpus, source, x2apic,
append (kernel parameters), compiler (of the modules), passed, failed, skipped (counts), reasons
(why any were skipped) and seconds (wall time of its boots, null if none was completed).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from machines import Boot, Machine

COLUMNS = ("kernel", "engine", "cpus", "source", "x2apic", "append", "compiler",
           "passed", "failed", "skipped", "seconds")  # fmt: skip


@dataclass
class Row:
    """Results of a machine's tests."""

    machine: Machine
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: set[str] = field(default_factory=set)

    def count(self, outcome: str, reason: str = "") -> None:
        """Count a test: "passed", "skipped" with the reason, or anything else, a failure."""
        if outcome == "passed":
            self.passed += 1
        elif outcome == "skipped":
            self.skipped += 1
            self.reasons.add(reason)
        else:
            self.failed += 1


def rows(
    tests: Iterable[tuple[Machine, str, str]], boots: Mapping[Machine, Iterable[Boot]]
) -> list[dict]:
    """Summarise (machine, outcome, reason) of the tests, in the order of each machine's first."""
    seconds = {machine: sum(boot.seconds for boot in every) for machine, every in boots.items()}
    found: dict[Machine, Row] = {}
    for machine, outcome, reason in tests:
        found.setdefault(machine, Row(machine)).count(outcome, reason)
    return [
        {
            "kernel": machine.kernel,
            "engine": machine.engine,
            "cpus": machine.cpus,
            "source": machine.source,
            "x2apic": machine.x2apic,
            "append": machine.append,
            "compiler": machine.compiler,
            "passed": row.passed,
            "failed": row.failed,
            "skipped": row.skipped,
            "reasons": sorted(row.reasons),
            "seconds": round(seconds[machine], 1) if machine in seconds else None,
        }
        for machine, row in found.items()
    ]


def table(found: list[dict]) -> str:
    """Return rows as aligned text, with the reasons for skipping below."""
    cells = [COLUMNS, *(tuple(str(row[name]) for name in COLUMNS) for row in found)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(COLUMNS))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in cells]
    for row in found:
        lines += [f"skipped on {row['kernel']}: {reason}" for reason in row["reasons"]]
    return "\n".join(lines)


def write(path: Path, found: list[dict]) -> None:
    """Write rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
