"""apic-timer report makes the right page, names the machines, and renders well in a browser."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
import report_page
import report_rows
from machine_files import TOOL, TREE
from report_page import Page

SECTIONS = ("machines", "loop", "timer", "keys", "cycles", "memory", "chain", "ports", "clocks")
BENCH = TREE / "docs/results/bench.json"


def drawn(tool, folder, *arguments) -> tuple[str, Page]:
    done = tool("report", "--draw", *arguments, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{folder}/index.html\n"
    text = (folder / "index.html").read_text()
    assert "url(" not in text and "http" not in text
    return text, Page(text)


def test_page(tool, tmp_path):
    """Every section has a figure or table for each machine that may claim it."""
    text, page = drawn(tool, report_rows.write(tmp_path), "--bench", BENCH)
    assert page.links == {*SECTIONS, "bench"}
    assert {section for section, tag in page.count if tag == "section"} == page.links
    for section in SECTIONS:
        assert page.count[section, "h3"] == 3
        assert (section == "machines") != ((section, "paper") in page.classes)
    # Two loops and three timers with their shots, for three machines each.
    assert (page.count["loop", "svg"], page.count["timer", "svg"]) == (6, 9)
    assert (page.count["chain", "svg"], page.count["memory", "svg"]) == (15, 3)
    # The cost of a line's end, next to the paper's; no more of its tables is known.
    assert "L1 hit0.999" in page.words["memory"] and "L2 hit6.0238" in page.words["memory"]
    assert all("in print only" in page.words[section] for section in ("keys", "memory"))
    assert "473.4" in page.words["keys"] and "8,860" in page.words["keys"]
    # The period of the errors in cycles, its correlation, and the length of an iteration.
    assert "260.361.42" in page.words["loop"]
    assert "31 to 33" in page.words["loop"] and "98 %" in page.words["chain"]
    # 62.5 cycles at 2 GHz.
    assert "REALTIME62.570.03.11ns" in page.words["clocks"]
    assert "The clocksource is tsc" in page.words["clocks"]
    assert "10-7781158" in page.words["clocks"] and "46 s" in page.words["clocks"]
    row = json.loads(BENCH.read_text())["rows"][0]
    assert row["bench"] == "error" and f"{row['max']:,}" in page.words["bench"]
    assert 'CPU <b>&"x"</b>' in page.words["machines"]
    assert "steps of 26" in page.words["machines"] and "is well" not in page.words["machines"]
    assert len(text) < 1_000_000


@pytest.mark.parametrize("machine, words", [
    ("hardware", "Measured on hardware"), ("guest", "maxima are not"),
    ("virtual-time", "neither caches nor times of hardware"),
])  # fmt: skip
def test_what_an_engine_may_claim(tool, tmp_path, machine, words):
    folder = report_rows.write(tmp_path, {machine: report_rows.MACHINES[machine]})
    _, page = drawn(tool, folder)
    for section in ("loop", "timer", "chain"):
        assert words in page.words[section]
    refused = ("claim no" in kind for section, kind in page.classes if section == "cycles")
    assert any(refused) == (machine == "virtual-time")


@pytest.mark.parametrize("text", [None, "{}", "half of i"])
def test_an_unknown_machine_is_no_hardware(tool, tmp_path, text):
    folder = report_rows.write(tmp_path, {"copied": "KVMKVMKVM"})
    doctor = folder / "rows/copied/doctor.json"
    doctor.write_text(text) if text else doctor.unlink()
    assert tool("report", "--draw", folder).returncode == 0
    page = Page((folder / "index.html").read_text())
    for section in set(SECTIONS) - {"machines"}:
        assert "not known what this was measured on" in page.words[section], section
    assert "Measured on hardware" not in str(page.words)
    assert "no rows of apic-timer doctor" in page.words["machines"]


def test_rows_of_the_lab(tool, tmp_path):
    """Modelled figures are marked, with the model's parameters; the port log has its claim."""
    _, page = drawn(tool, report_rows.write_lab(tmp_path))
    for section in ("loop", "timer"):
        assert "Modelled: the length of the path" in page.words[section]
        assert page.count[section, "h3"] == 4
    assert "every 7,800 cycles it is refreshed" in page.words["machines"]
    # No model where a CPU or a kernel is measured.
    for section in ("keys", "cycles", "memory", "chain", "ports", "clocks"):
        assert page.count[section, "h3"] == 3 and "odelled" not in page.words[section]
    # With and without caches; two timers with errors, one of which overruns; two also with bodies,
    # one of them with those of lines.
    assert (page.count["loop", "svg"], page.count["timer", "svg"]) == (6 + 4, 9 + 4 + 2 + 1)
    assert "TLB25644,09620" in page.words["machines"]
    assert "512" + "4,096" + "19" in page.words["timer"] and "above 177" in page.words["timer"]
    assert "Loop rdtsc, caches off" in page.words["loop"]
    assert "could not keep up" in page.words["timer"]
    assert "Seen from outside" in page.words["ports"] and page.count["ports", "svg"] == 1
    assert "rtc_cmos_read" in page.words["ports"] and "71,000" in page.words["ports"]


def test_same_rows_make_the_same_page(tool, tmp_path):
    texts = [drawn(tool, report_rows.write(tmp_path / n))[0] for n in ("a", "b")]
    assert texts[0] == texts[1]


def test_what_is_missing_is_said(tool, tmp_path):
    folder = report_rows.write(tmp_path, {"guest": "KVMKVMKVM"})
    for name in ("loop", "chain", "pio", "100-nop"):
        (folder / f"rows/guest/{name}.json").unlink()
    _, page = drawn(tool, folder)
    for section in ("loop", "timer", "chain", "ports"):
        assert "needs the module apic_measure and root" in page.words[section]


def test_rows_that_are_no_json(tool, tmp_path):
    folder = report_rows.write(tmp_path, {"guest": ""})
    (folder / "rows/guest/chain.json").write_text('{"rows": [')
    done = tool("report", "--draw", folder)
    assert done.returncode == 0
    assert done.stderr == f"apic-timer: {folder}/rows/guest/chain.json is not JSON\n"
    Page((folder / "index.html").read_text())


def test_large_numbers(tool, tmp_path):
    """TSCs may be days apart, and a timer overdue since the TSC was 0: any number is read again."""
    folder = report_rows.write(tmp_path, {"hardware": ""})
    rows = folder / "rows/hardware"
    doctor, clocks = report_rows.doctor(""), report_rows.CLOCKS
    doctor["findings"][0]["cost_cycles"] = 2**50 - 1
    (rows / "doctor.json").write_text(json.dumps(doctor))
    skew = {**clocks["skew"][0], "low": -(2**63), "high": 10**300}
    (rows / "clocks.json").write_text(json.dumps({**clocks, "skew": [skew]}))
    loop, *others = report_rows.LOOP["rows"]
    for name, first in (("loop", [2**62, 2**62 + 4096]), ("loop-walk", [-(2**62), 2**63 - 1, 7])):
        loops = [{**loop, "first": first * 80}, *others]
        (rows / f"{name}.json").write_text(json.dumps({**report_rows.LOOP, "rows": loops}))
    _, page = drawn(tool, folder)
    assert "1,125,899,906,842,623" in page.words["machines"]
    most = f"{2**63 - 1024:,}"  # the largest double that an int64_t holds
    assert f"10-{most}{most}158" in page.words["clocks"]
    assert page.count["loop", "svg"] == 2


def test_bench_rows_of_somebody_else(tool, tmp_path):
    """No text of theirs is part of the page's markup."""
    (tmp_path / "bench.json").write_text('{"made": {"<img src=x>": "<b>"}, "rows": []}')
    folder = report_rows.write(tmp_path / "report")
    assert tool("report", "--draw", folder, "--bench", tmp_path / "bench.json").returncode == 0
    page = (folder / "index.html").read_text()
    assert "&lt;img src=x&gt; &lt;b&gt;" in page and "<img" not in page


def test_machines_that_are_not_drawn(tool, tmp_path):
    """There is room for 16 machines, and for names of 63 bytes."""
    folder = report_rows.write(tmp_path, {"guest": ""})
    for name in ("l" * 64, *(f"m{i:02}" for i in range(16))):
        (folder / "rows" / name).mkdir()
    done = tool("report", "--draw", folder)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"apic-timer: {folder}/rows/{'l' * 64} is not drawn: its name is too long",
        f"apic-timer: {folder}/rows/m15 is not drawn: too many machines",
    ]


def test_no_room_for_the_page(tool, tmp_path):
    """The page that was there stays, and nothing else."""
    folder = report_rows.write(tmp_path, {"guest": ""})
    (folder / "index.html").write_text("before")
    limited = 'trap \'\' XFSZ; ulimit -f 8; exec "$0" report --draw "$1"'
    done = subprocess.run(["sh", "-c", limited, TOOL, folder], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"apic-timer: can't write {folder}/index.html: File too large\n"
    assert {path.name for path in folder.iterdir()} == {"rows", "index.html"}
    assert (folder / "index.html").read_text() == "before"


def test_nothing_is_measured(tool, tmp_path):
    """Without /proc it cannot find itself; that is no report."""
    hidden = 'mount -t tmpfs none /proc && exec "$0" report "$1"'
    done = subprocess.run(["unshare", "-rm", "sh", "-c", hidden, TOOL, tmp_path],
                          capture_output=True, text=True)  # fmt: skip
    if "apic-timer" not in done.stderr:
        pytest.skip(f"no namespaces: {done.stderr}")
    assert done.returncode == 2 and done.stdout == ""
    assert "can't run /proc/self/exe: No such file or directory" in done.stderr
    assert done.stderr.endswith(f"nothing was measured, so {tmp_path}/index.html is not written\n")
    assert not (tmp_path / "index.html").exists()


@pytest.mark.parametrize("arguments, reason", [
    ([], "report: DIR is missing"),
    (["--draw", "{}/nothing"], "no rows in "),
    (["--draw", "/proc/nothing"], "can't create the folder /proc/nothing"),
    (["--name", "../x", "{}"], "--name takes a name without slashes"),
    (["--draw", "--bench", "/nowhere", "{}/rows-are-there"], "can't read /nowhere"),
])  # fmt: skip
def test_refused(tool, tmp_path, arguments, reason):
    report_rows.write(tmp_path / "rows-are-there")
    done = tool("report", *(a.format(tmp_path) for a in arguments))
    assert done.returncode == 2 and done.stdout == ""
    assert reason in done.stderr


@pytest.mark.long
def test_measure_and_draw(tool, tmp_path):
    """It measures this machine, without the module; then draws again from the rows."""
    done = tool("report", "--brief", "--name", "here", tmp_path)
    assert done.returncode == 0, done.stderr
    names = {p.stem for p in (tmp_path / "rows/here").iterdir()}
    assert names == {"doctor", "clocks", "cycles", "memory"}
    first = (tmp_path / "index.html").read_text()
    _, page = drawn(tool, tmp_path)
    assert (tmp_path / "index.html").read_text() == first
    assert "10 INC, dependent" in page.words["cycles"]


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser(tool, tmp_path, dark):
    """At three widths nothing is cut off, and no text has its background's colour."""
    text, page = drawn(tool, report_rows.write_lab(tmp_path / "report"), "--bench", BENCH)
    report_page.look(text, tmp_path, dark=dark)


def test_rows_with_a_closed_output(tool, tmp_path):
    """The file of the rows must not take its place: the program that fills it would have none."""
    with subprocess.Popen(["sh", "-c", 'exec "$0" report "$1" >&-', TOOL, tmp_path],
                          stderr=subprocess.PIPE, text=True) as report:  # fmt: skip
        said = "".join(iter(report.stderr.readline, "apic-timer clocks\n"))
        report.terminate()
    assert "no rows" not in said
    assert json.loads((tmp_path / "rows/machine/doctor.json").read_text())["findings"]


def test_measuring_ends_with_it(tool, tmp_path):
    """A signal to it alone also ends the programs that it runs."""
    with subprocess.Popen([TOOL, "report", tmp_path], stderr=subprocess.PIPE, text=True) as report:
        for row in report.stderr:
            if row == "apic-timer cycles\n":
                break
        children = Path(f"/proc/{report.pid}/task/{report.pid}/children")
        while not children.read_text():
            time.sleep(0.01)
        child = int(children.read_text())
        report.terminate()
        # The child also has the other end.
        report.stderr.close()
    for _ in range(100):
        line = Path(f"/proc/{child}/cmdline")
        if not line.exists() or not line.read_text():
            return
        time.sleep(0.05)
    os.kill(child, 9)
    raise AssertionError("its child goes on")
