"""The shaper's benchmark and demo: arithmetic and texts, without booting."""

import struct
from collections import Counter
from dataclasses import replace

import pytest
from lab.base.errors import LabError
from lab.bench import figures, goals, shaper, shaper_goals
from lab.bench import rows as bench_rows
from lab.bench.rows import Key
from lab.kernels import kernels
from lab.run import demo_shaper
from lab.run import shaper as run


def departures(*moments: int, khz: int = 1_000_000) -> bytes:
    return b"%d\n" % khz + b"".join(struct.pack("<QQ", moment, 0) for moment in moments)


def standing(what: str, samples: dict[Key, list[int]], kernel: str = "k"):
    counted = {key: Counter(values) for key, values in samples.items()}
    found = bench_rows.rows(counted, kernel=kernel, engine="e", cpus=1)
    (goal,) = [goal for goal in shaper_goals.GOALS if goal.what.startswith(what)]
    return goal.stands(found)


def hard(bench: str, **more: str) -> Key:
    return Key(f"shaper/{bench}", "apic", mode="hard", **more)


def test_nominal_spacings_are_the_papers():
    assert shaper.nominal_ns("fig4") == 10_336_000
    assert shaper.nominal_ns("fig5") == 106_720


def test_decode():
    data = departures(1000, 1100, 1205, 1300)
    assert shaper.decode_spacing(100)(data) == Counter({0: 1, 5: 1, -5: 1})
    assert shaper.decode_ppm(100)(data) == Counter([0])
    assert shaper.decode_ppm(101)(data) == Counter([10_000])
    moments = shaper.decode_moments(data)
    assert shaper.spacings(sorted(moments)) == [100, 105, 95], "their order is kept"
    fast = departures(0, 300_000, 600_000, khz=3_000_000)
    assert shaper.decode_spacing(100_000)(fast) == Counter({0: 2})
    assert not shaper.decode_ppm(100)(departures(5)) and not shaper.decode_moments(departures())


def test_decode_cost():
    line = b"udpsend sent 5 failed 0 cycles 2400 invalid 0 missed 0\n"
    assert shaper.decode_cost(line) == Counter([2400])
    assert not shaper.decode_cost(b"udpsend sent 5 failed 0 invalid 0 missed 0\n")


def test_decode_doorbells():
    """A packet's doorbell is the first write after the packet is in the driver."""
    data = b""": begin e1000e
500 f1 fee0
: end
: sent 400 2
: begin igb
90 f2 d0
103 f2 d0
140 f3 e0
930 f2 d0
: end
910 f2 d0
: sent 100 3
: sent 900 5
: sent 2000 0
"""
    # The last packet has no doorbell.
    assert shaper.decode_doorbells("igb")(data) == Counter({3: 1, 30: 1})
    assert shaper.decode_doorbells("igb", 2)(data) == Counter({1: 1, 28: 1})
    assert shaper.decode_doorbells("e1000e")(data) == Counter({100: 1})
    assert not shaper.decode_doorbells("virtio_net")(data)


def test_goals():
    error = hard("error")
    assert standing("error, hard, idle", {error: [0] * 500 + [3, 8]}).met
    assert not standing("error, hard, idle", {error: [0, 9]}).met
    assert not standing("error, hard, idle", {error: [-1, 0]}).met
    assert standing("error, hard, user", {error: [0]}) is None
    assert standing("error, hard, net", {hard("error", load="net"): [3] * 2000 + [60]}).met

    spaced, lasting, rate = hard("fig5"), hard("lasting"), hard("lasting", unit="ppm")
    long = {lasting: [-9, 9] * 46_852, rate: [0]}
    assert standing("figure 5", {spaced: [-4, 4], **long}).met
    assert standing("figure 5", {spaced: [-4, 4], **long, lasting: [0] * 93_702}) is None
    assert not standing("figure 5", {spaced: [-5, 4], **long}).met
    assert not standing("figure 5", {spaced: [-4, 4], **long, rate: [2]}).met

    assert standing("10 us with", {hard("sender/10000"): [8]}).met
    assert not standing("3 us, queued", {hard("stress/3000"): [0] * 5000 + [61]}).met

    assert standing("10 us with", {hard("sender/10000"): [8] * 1234}).count == 1234

    later = "6.12: error, hard, idle"
    assert standing(later, {hard("idle"): [3] * 10_000}, "6.12.1").met
    assert not standing(later, {hard("idle"): [3] * 9_999 + [9]}, "6.12.1").met
    assert standing(later, {hard("idle"): [3] * 9_999}, "6.12.1") is None, "of too few"
    assert standing(later, {hard("idle"): [3] * 10_000}, "6.1.1") is None, "of another kernel"

    doorbells = {hard(f"doorbell/{driver}/set"): [0, 20] for driver in shaper.CARDS}
    assert standing("doorbell", doorbells).met
    assert standing("doorbell", doorbells).measured == "0 to 20, 0 to 20, 0 to 20"
    assert not standing("doorbell", {**doorbells, hard("doorbell/igb/set"): [0, 21]}).met
    assert standing("doorbell", dict(list(doorbells.items())[1:])) is None, "of one there is none"

    cost, error = hard("cost/100000", unit="packet_cycles"), hard("cost/100000")
    assert standing("CPU a packet", {cost: [2399], error: [8]}).met
    assert not standing("CPU a packet", {cost: [2399], error: [9]}).met
    assert not standing("CPU a packet", {cost: [2400], error: [8]}).met


def test_goals_say_why_they_are_not_measured():
    lines = iter(goals.table([], shaper_goals.GOALS).splitlines()[1:])
    why = {line: next(lines) for line in lines if line.startswith("not measured ")
           if any(goal.why and goal.what in line for goal in shaper_goals.GOALS)}  # fmt: skip
    (doorbell,) = (line for line in why if "doorbell" in line)
    assert why[doorbell].strip() == "(lab shaper --only doorbell does)"


@pytest.mark.parametrize("short", [True, False])
def test_every_part_measures_ours_and_rivals(short):
    for part in shaper.PARTS:
        taken = [step.key for script in run.plan(short, [part]) for step in script.steps
                 if not isinstance(step, str)]  # fmt: skip
        timers = {key.timer for key in taken}
        # Only apic has a doorbell, and only it compares kernels.
        assert timers == {"apic"} if part in ("doorbell", "idle") else len(timers - {"apic"}) > 1, (
            part
        )
        assert all(key.bench.startswith("shaper/") for key in taken)
    with pytest.raises(LabError, match="unknown part errors"):
        run.plan(short, ["errors"])


@pytest.mark.matrix
def test_doorbells():
    """Each packet's doorbell is seen, about as long after its driver's first instruction as any.

    With the option `doorbell` it is at the moment.
    """
    packets = 200
    boot, _ = run.guest(kernels.ensure(run.SERIES))
    (script,) = shaper.PARTS["doorbell"](replace(shaper.SHORT, doorbells=packets))
    samples = script.samples(boot(script).check().files)
    for driver, (_, ns) in shaper.CARDS.items():
        alone, known = (figures.summary(samples[hard(f"doorbell/{name}")])
                       for name in (driver, f"{driver}/set"))  # fmt: skip
        print(driver, alone, known)
        assert alone["n"] == known["n"] == packets
        assert ns <= alone["min"] <= alone["p50"] <= ns + 20
        assert 0 <= known["min"] <= known["p99"] <= 20


@pytest.mark.long
def test_figures_are_drawn(tmp_path):
    """Each figure is one file, with the same bytes for the same samples."""
    shaper_plots = pytest.importorskip("lab.bench.shaper_plots")
    samples = {
        Key("shaper/fig5", way.timer, mode=way.mode, unit="moment"): Counter(
            [0, 106_720, 213_440 + n]
        )
        for n, way in enumerate(demo_shaper.WAYS)
    }
    samples[hard("error")] = Counter({3: 5, 90: 1})
    samples[hard("delays")] = Counter({3: 5, -90: 1})
    samples |= {hard("stress/2000"): Counter([1]), hard("sender/17000"): Counter([2])}
    drawn = [shaper_plots.draw(tmp_path / name, samples) for name in "ab"]
    assert [p.name for p in drawn[0]] == ["fig2.svg", "fig3.svg", "fig5.svg", "stress.svg",
                                          "error.svg"]  # fmt: skip
    for a, b in zip(*drawn, strict=True):
        for suffix in (".svg", ".csv"):
            assert a.with_suffix(suffix).read_bytes() == b.with_suffix(suffix).read_bytes()
    head, *rows = drawn[0][-1].with_suffix(".csv").read_text().splitlines()
    assert head == "bench,timer,source,mode,load,unit,value,count"
    assert rows == ["shaper/error,apic,-,hard,idle,cycles,3,5",
                    "shaper/error,apic,-,hard,idle,cycles,90,1"]  # fmt: skip


def test_demo_text():
    samples = {}
    for n, way in enumerate(demo_shaper.WAYS):
        key = Key("shaper/fig5", way.timer, mode=way.mode)
        samples |= {key: Counter({-n: 10, 1000 * n: 5}), key._replace(unit="ppm"): Counter([-n])}
    found = demo_shaper.Found("6.1.0-1-amd64", samples, ["tc qdisc add dev sink0 root apic"],
                              "qdisc apic 1: root\n Sent 5 bytes\n")  # fmt: skip
    text = demo_shaper.text(found, None)
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 100
    assert "one leaves each 106,720 ns" in text
    (row,) = (line for line in lines if line.startswith("htb "))
    assert row.split() == ["htb", "15", "-5", "-5", "5,000", "5,000", "5,000", "99.9995", "%"]
    assert "  tc qdisc add dev sink0 root apic" in lines
    assert "qdisc apic 1: root" in text
