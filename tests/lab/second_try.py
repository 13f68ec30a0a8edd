"""A second try for tests that fail where time is real, on a machine booted for it.

There CPUs are threads of a machine that does other things too, which can hold one up for longer
than any limit that a test might set. Where time is virtual a guest does the same each time, so a
second try is for a machine that was lost: what its guest did it does again, what its emulator did
need not come again. What the first try found is told at the end. There is no second try after a
kernel has complained, or a torture has found a shot amiss.
"""

import pytest
from lab import splats
from lab.errors import LostVM
from machines import needed_by

# What an error says after which there is no second try.
COMPLAINTS = [*splats.PATTERNS, "splat", "FAIL operations="]


def allow(items) -> None:
    """Allow a second try: to all in real time, as what boots its own machine; else after a loss."""
    for item in items:
        machine = needed_by(item)
        when = {"rerun_except": COMPLAINTS}
        if machine and not machine.real_time:
            when["only_rerun"] = LostVM
        item.add_marker(pytest.mark.flaky(reruns=1, **when))


def begun(request) -> bool:
    """Tell whether this is a test's second try."""
    return getattr(request.node, "execution_count", 1) > 1


def tell(terminalreporter) -> None:
    """Print what the first tries found that a second one followed."""
    reports = terminalreporter.getreports("rerun")
    if reports:
        terminalreporter.section("failed at the first try")
    for report in reports:
        terminalreporter.write_line(report.nodeid)
        terminalreporter.write_line("\n".join(report.longreprtext.splitlines()[-30:]))
