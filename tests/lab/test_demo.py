"""The demo's output is short, has the table first and names further reading; nothing is booted."""

from collections import Counter

import pytest
from lab.run import demo

ERRORS = {"apic_timer_exact": Counter({0: 1, 3: 998, 4: 1}), "apic_timer_raw": Counter({480: 1000}),
          "hrtimer_hard": Counter({590: 500, 1_659: 500}),
          "timer_list": Counter({7_531_519: 999, 35_942_744: 1}),
          "apic_timer_dev": Counter({0: 2, 3: 998}),
          "clock_nanosleep": Counter({3_500: 1000})}  # fmt: skip
PARTS = {
    "source": "[    1.5] apic_timer: source proxy (first choice) serves CPUs 0\n",
    "sample": "[    2.5] apic_timer_sample: one-shot: error 3 cycles on CPU 0\n",
    "trace": "apic_timer_receipt: error=3\n",
    "lead": "cpu 0: exact 500\n",
    "stats": "added 1\n",
}
FOUND = demo.Found("6.1.0-1-amd64", PARTS, ERRORS)


def test_text():
    lines = demo.text(FOUND).splitlines()
    assert len(lines) <= 40 and max(len(line) for line in lines) <= 100
    assert lines[5].split() == ["timer", "expiries", "min", "p50", "p99", "p99.9", "max"]
    assert lines[6].split() == ["apic_timer_exact", "1,000", "0", "3", "3", "3", "4"]
    assert (
        "Of 1,000 handlers 999 start within 3 ns of their expiry; by hrtimer within 1,659 ns."
        in lines
    )
    assert "35,942,744" in lines[9]
    threads = [line.split() for line in lines if line.startswith(("apic_timer_dev", "clock_"))]
    assert threads[0] == ["apic_timer_dev", "1,000", "0", "3", "3", "3", "3"]
    assert threads[1] == ["clock_nanosleep", "1,000", *["3,500"] * 5]
    assert lines[-5] == "Where to go on:"
    assert not any(part.strip() in "\n".join(lines) for part in PARTS.values())


def test_every_page_it_names_is_there():
    named = [w for line in demo.WHERE_TO_GO_ON.splitlines() for w in line.split() if "/" in w]
    assert "docs/results/" in named
    for path in named:
        assert (demo.build.TREE / path).exists()


@pytest.mark.parametrize("name", PARTS)
def test_verbose(name):
    text = demo.text(FOUND, verbose=True)
    assert PARTS[name].split("] ")[-1].strip() in text
    assert "[    1.5]" not in text
