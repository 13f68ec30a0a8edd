"""Samples of the benchmark are kept only as long as nothing that they depend on changes."""

from collections import Counter

import pytest
from lab.bench import kept
from lab.bench.rows import Key
from lab.bench.script import Script
from lab.kernels import kernels

KEY = Key("error", "apic_timer", source="proxy", mode="exact")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Return a function that runs a script with a module of given contents, and the runs so far."""
    monkeypatch.setattr(kept, "cache_dir", lambda name: tmp_path)
    module, ran = tmp_path / "module.ko", []

    def run(script):
        ran.append(script.seed)
        if script.name == "bad":
            raise RuntimeError
        return {KEY: Counter({-1: 2, script.seed: 3})}

    def bench(script, contents=b"one", options=""):
        module.write_bytes(contents)
        return kept.kept(run, kernels.ensure("6.1"), [module], options)(script)

    return bench, ran


def test_kept(bench, tmp_path):
    bench, ran = bench
    script = Script("error", 7, 1)
    # One removed by another benchmark in the meantime: listed, but not there.
    (tmp_path / "gone").symlink_to("nowhere")
    assert bench(script) == bench(script) == {KEY: Counter({-1: 2, 7: 3})}
    assert ran == [7]


def test_what_has_changed_is_measured_anew(bench):
    bench, ran = bench
    bench(Script("error", 7, 1))
    bench(Script("error", 8, 1))
    bench(Script("error", 7, 1), contents=b"two")
    bench(Script("error", 7, 1), options="nolapic_timer")
    longer = Script("error", 7, 1)
    longer.do("true")
    bench(longer)
    assert ran == [7, 8, 7, 7, 7]


def test_failures_are_not_kept(bench):
    bench, ran = bench
    for _ in range(2):
        with pytest.raises(RuntimeError):
            bench(Script("bad", 1, 1))
    assert ran == [1, 1]
