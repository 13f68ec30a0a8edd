"""apic-timer clocks, cycles and memory work on the CPU that runs the tests."""

import json
import subprocess

import pytest
from machine_files import TOOL


def test_clocks(tool):
    done = tool("clocks", "--json", "--rounds", "500")
    found = json.loads(done.stdout)
    clocks = {clock["name"]: clock for clock in found["clocks"]}
    assert done.returncode == 0 and found["tsc_khz"] > 100_000
    assert clocks["MONOTONIC"]["step_unit"] == "ns"
    assert all(0 < clock["cycles_p50"] <= clock["cycles_p99"] for clock in clocks.values())
    for pair in found["skew"]:
        assert pair["low"] <= pair["high"] or pair["changed"]
        assert pair["round_trip"] > 0


def test_one_cpu_has_no_skew(tool):
    allowed = json.loads(tool("clocks", "--json", "--rounds", "100").stdout)["skew"]
    first = allowed[0]["against"] if allowed else 0
    done = tool("clocks", "--json", "--cpus", first)
    assert json.loads(done.stdout)["skew"] == []


def test_cycles_of_what_is_known(tool):
    """Ten dependent instructions take ten cycles; IPC follows."""
    found = json.loads(tool("cycles", "--json", "--runs", "3").stdout)
    rows = {row["loop"]: row for row in found["rows"]}
    chain = rows["10 INC, dependent"]
    if chain["spread_percent"] > 2:
        pytest.skip(f"this machine is too busy: 3 runs differ by {chain['spread_percent']} %")
    assert abs(chain["cycles"] - 10) < 0.05
    assert chain["ipc"] == round(12 / chain["cycles"], 2)
    assert rows["nothing"]["cycles_1998"] == ["2", "1", "1"]
    searches = {row["cipher"]: row for row in found["searches"]}
    assert searches.keys() == {"RC5", "DES"}
    # RC5 waits for at least 102 rotations and 102 additions, on any core.
    assert searches["RC5"]["cycles"] > 200 and searches["DES"]["cycles"] > 50


def test_loops_shorter_than_a_step(tool):
    """Twice as many turns may seem to take less: by some cycles, not by 2^64."""
    brief = ("--length", "100", "--repeats", "5", "--runs", "100", "--wait", "0")
    for _ in range(5):
        found = json.loads(tool("cycles", "--json", *brief).stdout)
        for row in found["rows"] + found["searches"]:
            assert max(map(abs, (row["cycles"], row["lowest"], row["highest"]))) < 1e9, row


def test_memory(tool):
    """A ring larger than a cache is slower than a smaller one; all tables are there."""
    done = tool("memory", "--json", "--runs", "3", "--max", "1024", "--wait", "2")
    found = json.loads(done.stdout)
    sizes = {row["kib"]: row for row in found["by_size"]}
    assert max(sizes) == 1024
    if sizes[4]["spread_percent"] > 5 or sizes[1024]["spread_percent"] > 20:
        pytest.skip("this machine is too busy")
    assert sizes[4]["cycles"] < sizes[1024]["cycles"]
    assert len(found["by_set"]) >= 4
    assert len(found["by_alignment_l1"]) == len(found["by_alignment_l2"]) == 9


def test_one_table(tool):
    done = tool("memory", "--json", "--by", "set", "--runs", "1", "--max", "64")
    found = json.loads(done.stdout)
    assert "by_set" in found and "by_size" not in found and "by_alignment_l1" not in found


def test_a_device_that_cannot_be_opened(tool):
    """Where its driver is built in, /sys/module has no apic_measure; the device counts."""
    there = "mount -t tmpfs none /dev && ln -s apic_measure /dev/apic_measure && exec $0 pio"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", there, TOOL],
                          capture_output=True, text=True)  # fmt: skip
    if "apic-timer" not in done.stderr:
        pytest.skip(f"no namespaces: {done.stderr}")
    assert done.returncode == 2 and done.stdout == ""
    reason = "Too many levels of symbolic links"
    assert done.stderr == f"apic-timer: can't open /dev/apic_measure: {reason}\n"
