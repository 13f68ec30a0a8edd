"""apic-timer hist shows the kernel's histograms, and rejects text that is not one."""

import json
import math
import subprocess
import xml.etree.ElementTree

import pytest
from kernel_texts import BOTH, by_handler, histogram
from machine_files import TOOL


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves a text and returns its path."""

    def save(text: str):
        (tmp_path / "hist").write_text(text)
        return tmp_path / "hist"

    return save


def test_text(tool, saved, golden):
    done = tool("hist", "--from", saved(BOTH))
    assert done.returncode == 0, done.stderr
    golden("hist.txt", done.stdout)


def test_every_expiry_is_in_it(tool, saved):
    found = json.loads(tool("hist", "--json", "--from", saved(BOTH)).stdout)
    assert found["hits"] == 113 == sum(group["count"] for group in found["groups"])
    pace, watch = found["groups"]
    assert pace["name"] == "pace_tick [pacer]" and watch["name"] == "watch_tick"
    assert pace["buckets"] == [[-128, -65, 2], [-64, -1, 8], [0, 1, 5], [2, 2, 5], [9, 16, 90]]
    assert pace["early"] == 10 and watch["early"] == 0
    assert (pace["p50"], pace["max"]) == (16, 16)
    assert watch["buckets"] == [[513, 1024, 3]]


def test_by_cpu_linear(tool, saved):
    rows = [f"{{ common_cpu: {cpu:10}, error: ~ {low}-{low + 99} }} hitcount: {n:10}"
            for cpu, low, n in [(11, 0, 7), (2, 100, 1), (2, 0, 4)]]  # fmt: skip
    text = histogram(rows, "common_cpu,error.buckets=100", "", hits=12)
    found = json.loads(tool("hist", "--json", "--from", saved(text)).stdout)
    assert [(g["name"], g["buckets"]) for g in found["groups"]] == [
        ("CPU 2", [[0, 99, 4], [100, 199, 1]]), ("CPU 11", [[0, 99, 7]])
    ]  # fmt: skip


def test_linear_below_zero_keeps_its_width(tool, saved):
    row = "{ common_cpu: 0, error: ~ 18446744073709551488-18446744073709551551 } hitcount: 3"
    text = histogram([row], "common_cpu,error.buckets=64", "", hits=3)
    (group,) = json.loads(tool("hist", "--json", "--from", saved(text)).stdout)["groups"]
    assert group["buckets"] == [[-128, -65, 3]]


NEGATIVE = " if error < 0"


def test_linear_next_to_zero(tool, saved):
    """The kernel divides unsigned: the end of the last bucket below 0 is beyond it."""
    keys = "function.sym,error.buckets=100"
    row = "{{ function: [ffffffffc0234020] pace_tick, error: ~ {} }} hitcount: {}"
    text = (histogram([row.format("18446744073709551600-83", 5),
                       row.format("18446744073709551500-18446744073709551599", 2)],
                      keys, NEGATIVE, hits=7)
            + histogram([row.format("0-99", 9)], keys, hits=9))  # fmt: skip
    (group,) = json.loads(tool("hist", "--json", "--from", saved(text)).stdout)["groups"]
    assert group["buckets"] == [[-116, -17, 2], [-16, -1, 5], [0, 99, 9]]
    assert group["early"] == 7


@pytest.mark.parametrize("range_", ["64-127", "1-18446744073709551615", "0-63", "9-8"])
def test_above_zero_of_those_below(tool, saved, range_):
    row = f"{{ common_cpu: 0, error: ~ {range_} }} hitcount: 1"
    done = tool("hist", "--from", saved(histogram([row], where=NEGATIVE)))
    assert done.returncode == 2 and "not a row of a histogram" in done.stderr


def test_the_lowest_value(tool, saved):
    row = "{ common_cpu: 0, error: ~ 9223372036854775808-9223372036854775871 } hitcount: 1"
    done = tool("hist", "--json", "--from", saved(histogram([row], where=NEGATIVE)))
    (group,) = json.loads(done.stdout)["groups"]
    assert group["buckets"] == [[-(2**63), -(2**62) - 1, 1]]


def test_by_state_and_time(tool, saved):
    rows = ["{ cpu_state:          1, error: ~ 2^3  } hitcount:          6",
            "{ cpu_state:          2, error: ~ 2^63 } hitcount:          1"]  # fmt: skip
    found = json.loads(tool("hist", "--json", "--from", saved(histogram(rows))).stdout)
    assert [g["name"] for g in found["groups"]] == ["idle", "stopped"]
    row = "{ common_cpu:          0, cycles: ~ 2^8  } hitcount:       1000  cycles:     151000"
    text = histogram([row], "common_cpu,cycles.log2", "")
    found = json.loads(tool("hist", "--of", "time", "--json", "--from", saved(text)).stdout)
    assert found["groups"][0]["buckets"] == [[129, 256, 1000]]


def test_dropped_rows_are_an_error(tool, saved):
    done = tool("hist", "--from", saved(histogram([by_handler("f", 1, 1)], dropped=1234)))
    assert done.returncode == 1
    assert "1,234 expiries are missing" in done.stderr


@pytest.mark.parametrize(
    "row",
    ["{ }", "{", "{ common_cpu: 0 } hitcount: 3", "{ common_cpu: 0, error: x } hitcount: 3",
     "{ common_cpu: x, error: ~ 2^1 } hitcount: 3", "{ common_cpu: 0, error: ~ 2^1 } hitcount: x",
     "{ common_cpu: 0, error: ~ 2^99 } hitcount: 3", "{ , error: 1 } hitcount: 3",
     "{ common_cpu: -1, error: ~ 2^1 } hitcount: 1", "{ common_cpu: 0, error: ~ 9-1 } hitcount: 1",
     "{ function: [] , error: 1 } hitcount: 3", "{ function: [12, error: 1 } hitcount: 1"],
)  # fmt: skip
def test_malformed(tool, saved, row):
    done = tool("hist", "--from", saved(histogram([row])))
    assert done.returncode == 2, done.stdout
    assert "not a row of a histogram" in done.stderr


@pytest.mark.parametrize("rest", ["error: ~ 2^3", "nonsense"])
def test_a_saved_file_does_not_control_a_terminal(tool, saved, rest):
    row = f"{{ function: [ffff] \x1b]0;x\x07\x9b2J, {rest} }} hitcount: 1"
    done = tool("hist", "--from", saved(histogram([row])))
    said = done.stdout + done.stderr
    assert "?]0;x" in said and not set("\x1b\x07\x9b") & set(said)


@pytest.mark.parametrize("text", ["", "\n", "# event histogram\n", "bogus\n", "Totals:\n"])
def test_empty(tool, saved, text):
    done = tool("hist", "--from", saved(text))
    assert (done.returncode, done.stdout) == (0, "no handler has run\n")


def test_svg(tool, saved, tmp_path):
    """The file is XML, has a bar per bucket, and has the same bytes each time."""
    drawn = []
    for name in ("a.svg", "b.svg"):
        assert tool("hist", "--from", saved(BOTH), "--svg", tmp_path / name).returncode == 0
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    root = xml.etree.ElementTree.fromstring(drawn[0])
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 6
    assert all(0 < float(bar.get("height")) <= 120 for bar in bars)
    # On a logarithmic scale, with 2 for a count of 1: 90 for 10 to the 2nd
    heights = {bar[0].text.split(": ")[1]: int(bar.get("height")) for bar in bars}
    assert abs(heights["90"] - (2 + 118 * math.log10(90) / 2)) <= 1
    assert abs(heights["2"] - (2 + 118 * math.log10(2) / 2)) <= 1
    titles = {bar[0].text for bar in bars}
    assert "-128 to -65: 2" in titles and "9 to 16: 90" in titles


@pytest.mark.parametrize("path, reason", [
    ("/nowhere/a.svg", "No such file or directory"), ("/", "Is a directory"),
    ("/dev/full", "No space left on device"),
])  # fmt: skip
def test_svg_that_cannot_be_written(tool, saved, path, reason):
    done = tool("hist", "--from", saved(BOTH), "--svg", path)
    assert done.returncode == 2
    assert done.stderr == f"apic-timer: can't write {path}: {reason}\n"


def test_no_room_for_the_svg(tool, saved, tmp_path):
    """The drawing that was there stays, and nothing else."""
    old, text = tmp_path / "a.svg", saved(BOTH)
    old.write_text("before")
    limited = 'trap \'\' XFSZ; ulimit -f 1; exec "$0" hist --from "$1" --svg "$2"'
    done = subprocess.run(["sh", "-c", limited, TOOL, text, old], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"apic-timer: can't write {old}: File too large\n"
    assert old.read_text() == "before"
    assert set(tmp_path.iterdir()) == {old, text}


@pytest.mark.parametrize("name, reason", [
    ("nothing/a.svg", "can't write {}: No such file or directory"),
    ("a.svg", "tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing"),
])  # fmt: skip
def test_svg_is_opened_before_counting(tool, tree, name, reason):
    """A path that cannot be written is reported at once; without counts, an old drawing stays."""
    root = tree()
    old = root / "a.svg"
    old.write_text("before")
    done = tool("hist", "--svg", root / name, "--seconds", 86400, "--root", root)
    assert done.returncode == 2
    assert done.stderr == f"apic-timer: {reason.format(root / name)}\n"
    assert old.read_text() == "before" and not list(root.glob("*.new"))


def test_svg_by_another_name(tool, saved, tmp_path):
    """A link stays one, and a device or a pipe is written where it is."""
    text, real, link = saved(BOTH), tmp_path / "real.svg", tmp_path / "link.svg"
    real.write_text("before")
    link.symlink_to(real.name)
    assert tool("hist", "--from", text, "--svg", link).returncode == 0
    assert link.is_symlink() and real.read_text().startswith("<svg ")
    done = tool("hist", "--json", "--from", text, "--svg", "/dev/stderr")
    assert (done.returncode, done.stderr) == (0, real.read_text())


EVENT = "sys/kernel/tracing/events/apic_timer/apic_timer_receipt"


def test_kernel_without_histograms(tool, tree):
    root = tree({f"{EVENT}/enable": "0\n", "sys/kernel/tracing/instances/x": ""})
    done = tool("hist", "-s", "1", "--root", root)
    assert done.returncode == 2
    assert done.stderr == (
        "apic-timer: this kernel has no event histograms: it was built without "
        "CONFIG_HIST_TRIGGERS\n"
    )
    assert [p.name for p in (root / "sys/kernel/tracing/instances").iterdir()] == ["x"]


@pytest.mark.parametrize("used", [False, True])
def test_instance_of_the_same_pid(tool, tree, used):
    """It is left over where PIDs repeat, as in containers, or in use by another process."""
    root = tree({f"{EVENT}/enable": "0\n", "sys/kernel/tracing/instances/x": ""})
    instances = root / "sys/kernel/tracing/instances"
    script = (f'mkdir {instances}/apic-timer-$$; {"touch" if used else "true"} '
              f'{instances}/apic-timer-$$/used; exec "$@"')  # fmt: skip
    done = subprocess.run(["sh", "-c", script, "sh", TOOL, "hist", "-s", "1", "--root", root],
                          capture_output=True, text=True)  # fmt: skip
    assert "CONFIG_HIST_TRIGGERS" in done.stderr  # it got as far as that
    assert len(list(instances.iterdir())) == 1 + used


@pytest.mark.parametrize("name, stale", [
    ("apic-timer-{}", True), ("apic-timer-{}.7", True), ("apic-timer-{}-mytest", False),
    ("apic-timer-{}.7.1", False), ("apic-timer-{}.0", False), ("apic-timer-0{}", False),
    ("apic-timer- {}", False), ("apic-timer-{}.", False), ("my-apic-timer-{}", False),
])  # fmt: skip
def test_only_its_own_instances_are_removed(tool, tree, name, stale):
    """A name that the program does not give belongs to a user, also with an old PID in it."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    root = tree({f"{EVENT}/enable": "0\n", "sys/kernel/tracing/instances/x": ""})
    instance = root / "sys/kernel/tracing/instances" / name.format(ended.pid)
    instance.mkdir()
    done = tool("hist", "-s", "1", "--root", root)
    assert "CONFIG_HIST_TRIGGERS" in done.stderr  # it got as far as that
    assert instance.exists() != stale


def test_module_without_the_event(tool, tree):
    root = tree({"sys/kernel/tracing/instances/x": "", "sys/module/apic_timer/version": "9.9\n"})
    done = tool("hist", "--root", root)
    assert done.returncode == 2
    assert "the module is 9.9, this program 0.1.0: it has no trace event" in done.stderr


def test_no_tracefs(tool, tree):
    done = tool("top", "--root", tree())
    assert done.returncode == 2
    assert "tracefs is not mounted: mount -t tracefs" in done.stderr
