"""apic-timer status prints the state of a machine's file tree, and marks what is wrong."""

import json

import pytest
from machine_files import GOOD

STATS = "sys/kernel/debug/apic_timer/stats"
INFO = "sys/kernel/debug/apic_timer/info"
VERSION = "sys/module/apic_timer/version"


def test_good(tool, tree, golden):
    done = tool("status", "--root", tree())
    assert done.returncode == 0, done.stderr
    golden("status.txt", done.stdout)


def test_json(tool, tree):
    done = tool("status", "--json", "--root", tree())
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["wrong"] == []
    assert [cpu["source"] for cpu in found["cpus"]] == ["proxy", "proxy"]
    assert found["cpus"][0]["hardware"] == "one-shot LAPIC timer, xAPIC"
    assert found["cpus"][0]["expired"] == 1199 and found["cpus"][1]["expired"] == 5
    assert found["pending"] == [
        {"handler": "pace_tick [pacer]", "timers": 2, "next_in": 20000},
        {"handler": "watch_tick", "timers": 1, "next_in": 38000},
    ]


def test_latency_requests_of_many_cpus(tool, tree):
    requests = ", ".join(f"cpu {cpu} 4 us" for cpu in range(256))
    root = tree({INFO: GOOD[INFO].replace("cpu 1 4 us", requests)})
    found = json.loads(tool("status", "--json", "--root", root).stdout)
    assert found["latency_requests"] == requests
    assert f"deep idle states: {requests}\n" in tool("status", "--root", root).stdout


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({VERSION: "0.0.9\n"}, "the module is 0.0.9, this program 0.1.0"),
        ({"sys/devices/system/cpu/online": "0-2\n"}, "CPU 2 is online but accepts no timers"),
        ({INFO: GOOD[INFO].replace("stable", "unstable", 1)}, "marked the TSC unstable"),
        ({STATS: GOOD[STATS].replace("hw_dead                     0",
                                     "hw_dead                     4")}, "hw_dead: 4 times"),
        ({STATS: GOOD[STATS].replace("throttled                   0            0",
                                     "throttled                   0         1007")},
         "throttled: 1,007 times"),
        ({STATS: GOOD[STATS].replace("expired_late                0",
                                     "expired_late                9")}, "expired_late: 9 handlers"),
        ({STATS: GOOD[STATS].replace("skipped", "other")}, "has no counter skipped"),
    ],
)  # fmt: skip
def test_wrong(tool, tree, changes, reason):
    root = tree(changes)
    done = tool("status", "--root", root)
    assert done.returncode == 1
    assert any(r.startswith("wrong: ") and reason in r for r in done.stdout.splitlines())
    assert any(reason in text for text in json.loads(
        tool("status", "--json", "--root", root).stdout)["wrong"])  # fmt: skip


@pytest.mark.parametrize("command", ["status", "hist", "top", ("trace", "f")])
def test_no_module(tool, tmp_path, command):
    arguments = command if isinstance(command, tuple) else (command,)
    done = tool(*arguments, "--root", tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr == "apic-timer: the module apic_timer is not loaded: sudo modprobe apic_timer\n"
    )


def test_other_version_without_files(tool, tree):
    done = tool("status", "--root", tree({INFO: None, VERSION: "9.9\n"}))
    assert done.returncode == 2
    assert "the module is 9.9, this program 0.1.0" in done.stderr


def test_files_that_cannot_be_read(tool, tree):
    """The reason is that of the file, not of what is looked for afterwards."""
    root = tree({INFO: None})
    (root / INFO).mkdir()
    done = tool("status", "--root", root)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"apic-timer: can't read /{INFO}: Is a directory\n"


@pytest.mark.parametrize(
    "info",
    ["", "cpu", "cpu 0", "cpu 99999999999: source", "cpu -1: source x, y, TSC 1 kHz, a, b", "\0\n",
     "cpu 0: source proxy, TSC kHz", "cpu 0: source , TSC 1 kHz, " + "x" * 5000, "%s%n" * 99],
)  # fmt: skip
def test_malformed_files(tool, tree, info):
    """None is believed, and the program ends only by its own decision."""
    for name in (INFO, STATS, "sys/kernel/debug/apic_timer/pending",
                 "sys/kernel/debug/apic_timer/lead"):  # fmt: skip
        done = tool("status", "--root", tree({INFO: GOOD[INFO], name: info}))
        assert done.returncode in (0, 1, 2), name
