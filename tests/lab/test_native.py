"""Measurements in processes on this machine become rows, and goals are judged by these."""

import subprocess

import pytest
from lab.bench import goals, native_goals
from lab.build.build import TREE
from lab.run import native


def output(target: str, *arguments: str) -> str:
    subprocess.run(["make", "-s", "-C", TREE, target], check=True)
    return subprocess.run([TREE / target, *arguments], check=True, capture_output=True,
                          text=True).stdout  # fmt: skip


def test_dispatch():
    whole, *rows = native.of_spin(output("build/spin/spin", "200"))
    assert whole["step"] >= 1 and whole["call"] > 0 and whole["early"] == 0
    assert len(rows) == 10
    assert all(row["min"] <= row["p50"] <= row["p99"] <= row["max"] for row in rows)


def test_wait():
    whole, *rows = native.of_until(output("build/spin/until", "200"))
    assert whole["early"] == 0
    assert {row["wait"] for row in rows} >= {"PAUSE"} and {row["ahead"] for row in rows} > {300}
    assert all(row["min"] <= row["p50"] <= row["p99"] <= row["max"] for row in rows)


@pytest.mark.parametrize("program", ["count", "time"])
def test_queue(program):
    subprocess.run(["make", "-s", "-C", TREE, "build/queue/time"], check=True)
    found = subprocess.run([TREE / "build/queue" / program, "100"], check=True,
                           capture_output=True, text=True).stdout  # fmt: skip
    rows = native.of_queue(program, found)
    assert len(rows) == len(found.splitlines()) - 2 == 4 * 11
    assert {row["operation"] for row in rows} >= {"shift", "delete, refill", "make room"}
    assert all(("lines" in row) == (program == "count") for row in rows)
    assert all((row["repeats"] == 1) == (program == "count") for row in rows)


def test_caches():
    """A machine that reports no caches has no goal for loads."""
    assert all(kib > 0 for kib in native.caches().values())


ROWS = [
    {"bench": "spin", "early": 0},
    {"bench": "until", "early": 0},
    *({"bench": "queue/time", "pending": 100, "order": "equal", "operation": operation, "n": n,
       "p99": p99}
      for operation, n, p99 in (("shift", 100, 9000), ("add", 100, 4000), ("look", 99, 9000))),
    {"bench": "cycles/rows", "loop": "a", "spread_percent": 0.05},
    {"bench": "cycles/rows", "loop": "b", "spread_percent": 0.2},
    {"bench": "memory/by_size", "kib": 16, "spread_percent": 1.0},
    {"bench": "memory/by_size", "kib": 32, "spread_percent": 30},
    {"bench": "memory/by_size", "kib": 64, "spread_percent": 0.5},
    {"bench": "memory/by_size", "kib": 512, "spread_percent": 20},
    {"bench": "caches", "l1": 32, "l2": 512},
]  # fmt: skip


def test_goals():
    """A shift is not judged as an operation; a ring that fills a cache has no goal."""
    stand = [goal.stands(ROWS) for goal in native_goals.GOALS]
    assert [found.met for found in stand] == [True, True, True, False, True]
    assert stand[3].measured == "1 of 2 rows; widest 0.2 %: b"
    assert [goal.stands([]) for goal in native_goals.GOALS] == [None] * 5
    early = [goal.stands([{"bench": "spin", "early": 3}]) for goal in native_goals.GOALS]
    assert early[0].met is False
    assert "not met" in goals.table(ROWS, native_goals.GOALS)
