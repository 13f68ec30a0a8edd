"""In mode exact a handler's first instruction is never early and hardly late, whatever its code."""

import re

import pytest
from machines import some

ROW = re.compile(
    r"(\w+), (\w+): error (-?\d+) to (-?\d+), p50 (-?\d+), p99 (-?\d+); now (-?\d+) to (-?\d+)"
)
MODES = ("raw", "mean", "exact", "exact_late")
# The handlers, and the instructions that each may have before it reads the TSC: ENDBR and LFENCE.
# In virtual time an instruction takes a cycle.
HANDLERS = {"bare": 0, "assembler": 1, "untraced": 1, "ordered": 2}
LOOP = 4  # instructions of the loop that ends the wait


@pytest.mark.guest(
    some(engine="virtual", cpus=1),
    """
    unload
    load apic_timer
    load apic_timer_selftest
    echo first_instruction >$DEBUG/apic_timer_selftest/run
    cat $DEBUG/apic_timer_selftest/result
    unload
    """,
)
def test_first_instruction(guest):
    """In mode exact: never early, and hardly late; no handler gets a time in the future.

    If a compiler copies the dispatch for the measured handler, or inlines that handler, every other
    handler starts some cycles late.
    """
    verdict, *notes = guest.ok().splitlines()
    assert verdict == "ok"
    print("\n".join(notes))
    rows = {(m[1], m[2]): [*map(int, m.groups()[2:])] for m in map(ROW.fullmatch, notes) if m}
    assert [*rows] == [(mode, handler) for mode in MODES for handler in HANDLERS]
    for (mode, handler), (least, _, _, p99, _, now_most) in rows.items():
        assert now_most <= 0
        if mode.startswith("exact"):
            assert least >= 0
        if mode == "exact" and guest.machine.source != "hrtimer":
            assert p99 <= LOOP - 1 + HANDLERS[handler], (mode, handler)
