"""The benchmark's arithmetic on made-up rows is right, and a short run loses no goal."""

import json
import struct
import sys
from collections import Counter
from dataclasses import replace

import pytest
from lab.base.errors import LabError
from lab.bench import chain as bench_chain
from lab.bench import cost as bench_cost
from lab.bench import figures, goals
from lab.bench import main as bench
from lab.bench import period as bench_period
from lab.bench import rows as bench_rows
from lab.bench import script as bench_script
from lab.bench.rows import Key
from lab.bench.size import SHORT
from lab.build import build
from lab.engines import smp
from lab.kernels import kernels

from docs.results import bench_page

pytestmark = pytest.mark.long


def rows(samples: dict[Key, list[int]]) -> list[dict]:
    counted = {key: Counter(values) for key, values in samples.items()}
    return bench_rows.rows(counted, kernel="k", engine="e", cpus=1)


def ours(bench_name: str = "error", mode: str = "exact", **more: str) -> Key:
    return bench_script.ours(bench_name, mode, **more)


def standing(what: str, samples: dict[Key, list[int]]) -> goals.Standing | None:
    (goal,) = [goal for goal in goals.GOALS if goal.what.startswith(what)]
    return goal.stands(rows(samples))


def test_summary():
    found = figures.summary(Counter(list(range(1, 1001)) + [-5]))
    assert found["n"] == 1001
    assert (found["min"], found["max"]) == (-5, 1000)
    # 501 of 1001 values are 500 or less, and 500 of them would be too few.
    assert (found["p50"], found["p99"], found["p999"]) == (500, 990, 999)
    assert found["mean"] == pytest.approx((500500 - 5) / 1001)
    with pytest.raises(ValueError):
        figures.summary(Counter())


def test_row_form(tmp_path):
    found = rows({Key("b/10", "t"): [1], Key("b/9", "t"): [2], ours(): [3, 4]})
    assert [row["bench"] for row in found] == ["b/9", "b/10", "error"]
    assert set(found[0]) == set(bench_rows.FIELDS)
    assert found[2]["mean"] == 3.5
    bench_rows.write(tmp_path / "a", found)
    bench_rows.write(tmp_path / "b", found, {"cpu_model": "x"})
    assert (tmp_path / "a").read_text().count("\n") == 5
    assert '"cpu_model": "x"' in (tmp_path / "b").read_text()


def test_decode_cyclictest():
    text = '{"thread": {"0": {"histogram": {"10": 2, "20": 1}, "cycles": 4, "max": 900}}}'
    found = bench_script.decode_cyclictest(b"2000000\n" + text.encode())
    assert found == Counter({20: 2, 40: 1, 1800: 1})
    assert not bench_script.decode_cyclictest(b"2000000\n")


def test_decode_period():
    bins = [0] * bench_period.BINS
    bins[bench_period.BINS // 2 - 3] = 2
    data = struct.pack(f"{len(bins)}I", *bins) + struct.pack("q", 10**6)
    assert bench_period.decode_errors(data) == Counter({-3: 2, 10**6: 1})


def test_what_was_not_measured_is_an_error():
    script = bench_script.Script("name", 1, 1.0)
    script.take("file", Key("b", "t"))
    with pytest.raises(LabError, match="no measurements of"):
        script.samples({})
    assert script.samples({"0": struct.pack("2q", 5, 5)}) == {Key("b", "t"): Counter({5: 2})}


def test_goal_percentiles():
    assert standing("exact, idle", {ours(): [0] * 998 + [60, 20]}).met
    assert not standing("exact, idle", {ours(): [0] * 998 + [61, 20]}).met
    assert not standing("exact, idle", {ours(): [0] * 997 + [60, 21, 21]}).met
    assert not standing("exact, idle", {ours(): [-1] + [0] * 999}).met
    assert standing("exact, idle", {ours(source="hrtimer"): [0]}) is None
    assert standing("exact, net", {ours(load="net"): [60, 300]}).met is False


def test_goal_irqoff():
    beyond = ours("error/beyond", load="irqoff")
    assert standing("exact, irqoff: beyond", {beyond: [-1000, 60]}).met
    assert not standing("exact, irqoff: beyond", {beyond: [-1000, 61]}).met


def test_goal_mean():
    mean = ours(mode="mean")
    assert standing("mean, idle", {mean: [-8, 12]}).met
    assert not standing("mean, idle", {mean: [-7, 13]}).met
    assert not standing("mean, idle", {mean: [-11, 11]}).met


def test_goal_closer():
    rival = Key("error", "hrtimer_hard")
    assert standing("exact against hrtimer, idle: p50", {ours(): [7], rival: [700]}).met
    assert not standing("exact against hrtimer, idle: p50", {ours(): [7], rival: [699]}).met
    assert standing("exact against hrtimer, idle: p50", {ours(): [0], rival: [100]}).met


def test_goal_distance():
    def far(error):
        key = ours("distance/60000000000")
        return standing("exact: p99 at 60 s", {ours("distance/100000"): [10], key: [error]})

    assert far(13).met and far(7).met
    assert not far(14).met and not far(6).met


def period(ns: int, lost: int, jiffies: int, timer_late: int = 0) -> dict[Key, list[int]]:
    name = bench_period.bench(ns)
    return {ours(name, unit="lost"): [lost], ours(name, unit="jiffies"): [jiffies],
            ours(name, unit="jiffies_due"): [250],
            ours(name, unit="timer_late"): [timer_late]}  # fmt: skip


def test_goal_period():
    what = "exact: smallest period"
    good = period(5000, 0, 250) | period(2000, 0, 249)
    assert standing(what, good).met
    assert standing(what, good | period(1000, 1, 250)).measured == "2 us"
    assert not standing(what, good | period(3000, 1, 250)).met, "a longer one is not held"
    assert not standing(what, period(2000, 0, 100)).met, "the tick has died"
    assert not standing(what, period(2000, 0, 250, 3)).met, "the kernel's timers wait"
    assert standing(what, period(2000, 9, 250)).measured == "none held"


def test_goal_cost():
    def cost(operation, pending, own, rival):
        name = f"cost/{operation}/{pending}"
        return {ours(name): [own], Key(name, "hrtimer_hard"): [rival]}

    small = cost("add", 1, 50, 100) | cost("add", 1000, 50, 100)
    large = cost("add", 1_000_000, 71, 100)
    assert standing("add against hrtimer, 1 to", small | large).met
    assert not standing("add against hrtimer, 1 to", small | cost("add", 10, 51, 100)).met
    assert not standing("add against hrtimer, 1,000,000", small | large).met
    assert standing("delete what was long pending against hrtimer, 1 to", small) is None


def test_goal_guest():
    def event(absent, idle):
        return {Key("guest/absent/event", "hrtimer_hard"): [absent],
                Key("guest/idle/event", "hrtimer_hard"): [idle]}  # fmt: skip

    assert standing("instructions more", event(700, 760)).met
    assert not standing("instructions more", event(700, 761)).met
    assert standing("instructions more", {}) is None


def test_goal_of_threads_by_their_cost():
    """Equally late for fewer cycles is better; later, or a longer wait, is not."""

    def net(own: tuple[int, int], rival: tuple[int, int]) -> dict[Key, list[int]]:
        device = {"mode": "user", "source": bench_script.LAPIC, "load": "net"}
        return {Key("user/sleep", "apic_timer", **device): [own[0]],
                Key("user/sleep/waited", "apic_timer", **device): [own[1]],
                Key("user/sleep", "sleepspin", load="net"): [rival[0]],
                Key("user/sleep/waited", "sleepspin", load="net"): [rival[1]]}  # fmt: skip

    what = "thread, net: p99 for cycles waited"
    assert standing(what, net((5, 400), (5, 500))).met
    assert not standing(what, net((6, 400), (5, 500))).met
    assert not standing(what, net((5, 501), (5, 500))).met
    assert standing(what, {}) is None


def test_goals_say_of_how_many_and_why_not():
    """Goals that are not met or not measured have a reason, and no others."""

    def table(value: int) -> str:
        key = Key("user/sleep", "apic_timer", mode="user", source=bench_script.LAPIC)
        return goals.table(rows({key: [value] * 3}), goals.threads("6.1.0-56-amd64"))

    assert "met" in table(2) and ", of 3\n" in table(2)
    assert table(5).count(goals.LONGER) == table(2).count(goals.LONGER) + 1
    assert "isolcpus" in table(2) and goals.NET_ISOLATED.why in table(2)
    on_rt = goals.table([], goals.threads("6.1.0-56-rt-amd64"))
    assert "PREEMPT_RT: p99" in on_rt and "isolcpus" not in on_rt


def test_goal_chain():
    name = bench_chain.bench("direct", "user")
    rival = Key(name, "hrtimer_hard")
    assert standing("thread that a handler wakes, idle", {ours(name): [5], rival: [6]}).met
    assert not standing("thread that a handler wakes, idle", {ours(name): [6], rival: [6]}).met
    assert standing("thread that a handler wakes, syscall", {ours(name): [5], rival: [6]}) is None
    device = ours(bench_chain.bench("device", "user"), "user")
    assert standing("thread that the device wakes, idle", {device: [9]}).met
    assert not standing("thread that the device wakes, idle", {device: [10]}).met


def test_decode_chain():
    """The tool's output counts only if no record is lost and all stamps are in order."""
    takes = [step for step in bench_chain.scripts(SIZE)[0].steps if not isinstance(step, str)]
    entry, user = takes[:2]
    assert [take.key.bench for take in takes[:2]] == ["chain/direct/entry", "chain/direct/user"]

    def row(disorder: int, **counts: list) -> bytes:
        return json.dumps({"rows": [{"disorder": disorder, **counts}]}).encode()

    full = row(0, entry_counts=[[-1, 40], [3, 60]], user_counts=[[3000, 100]])
    assert entry.decode(full) == Counter({-1: 40, 3: 60})
    assert user.decode(full) == Counter({3000: 100})
    assert not entry.decode(row(0, entry_counts=[[3, 99]]))
    assert not entry.decode(row(1, entry_counts=[[3, 100]]))
    assert not entry.decode(b"")


def test_lost_goals_are_found(monkeypatch):
    held = replace(goals.GOALS[0], holds=True)
    monkeypatch.setattr(goals, "GOALS", (held, replace(held, holds=False)))
    assert goals.lost(rows({ours(): [0]})) == []
    assert len(goals.lost(rows({ours(): [1000]}))) == 1
    assert goals.lost([]) == []


HOST = """
cd {tree}
PYTHONPATH=tools {python} -m lab bench --host --short --no-plots --only cost \\
    --modules $MODULES --output $SHARED
! grep apic_timer /proc/modules
cat $SHARED/bench.json
"""


@pytest.mark.matrix
def test_without_the_lab():
    """It works on the running kernel: here that of a guest, which sees this tree."""
    kernel = kernels.ensure(bench.SERIES)
    built = build.build(kernel)
    modules = [build.find_ko(built, name) for name in bench.MODULES]
    script = HOST.format(tree=build.TREE, python=sys.executable)
    result = smp.run(kernel, script, modules=modules).check()
    found = json.loads(result.files["bench.json"])
    assert found["machine"]["cpu_model"]
    assert found["machine"]["cpuidle_driver"] == "none"
    assert {row["engine"] for row in found["rows"]} == {"host"}
    assert {row["timer"] for row in found["rows"]} == {"apic_timer", "hrtimer_hard"}


# As much as there is time for, which still shows every goal except those under loads.
SIZE = replace(
    SHORT,
    loads=("idle", "net"),
    shots=1000,
    jiffy_shots=2,
    periods=(100_000, 5_000, 2_500, 2_000),
    period_ms=50,
    pending=(1, 1000),
    operations=100,
    distances={100_000: 50, 60_000_000_000: 3},
    guest_shots=250,
    guest_seconds=1,
    chain_shots=100,
)
MEASURED = ("error", "distance", "period", "cost", "guest")


@pytest.fixture(scope="module")
def measured() -> list[dict]:
    """Rows of one boot, for all tests."""
    run = bench.in_virtual_time(kernels.ensure(bench.SERIES))
    script = bench_script.join([s for s in bench.plan(SIZE, MEASURED)
                                if "hrtimer" not in s.name and s.cpus == 1])  # fmt: skip
    return bench_rows.rows(run(script), kernel=bench.SERIES, engine="qemu-icount", cpus=1)


def test_a_fresh_timer_belongs_to_its_cpu():
    """Arming one takes as long on CPU 1 as on CPU 0, because it does not use CPU 0's lock."""
    run = bench.in_virtual_time(kernels.ensure(bench.SERIES))
    (script,) = (s for s in bench_cost.scripts(SIZE) if s.cpus == 2)
    found = bench_rows.rows(run(script), kernel=bench.SERIES, engine="qemu-icount", cpus=2)
    p50 = [bench_rows.select(found, bench=bench_cost.fresh_on(cpu))[0]["p50"] for cpu in (0, 1)]
    print(p50)
    assert abs(p50[1] - p50[0]) <= 10


def test_chain():
    """Measure all series of an interrupt and its thread, and the device's wake-up."""
    run = bench.in_virtual_time(kernels.ensure(bench.SERIES))
    script = bench_script.join(bench.plan(SIZE, ["chain"]))
    found = bench_rows.rows(run(script), kernel=bench.SERIES, engine="qemu-icount", cpus=1)
    print(bench_rows.table(found))
    threads = [row for row in found if row["bench"].endswith("/user")]
    assert len(threads) == 24 + len(bench_chain.LOADS)
    assert {row["n"] for row in found} == {SIZE.chain_shots}
    entries = bench_rows.select(found, timer="apic_timer", mode="exact")
    assert max(row["p99"] for row in entries if row["bench"].endswith("/entry")) <= 3
    standings = {goal.what: goal.stands(found) for goal in goals.CHAIN}
    print(standings)
    assert all(standing.met for standing in standings.values())
    text = bench_page.threads_of_chain(found)
    assert text.count("\n| ") == 2 + len(bench_chain.ROUTES) + 1
    (device,) = [line for line in text.splitlines() if line.startswith("| device")]
    assert len([cell for cell in device.split("|") if cell.strip()]) == 5


def test_everything_is_measured(measured):
    assert {str(row["bench"]).split("/")[0] for row in measured} == set(MEASURED)
    assert {row["timer"] for row in measured if row["bench"] == "error"} == {
        "apic_timer", "hrtimer_hard", "hrtimer_soft", "usleep_range", "timer_list", "cyclictest",
    }  # fmt: skip
    (row,) = bench_rows.select(measured, bench="error", mode="exact", load="idle")
    assert row["n"] == SIZE.shots


def test_no_goal_is_lost(measured):
    print(goals.table(measured))
    assert goals.lost(measured) == []


def test_periods_are_held(measured):
    """Nothing is lost while the kernel never has interrupts off for a whole period."""
    held = bench_period.held(measured, "exact")
    assert held[100_000] and held[5_000] and held[2_500]
