"""A second try for tests that fail where time is real, on a machine booted for it.

There CPUs are threads of a machine that does other things too, which can hold one up for longer
than any limit that a test might set. What the first try found is told at the end. There is no
second try after a kernel has complained, nor where time is virtual.
"""

import pytest
from lab import splats
from machines import Machine

# What an error says after which there is no second try.
COMPLAINTS = [*splats.PATTERNS, "splat"]


def allow(items) -> None:
    """Allow a second try to those that run in real time, as does what boots its own machine."""
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        machine = params["guest"].machine if "guest" in params else params.get("machine")
        if not isinstance(machine, Machine) or machine.real_time:
            item.add_marker(pytest.mark.flaky(reruns=1, rerun_except=COMPLAINTS))


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
