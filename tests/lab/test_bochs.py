"""Guests in Bochs repeat exactly, their end is noticed, and the TSC deadline is met exactly."""

import pytest
from lab.base.errors import LabError, LostVM
from lab.bench import bochs as bench_bochs
from lab.bench import period as bench_period
from lab.bench import rows
from lab.engines import bochs
from lab.kernels import kernels

pytestmark = pytest.mark.long

SHOTS = 300


def test_a_panic_is_noticed():
    """It is noticed at once, not by the time limit: the kernel must end the emulator."""
    kernel = kernels.ensure(bench_bochs.SERIES)
    with pytest.raises(LostVM, match="Bochs ended: .*no resolution") as lost:
        bochs.run(kernel, "echo before\necho c >/proc/sysrq-trigger", timeout=1800)
    assert "\nbefore\n" in lost.value.console
    assert "Kernel panic - not syncing: sysrq triggered crash" in lost.value.console


def test_too_little_memory_is_refused():
    with pytest.raises(LabError, match="64 MiB of memory are too little"):
        bochs.run(kernels.ensure(bench_bochs.SERIES), "", memory=64)


def test_a_screen_that_nobody_looks_at():
    """Bochs draws the screen several times a second, even if nobody reads it."""
    draw = """
        for i in $(seq 100); do
            head -c 4000 /dev/urandom | dd of=/dev/mem bs=4096 seek=184 2>/dev/null
        done
        echo drawn
    """
    found = bochs.run(kernels.ensure(bench_bochs.SERIES), draw, timeout=600)
    assert found.output.endswith("drawn\n")


def measure(apic: str) -> rows.Samples:
    """Return the samples for an APIC mode."""
    guest = bench_bochs.in_bochs(kernels.ensure(bench_bochs.SERIES), bench_bochs.APICS[apic])
    return guest(bench_bochs.script(apic, SHOTS))


@pytest.fixture(scope="module")
def measured() -> dict[str, rows.Samples]:
    return {apic: measure(apic) for apic in ("xapic", "x2apic")}


@pytest.mark.matrix
def test_repeats(measured):
    """Everything measured repeats, down to each error: the seed is the same."""
    assert measure("xapic") == measured["xapic"]


@pytest.mark.parametrize("apic", bench_bochs.APICS)
def test_deadline_is_met(measured, apic):
    """No exact shot is early or missing, and nearly all are on time."""
    found = bench_bochs.rows(kernels.ensure(bench_bochs.SERIES), measured[apic])
    print(rows.table(found))
    (exact,) = rows.select(found, bench=f"error/{apic}", mode="exact")
    (raw,) = rows.select(found, bench=f"error/{apic}", mode="raw")
    (rival,) = rows.select(found, bench=f"error/{apic}", timer="hrtimer_hard")
    assert exact["engine"] == "bochs"
    assert exact["n"] == raw["n"] == rival["n"] == SHOTS
    assert min(exact["min"], raw["min"]) >= 0
    # Bochs advances the TSC for a burst of instructions at once: the cost of a call is uncertain,
    # and nothing is subtracted for it.
    assert exact["p50"] <= 20
    assert exact["p50"] * 30 < rival["p50"]


@pytest.mark.parametrize("apic", bench_bochs.APICS)
@pytest.mark.parametrize("period", bench_bochs.PERIODS_NS)
def test_no_period_is_lost(measured, apic, period):
    found = bench_bochs.rows(kernels.ensure(bench_bochs.SERIES), measured[apic])
    mine = rows.select(found, bench=f"period/{apic}/{period}")
    by_unit = {row["unit"]: row for row in mine}
    assert by_unit["lost"]["max"] == 0
    assert by_unit["ran"]["min"] >= bench_bochs.RUN_MS * 1_000_000 // period
    assert by_unit["cycles"]["min"] >= 0
    assert by_unit["jiffies"]["min"] >= by_unit["jiffies_due"]["max"] - 1
    assert by_unit["timer_late"]["max"] <= bench_period.TIMER_LATE
