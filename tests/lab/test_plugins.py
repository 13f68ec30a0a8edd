"""The lab's QEMU plug-ins agree with known facts: cache model, port recorder, and profile."""

import ctypes
import json
import re
import statistics
import subprocess
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from lab.base.errors import LabError
from lab.build import build, plugins, tool, user
from lab.engines import virtual
from lab.kernels import kernels
from lab.run import modelled, ports, profile, report, series
from lab.run.modelled import Loop, Record, Window
from lab.run.ports import Access
from lab.run.symbols import Symbol, Symbols
from report_page import Page, look, missing

pytestmark = pytest.mark.long

L1I, L1D, L2, L3, TLB = range(5)
WALK, PAGES = 20, 64
COSTS = {L1D: 0, L2: 10, L3: 30}
OPEN, CLOSED, EACH, REFRESH = 60, 100, 7800, 350
LATER = 1000  # cycles: memory is not being refreshed then


class Counts(ctypes.Structure):
    _fields_ = [("hits", ctypes.c_uint64), ("misses", ctypes.c_uint64)]


@pytest.fixture
def model(tmp_path):
    """Yield the cache model, in this process."""
    target = tmp_path / "model.so"
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
                    target, plugins.SOURCES / "caches_model.c"], check=True)  # fmt: skip
    library = ctypes.CDLL(target)
    library.model_access.argtypes = [ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64]
    library.model_flush.argtypes = [ctypes.c_uint64]
    library.model_translate.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    library.model_counts.restype = ctypes.POINTER(Counts)
    library.model_clear()
    return library


def lap(model, lines, first=L1D) -> Counter:
    """Access lines; count the accesses by duration."""
    return Counter(model.model_access(first, line, LATER) for line in lines)


def misses(model) -> list[int]:
    return [model.model_counts(cache).contents.misses for cache in range(TLB + 1)]


@pytest.mark.parametrize("kib, where", [
    (16, L1D), (32, L1D), (48, L2), (256, L2), (384, L3), (4096, L3),
])  # fmt: skip
def test_walk(model, kib, where):
    """A repeated walk finds its lines in the smallest cache that has room for all of them."""
    lines = range(kib * 16)
    lap(model, lines)
    assert set(lap(model, lines)) == {COSTS[where]}
    assert misses(model)[L1D] == len(lines) * (1 if where == L1D else 2)
    assert misses(model)[L3] == len(lines)


def test_walk_through_more_than_there_is(model):
    lines = range(4096 * 16 + 4096)
    lap(model, lines)
    assert set(lap(model, lines)) <= {COSTS[L3], OPEN, CLOSED}
    assert misses(model)[L3] > len(lines)


@pytest.mark.parametrize("nodes, missed", [(8, 0), (9, 9)])
def test_lines_of_one_set(model, nodes, missed):
    """With one line more than ways, the line needed next has always just been replaced."""
    lines = [i * 64 for i in range(nodes)]
    lap(model, lines)
    before = misses(model)[L1D]
    lap(model, lines)
    assert misses(model)[L1D] - before == missed


def test_code_and_data_share_all_but_the_first(model):
    assert lap(model, [7], L1I) == {CLOSED: 1}
    assert lap(model, [7], L1D) == {COSTS[L2]: 1}
    assert lap(model, [7], L1I) == lap(model, [7], L1D) == {0: 1}


def test_memory(model):
    """Access an open row, another row of its bank, and wait for a refresh."""
    model.model_enable(False)
    assert lap(model, range(128)) == {CLOSED: 1, OPEN: 127}
    assert lap(model, [128 * 8, 0]) == {CLOSED: 2}
    assert [model.model_access(L1D, 0, EACH + n) - OPEN for n in (0, 1, REFRESH, EACH - 1)] == [
        REFRESH, REFRESH - 1, 0, 0]  # fmt: skip
    assert model.model_counts(L1D).contents.hits == 0


def translated(model, pages) -> list[int]:
    return [model.model_translate(page, LATER) for page in pages]


def test_tlb(model):
    """A miss costs a page walk and the entry; a line holds 8 entries, and is cached like others."""
    assert translated(model, range(9)) == [WALK + CLOSED, *[WALK] * 7, WALK + OPEN]
    assert translated(model, range(9)) == [0] * 9
    assert misses(model)[TLB] == 9 and misses(model)[L1D] == 2
    translated(model, range(PAGES))
    assert set(translated(model, range(PAGES))) == {0}
    translated(model, [PAGES])
    assert translated(model, [0]) == [WALK]  # four others have used its set since
    model.model_flush_all()
    assert translated(model, [PAGES]) == [0]


def test_tlb_without_caches(model):
    """A TLB exists all the same; the entry is in memory."""
    model.model_enable(False)
    assert translated(model, [3, 3]) == [WALK + CLOSED, 0]


def test_flush(model):
    lap(model, range(64))
    model.model_flush(7)
    assert lap(model, range(64)) == {0: 63, OPEN: 1}
    model.model_flush_all()
    assert 0 not in lap(model, range(64))


def test_another_interface():
    """One line names the fault and the plug-in; nothing is left of it."""
    with pytest.raises(LabError) as error:
        plugins.plugin("ports", ("-DPLUGIN_VERSION=99",))
    assert re.fullmatch(r"the lab's QEMU rejects the plug-in ports: plugin requires API "
                        r"version 99, but this QEMU supports only up to version \d+",
                        str(error.value))  # fmt: skip
    assert not [*plugins.plugin("ports").parent.glob("*.new")]


def test_wrong_argument(tmp_path):
    file = plugins.plugin("caches")
    assert plugins.load(file) == ""
    assert "No such file or directory" in plugins.load(tmp_path / "none.so")
    nowhere = tmp_path / "none" / "output"
    assert "No such file or directory" in plugins.load(file, nowhere)


def test_symbols():
    symbols = Symbols("20 t b [m]\n10 T a\n18 d data\n")
    found = [symbols.find(n) for n in (0xF, 0x10, 0x1F, 0x20)]
    assert found == [Symbol("", ""), Symbol("a", ""), Symbol("a", ""), Symbol("b", "m")]
    assert [n for n in range(0x30) if symbols.begins(n)] == [0x10, 0x20]


def test_loop_row():
    """The first read at or after each target counts; an RDTSC after the loop is not a read."""
    symbols = Symbols("10 t shot [apic_measure]\n20 t wait_rdtsc [apic_measure]\n")
    window = Window()
    for start in (0, 5000, 10_000):  # the first shot is not counted
        window.records.append(("t", Record(0x10, start, 0)))
        window.records += [("t", Record(0x20, start + 10 * n, n)) for n in range(200)]
        window.records.append(("t", Record(0x28, start + 2000, 200)))
    row = modelled.loop_row(Loop("rdtsc"), window, symbols, 2)
    # After n reads the time is 11 n: 1,001 for targets 1,000 and 1,001 ahead.
    assert row["first"] == [1, 0]
    with pytest.raises(LabError, match="recorded 2 of 3 shots"):
        modelled.loop_row(Loop("rdtsc"), window, symbols, 3)


def test_ports_between():
    told = [Access(i, "out", ports.TELL, 1, ord(c), 0) for i, c in enumerate("a\nb\nc\n")]
    other = [Access(i, "in", 0x71, 1, 0, 0) for i in range(4)]
    log = [other[0], *told[:2], other[1], *told[2:4], other[2], *told[4:], other[3]]
    assert ports.between(log, "a", "b") == [other[1]]
    assert ports.between(log, "a", "c") == [other[1], other[2]]


def test_profile_table():
    """The table is per event, by module and by function; low addresses are those of programs."""
    a, b = profile.KERNEL + 0x10, profile.KERNEL + 0x20
    symbols = Symbols(f"{a:x} T first\n{b:x} t second [m]\n")
    (window,) = profile.parse(
        f": hello\n: begin some 4\n{a:x} 40 4\n{a + 4:x} 20 8\n{b:x} 30 2\n400000 12 3\n: end\n",
        symbols)  # fmt: skip
    assert window.instructions == {Symbol("first", ""): 60, Symbol("second", "m"): 30,
                                   profile.USER: 12}  # fmt: skip
    assert window.calls == {Symbol("first", ""): 4, Symbol("second", "m"): 2}
    assert [(row["function"], row["instructions"], row["calls"]) for row in profile.rows(window)
            ] == [("first", 15.0, 1.0), ("second", 7.5, 0.5), ("", 3.0, 0.0)]  # fmt: skip
    text = profile.table(window, top=1)
    assert text.startswith("some: 26 instructions an event, 4 events\n")
    assert "        15.0   1.00  first [kernel]\n" in text
    assert text.endswith("        10.5         2 others")


# Some of what a report has, in smaller numbers.
SIZE = {"shots": 200, "expiries": 300}
TIMERS = {name: replace(timer, count=8000) if timer.count else timer
          for name, timer in modelled.TIMERS.items()
          if name in ("100-nop", "100-nop-exact", "100-nop-flush", "100-nop-walk-exact",
                      "100-nop-walk-l1", "15-cpuid-off", "15-nop-counted", "15-nop-stored")
          }  # fmt: skip
WALKS = {"warm": "16 2", "l2": "64 3", "none": "16 1 off", "flushed": "16 3 flush"}
SCRIPT = """
tell ports
ports
tell end
tell clock
cat /sys/class/rtc/rtc0/time
tell end
""" + "".join(f"walk {name} {what}\n" for name, what in WALKS.items())


def spied_upon():
    """Run a guest in which plug-ins observe ports and caches."""
    kernel = kernels.ensure("6.1")
    built = build.build(kernel)
    files = {"apic-timer": tool.tool(), **{f"usr/bin/{name}": user.program(kernel, name)
                                           for name in ("ports", "walk")}}  # fmt: skip
    spies = {name: plugins.plugin(name) for name in ("ports", "caches", "profile")}

    return virtual.run(
        kernel, SCRIPT + modelled.script(modelled.LOOPS, TIMERS, **SIZE),
        timeout=900, files=files,
        modules=[build.find_ko(built, name) for name in modelled.MODULES], plugins=spies,
    ).check()  # fmt: skip


@pytest.fixture(scope="module")
def spied():
    return spied_upon()


@pytest.fixture(scope="module")
def seen(spied):
    """What the plug-ins saw."""
    files = spied.files
    symbols = Symbols(files["symbols"].decode())
    log = [Access.parse(line) for line in files["ports"].decode().splitlines()]
    return SimpleNamespace(
        output=spied.output, files=files, symbols=symbols, ports=log,
        written=modelled.parse(files["caches"].decode()),
        rows=modelled.rows(files, modelled.LOOPS, TIMERS, shots=SIZE["shots"]),
    )  # fmt: skip


@pytest.mark.matrix
@pytest.mark.flaky(reruns=0)
def test_the_same_bytes(spied):
    again = spied_upon()
    assert spied.files.keys() == again.files.keys()
    for name in spied.files:
        assert spied.files[name] == again.files[name], name


def test_each_access_is_seen(seen):
    """All accesses of tests/user/ports.c are recorded, with the values of its last three reads."""
    read = [int(word) for word in re.search(r"^(\d+) (\d+) (\d+)$", seen.output, re.M).groups()]
    # The others are to the serial port that it prints to.
    found = [(a.way, a.port, a.size, a.value) for a in ports.between(seen.ports, "ports", "end")
             if 0x80 <= a.port <= 0x87]  # fmt: skip
    assert found == [
        ("out", 0x80, 1, 0x44), ("out", 0x81, 1, 0x44), ("out", 0x82, 2, 0x3344),
        ("out", 0x84, 4, 0x11223344), ("out", 0x80, 4, 0x11223344),
        *[("outs", 0x80, 1, None)] * 3,
        ("in", 0x84, 1, read[0]), ("in", 0x82, 2, read[1]), ("in", 0x80, 4, found[-1][3]),
    ]  # fmt: skip
    assert found[-1][3] >> 1 == read[2]


def test_a_reading_of_the_clock(seen):
    """The kernel's driver writes each register's number, then reads its contents."""
    clock = [a for a in ports.between(seen.ports, "clock", "end")
             if a.port in (ports.INDEX, ports.DATA)]  # fmt: skip
    assert len(clock) >= 14
    ways = [(a.way, a.port) for a in clock]
    assert ways == [("out", 0x70), ("in", 0x71)] * (len(clock) // 2)
    registers = {a.value & 0x7F: b.value for a, b in zip(clock[::2], clock[1::2], strict=True)}
    assert {0, 2, 4} <= registers.keys()
    shown = re.search(r"^(\d\d):(\d\d):(\d\d)$", seen.output, re.M)
    assert [f"{registers[r]:02x}" for r in (4, 2, 0)] == list(shown.groups())


@pytest.mark.parametrize("walk, expected", [("warm", 256), ("l2", 3 * 1024), ("none", 256),
                                            ("flushed", 2 * 256)])  # fmt: skip
def test_a_walk_in_a_guest(seen, walk, expected):
    """tests/user/walk.c has one miss per line, in each lap after which the lines are gone."""
    window = seen.written.windows[walk]
    walks = window.misses[TLB] if walk == "none" else 0  # each for an entry, then in memory
    assert expected <= window.misses[L1D] - walks <= expected + 16
    if walk == "l2":
        assert 1024 <= window.misses[L2] - window.misses[L1I] <= 1024 + 16
    if walk == "none":
        assert sum(window.hits[:TLB]) == 0
    # Four pages; the program's own, and its stack.
    if walk != "l2":
        assert 4 <= window.misses[TLB] <= 12


def test_guest_and_plugin_agree(seen):
    """Without the cycles that the model adds, the plug-in's figures are the guest's own.

    The handler gets the TSC as it will be after its call, which takes `call`.
    """
    for name in ("100-nop", "15-cpuid-off", "100-nop-walk-l1", "100-nop-flush", "15-nop-stored"):
        told = json.loads(seen.files[f"{name}.json"])
        every = list(modelled.expiries(seen.written.windows[name], seen.symbols))
        # A sample has the body of the previous expiry.
        calls = {e.stored.executed - e.now.executed - body
                 for e, body in zip(every, told["first_bodies"], strict=False)}  # fmt: skip
        assert len(told["first_bodies"]) > 200 and len(calls) == 1, name
        (call,) = calls
        assert 0 < call < 40
        entered = [error - (e.now.executed - e.entry.executed)
                   for error, e in zip(told["first"], every, strict=False)]  # fmt: skip
        assert -50 <= min(entered) <= statistics.median(entered) <= 50, name


def test_profile_and_model_agree(seen):
    """Both see the same guest: each interrupt is one call, and no instruction is missing."""
    (entry,) = re.findall(r"^: watch (\w+)$", seen.files["caches"].decode(), re.M)
    symbols = Symbols(f"{entry} T {modelled.ENTRY}\n{seen.files['symbols'].decode()}")
    handler = Symbol("expired", "apic_measure")
    windows = {w.name: w for w in profile.parse(seen.files["profile"].decode(), symbols)}
    for name in ("100-nop", "15-cpuid-off"):
        window, model = windows[name], seen.written.windows[name]
        jumps = sum(kind == "w" for kind, _ in model.records)
        assert window.calls[Symbol(modelled.ENTRY, "")] == jumps > 300
        assert 300 <= window.calls[handler] <= jumps
        # Up to the last RDTSC; the window lasts some thousand instructions more, until the end is
        # reported.
        last = model.records[-1][1].executed
        assert 0 <= sum(window.instructions.values()) - last < last / 10


def test_loops(seen):
    """Errors form a saw-tooth of the loop's length; uncached, each iteration fetches its lines."""
    warm, across = seen.rows["loop"]["rows"]
    assert (warm["min"], warm["max"]) == (0, 4) and warm["period"] == 5
    cold, cold_across = seen.rows["loop-off"]["rows"]
    assert [row["turn"] for row in (warm, across)] == [5, 5] and across["max"] == 4
    assert [row["turn"] for row in (cold, cold_across)] == [5 + OPEN, 5 + 2 * OPEN]
    for row in (cold, cold_across):
        assert row["p50"] < row["turn"] <= row["max"] + 1 <= row["turn"] + CLOSED + REFRESH


def test_timers(seen):
    on, off, walk, flush = (seen.rows[name] for name in (
        "100-nop", "15-cpuid-off", "100-nop-walk-l1", "100-nop-flush"))  # fmt: skip
    assert on["added"]["p50"] < walk["added"]["p50"] < off["added"]["p50"]
    # The instrument was flushed, but not the way to it.
    assert on["added"]["p50"] == 0 and on["body"]["p50"] + 4 * OPEN <= flush["body"]["p50"]
    assert off["caches"] == "off" and walk["caches"] == "after a walk through 64 KiB"


def test_exact_waits_less_in_the_model(seen):
    """The wait gets shorter by the cycles added before it: the error stays within an iteration."""
    for name in ("100-nop-exact", "100-nop-walk-exact"):
        told = json.loads(seen.files[f"{name}.json"])
        every = list(modelled.expiries(seen.written.windows[name], seen.symbols))
        length = modelled.turn(every)
        assert length == 3  # module/core/hw/spin.h
        for e, error in zip(every, told["first"], strict=True):
            # With nothing added the error is the guest's.
            plain = modelled.Expiry(without(e.entry), tuple(map(without, e.dispatch)),
                                    without(e.stored))  # fmt: skip
            assert modelled.exact_error(plain, error, length) == error
    exact, walk = seen.rows["100-nop-exact"], seen.rows["100-nop-walk-exact"]
    assert exact["added"]["p50"] == 0 < 10 * COSTS[L3] < walk["added"]["p50"]
    assert 0 <= exact["error"]["p50"] <= exact["error"]["p99"] < 3
    assert 0 <= walk["error_min"] <= walk["error"]["p50"] < 3
    assert walk["mode"] == "exact"


def test_exact_that_is_late():
    """If more was added than there was to wait, the handler is late by the rest."""

    def expiry(added: int) -> modelled.Expiry:
        pauses = [Record(0x20, 405 + 8 * n, added) for n in range(8)]
        last = [Record(0x30, 469 + 3 * n, added) for n in range(681)]
        return modelled.Expiry(Record(0, 0, 0), (Record(0x10, 300, added), *pauses, *last),
                               Record(0x40, 3000, added))  # fmt: skip

    # The guest's last read of the TSC is a cycle after its moment, 2,508 after the interrupt.
    assert [modelled.exact_error(expiry(added), 1, 3) for added in (0, 3, 4, 1000)] == [1, 1, 2, 0]
    assert modelled.exact_error(expiry(3000), 1, 3) == 405 + 3000 - 2508 + 8


def without(record: Record) -> Record:
    """Return the record without added cycles, as in the guest."""
    return Record(record.address, record.executed, 0)


def test_artefact(seen):
    """8 samples fill a line: every eighth is slow to store, and none if they are only counted.

    512 fill a page: among those that begin a line, the first of a page is the slowest.
    """
    stored, counted = seen.rows["15-nop-stored"], seen.rows["15-nop-counted"]
    assert stored["body_period"] == 8 and stored["body_repeats"] > 0.5
    assert counted["body_period"] == 0
    slow = [n for n, body in enumerate(stored["first_bodies"]) if body > stored["body"]["p50"]]
    assert Counter(n % 8 for n in slow).most_common(1)[0][1] > 0.8 * len(slow)
    line, page = stored["steps"]
    assert (line["samples"], line["bytes"], page["samples"], page["bytes"]) == (8, 64, 512, 4096)
    assert line["cycles"] >= COSTS[L2] and page["cycles"] >= WALK
    usual = series.quantile([body for _, body in stored["lines"]], 50)
    pages = Counter(n % 512 for n, body in stored["lines"] if body >= usual + WALK)
    assert pages.most_common(1)[0][1] >= 8000 // 512 - 1
    assert "steps" not in counted


def test_series_as_the_program_has_it():
    saw = [n % 7 for n in range(200)]
    assert series.period(saw, 40, 6)[0] == 7
    assert series.period([5] * 200, 40, 5) == (0, 0.0)
    assert series.period(saw, 60, 6) == (0, 0.0)  # too few
    assert series.summary(list(range(1000))) == {"p50": 500, "p99": 990, "p999": 999, "max": 999}
    assert series.deviation([1, 3, 100], 3) == 1


def test_steps():
    """Every eighth is 30 more, and every eighth of these 20 more again; noise is no step."""
    values = [80 + 30 * (n % 8 == 5) + 20 * (n % 512 == 261) + 500 * (n % 97 == 0)
              for n in range(20_000)]  # fmt: skip
    assert (series.slowest(values, 8), series.slowest(values, 512)) == (5, 261)
    assert (series.step(values, 8, 8), series.step(values, 512, 8)) == (30, 20)
    assert series.step([80] * 5000, 512, 8) == 0


@pytest.mark.matrix
@pytest.mark.flaky(reruns=0)
def test_whole_report(tmp_path):
    """`make report` makes a complete page, in time, that renders in a browser."""
    for name in ("modelled", "virtual-time"):
        (tmp_path / "rows" / name).mkdir(parents=True)
        (tmp_path / f"rows/{name}/left-over.json").touch()
    started = time.monotonic()
    assert report.main(tmp_path) == 0
    print(f"{time.monotonic() - started:.0f} s")
    assert time.monotonic() - started < 900
    assert not [*tmp_path.rglob("left-over.json")]
    text = (tmp_path / "index.html").read_text()
    assert missing(Page(text)) == []
    assert f"every {EACH:,} cycles it is refreshed" in text
    for dark in (False, True):
        (tmp_path / str(dark)).mkdir()
        look(text, tmp_path / str(dark), dark=dark)
    # Missing rows are noticed.
    for name in ("modelled/loop-off", "virtual-time/chain", "this-machine/cycles"):
        (tmp_path / f"rows/{name}.json").unlink()
    subprocess.run([tool.tool(), "report", "--draw", tmp_path], check=True)
    found = missing(Page((tmp_path / "index.html").read_text()))
    for words in ("Loop across, caches off", "figure 4; across", "chain, virtual-time: there is no",
                  "keys, this-machine: there is no", "cycles, this-machine"):  # fmt: skip
        assert any(words in line for line in found), words
