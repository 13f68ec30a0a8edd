"""apic-timer trace shows the life of a timer from lines of trace_pipe."""

import json

import pytest
from kernel_texts import EARLY, LATE, TIMER, line, receipt


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves lines and returns their path."""

    def save(lines: list[str]):
        (tmp_path / "trace").write_text("# tracer: nop\n" + "".join(f"{row}\n" for row in lines))
        return tmp_path / "trace"

    return save


def lives(tool, path, *arguments) -> list[dict]:
    done = tool("trace", "--json", "--from", path, *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(row) for row in done.stdout.splitlines()]


def test_text(tool, saved, golden):
    done = tool("trace", "--from", saved(LATE + EARLY), "-n", 0, "pace_tick")
    assert done.returncode == 0, done.stderr
    golden("trace.txt", done.stdout)


def test_a_late_life(tool, saved):
    (life,) = lives(tool, saved(LATE), "pace_tick")
    assert life["handler"] == "pace_tick [pacer]" and life["cpu"] == 1 and life["error"] == 13737
    assert [(step["at"], step["what"]) for step in life["steps"]] == [
        (-100_000, "add"), (-90_000, "mod"), (-89_000, "program"), (-4_000, "due"),
        (13_402, "interrupt"), (13_700, "ready"), (13_737, "handler"), (13_800, "returns"),
    ]  # fmt: skip
    assert life["steps"][0]["text"] == "by web server [x]-5, on CPU 1"
    shares = {share["id"]: share for share in life["shares"]}
    assert [shares[i]["after_expiry"] for i in ("delivery", "dispatch", "spin")] == [13402, 298, 37]
    assert sum(share["after_expiry"] for share in life["shares"]) == life["error"]
    assert sum(share["cycles"] for share in life["shares"]) == life["error"] + life["lead"]
    for key in ("percent", "after_expiry_percent"):
        assert round(sum(share[key] for share in life["shares"]), 1) == 100.0


def test_two_lives(tool, saved):
    """The add within the handler begins the next life."""
    late, early = lives(tool, saved(LATE + EARLY), "-n", "0", "00000000811ed095")
    assert early["error"] == 3 and early["expires"] == 2_000_000
    assert early["steps"][0]["what"] == "add" and early["steps"][0]["at"] == 1_013_790 - 2_000_000
    assert "deferred" in {step["what"] for step in early["steps"]}
    assert "deferred" not in {step["what"] for step in late["steps"]}


def test_only_late_ones(tool, saved):
    (life,) = lives(tool, saved(EARLY + LATE), "-n", "0", "--late", "1000", "pace_tick")
    assert life["error"] == 13737
    done = tool("trace", "--from", saved(EARLY), "--late", "3", "pace_tick")
    assert done.returncode == 1 and "pace_tick did not expire that late" in done.stderr


def test_served_by_another_interrupt(tool, saved):
    (life,) = lives(tool, saved([receipt(1000, 700, 900, 1020, lead=0)]), "pace_tick")
    assert [share["cycles"] for share in life["shares"]] == [0, 0, 200, 120]
    assert "due" not in {step["what"] for step in life["steps"]}


@pytest.mark.parametrize("expires, entry, armed, parts", [
    (1000, 5000, None, [0, 4000, 100, 100]),  # interrupts were off
    (1000, 5000, 900, [0, 4000, 100, 100]),
    (1000, 5000, 4500, [3500, 500, 100, 100]),
    (1000, 5000, 5050, [4050, 0, 50, 100]),  # by a handler, in the interrupt that serves it
    (5150, 5000, 5050, [0, 0, 50, 100]),
])  # fmt: skip
def test_without_a_lead(tool, saved, expires, entry, armed, parts):
    """The hardware was not programmed for it: the timer is due at its moment, or was armed late."""
    rows = [line(armed, "mod", f"{TIMER} expires={expires} cpu=1 flags=0x0")] if armed else []
    rows.append(receipt(expires, entry, 5100, 5200, lead=0))
    (life,) = lives(tool, saved(rows), "pace_tick")
    assert [share["cycles"] for share in life["shares"]] == parts
    after = [share["after_expiry"] for share in life["shares"]]
    assert sum(after) == life["error"] <= sum(parts)
    assert all(late <= whole for late, whole in zip(after, parts, strict=True))
    done = tool("trace", "--from", saved(rows), "pace_tick")
    assert ("\n  armed late " in done.stdout) == bool(parts[0])


@pytest.mark.parametrize("targets, lead, delta, text", [
    ([], 600, 41000, "from the hardware"),
    ([2000, 1000], 0, 41000, "from the hardware"),  # in mode raw
    ([1000, 2000], 0, 41000, "another interrupt, which also serves this timer"),
    ([], 0, 41000, "another interrupt, which also serves this timer"),
    ([1000], 0, 0, "at once: no time was left when the hardware was programmed"),
])  # fmt: skip
def test_which_interrupt(tool, saved, targets, lead, delta, text):
    """The last programming before it counts, if the trace has any."""
    rows = [line(900 + i, "program", f"target={target} now=1 delta=1 value=0x1")
            for i, target in enumerate(targets)]  # fmt: skip
    rows.append(receipt(1000, 5000, 5100, 5200, lead).replace("delta=41000", f"delta={delta}"))
    rows.append(line(5300, "program", "target=1000 now=1 delta=1 value=0x1"))
    (life,) = lives(tool, saved(rows), "pace_tick")
    assert [step["text"] for step in life["steps"] if step["what"] == "interrupt"] == [text]


def test_skipped(tool, saved):
    text = receipt(1000, 5000, 5100, 5200, more=" skipped")
    (life,) = lives(tool, saved([text]), "pace_tick")
    assert life["skipped"] and "skipped" in {step["what"] for step in life["steps"]}


@pytest.mark.parametrize("name", ["pace", "pace_tick2", "811ed095", "tick [pacer]"])
def test_other_names_are_not_meant(tool, saved, name):
    assert tool("trace", "--from", saved(LATE), name).returncode == 1


def test_another_clock_is_an_error(tool, saved):
    """The kernel's default clock gives fractional seconds: these are not TSC values."""
    rows = [row.replace(": apic_timer_", ".402113: apic_timer_") for row in LATE]
    done = tool("trace", "--from", saved(rows), "pace_tick")
    assert (done.returncode, done.stdout) == (2, "")
    assert "its time stamps are not TSC values; trace with the clock x86-tsc" in done.stderr


LATENCY = "{} 1d.h1. 1000us : apic_timer_receipt: {} expires=1000 now=1020"


@pytest.mark.parametrize("rows, number", [
    ([LATENCY.format("dd-77", TIMER), LATENCY.format("<idle>-0", TIMER)], 2),
    ([row.partition(": ")[2] for row in LATE], len(LATE)),
    (["CPU:1 [LOST 12 EVENTS]", "timer=1"], 1),
])  # fmt: skip
def test_another_format_is_an_error(tool, saved, rows, number):
    """Options of tracefs such as latency-format change the lines: the handler may have expired."""
    done = tool("trace", "--from", saved(rows), "pace_tick")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"none of {number} lines is an event of apic_timer in the default" in done.stderr


@pytest.mark.parametrize("rows", [[], ["", "# entries-in-buffer/entries-written: 0/0"]])
def test_no_lines_are_no_other_format(tool, saved, rows):
    done = tool("trace", "--from", saved(rows), "pace_tick")
    assert done.returncode == 1 and done.stderr.endswith("pace_tick did not expire\n")


@pytest.mark.parametrize("row", ["CPU:1 [LOST 12 EVENTS]", "CPU:0 [LOST EVENTS]"])
def test_lost_events_are_an_error(tool, saved, row):
    done = tool("trace", "--from", saved([row, *LATE]), "pace_tick")
    assert done.returncode == 1 and "events are missing" in done.stderr


@pytest.mark.parametrize("name", [
    "a EVENTS]", "[LOST EVENTS]", "CPU:1 [LOST 2 E", "x: apic_timer_a", "1: apic_timer_:",
])  # fmt: skip
def test_names_of_tasks_mean_nothing(tool, saved, name):
    """Anybody may give a task a name of up to 15 bytes."""
    rows = [row.replace("{:>16}".format("dd-77"), f"{name}-77") for row in LATE]
    (life,) = lives(tool, saved(rows), "pace_tick")
    assert life["interrupted"] == f"{name}-77" and len(life["steps"]) == 8


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("name, shown", [
    ("\x1b[2J\a\t\r\x7f", "?[2J????"), ("\x9b2J\x85é", "??2J??é"),
])  # fmt: skip
def test_names_of_tasks_do_not_control_a_terminal(tool, saved, more, name, shown):
    done = tool("trace", "--from", saved([row.replace("dd-77", f"{name}-77") for row in LATE]),
                *more, "pace_tick")  # fmt: skip
    assert done.returncode == 0 and f"{shown}-77" in done.stdout
    assert not set("\x1b\a\t\r\x7f\x85\x9b") & set(done.stdout)


@pytest.mark.parametrize("old", ["mode=exact", "function=pace_tick [pacer]"])
def test_a_saved_file_does_not_control_a_terminal(tool, saved, old):
    rows = [row.replace(old, f"{old}\x1b]0;x\x07\x9b2J") for row in LATE]
    assert rows != LATE
    done = tool("trace", "--from", saved(rows), "-n", "0", "pace_tick")
    assert done.returncode == 0 and not set("\x1b\x07\x9b") & set(done.stdout + done.stderr)


def test_deleted_and_modified_again_and_again(tool, saved):
    rows = [line(i, "mod", f"{TIMER} expires=1000000 cpu=1 flags=0x0") for i in range(1000)]
    (life,) = lives(tool, saved(LATE[:1] + rows + LATE[9:10]), "pace_tick")
    assert len(life["steps"]) < 60 and life["error"] == 13737
    gone = line(950_000, "del", f"{TIMER} expires=1000000 cpu=1 flags=0x0")
    (life,) = lives(tool, saved(LATE[:2] + [gone] + LATE[9:10]), "pace_tick")
    assert "add" not in {step["what"] for step in life["steps"]}


@pytest.mark.parametrize(
    "row",
    [": apic_timer_receipt: ", "x [1] 5: apic_timer_receipt", "[ : apic_timer_add: timer=",
     "t-1 [999999] . 5: apic_timer_program: target=1", "t-1 [-1] . 5: apic_timer_program: target=1",
     "t-1 [001] . x: apic_timer_add: timer=1 function=pace_tick", "%s" * 50, "\x01\x02" * 200,
     "t-1 [001] . 5: apic_timer_" + "x" * 300 + ": timer=1",
     "t-1 [001] . 5: apic_timer_add: timer=" + "1" * 500 + " function=" + "f" * 500],
)  # fmt: skip
def test_malformed_lines_are_no_lives(tool, saved, row):
    assert [life["error"] for life in lives(tool, saved([row, *LATE, row]), "pace_tick")] == [13737]
