"""The table of engines: options go to the engine that is named, or are refused."""

import pytest
from lab.base.errors import LabError
from lab.engines import engines
from lab.engines.engines import Guest


def test_options_reach_the_engine(monkeypatch):
    got = []

    def run(kernel, script, *, cpus=1, seed=42):
        got.append((kernel, script, cpus, seed))

    monkeypatch.setitem(engines.ENGINES, "virtual", engines.Engine(run, "", False))
    engines.run("virtual", "kernel", "script", Guest(cpus=2))
    engines.run("virtual", "kernel", "script", Guest(seed=0))
    assert got == [("kernel", "script", 2, 42), ("kernel", "script", 1, 0)]


def test_option_that_an_engine_has_not():
    with pytest.raises(LabError, match="^guests of sleeper have no option seed, x2apic$"):
        engines.run("sleeper", None, "", Guest(cpus=2, x2apic=True, seed=1))
    with pytest.raises(LabError, match="^no engine vmware: there are virtual, smp, bochs, sleeper"):
        engines.run("vmware", None, "", Guest())


def test_option_that_an_engine_needs():
    with pytest.raises(LabError, match="^guests of successor need the option then$"):
        engines.run("successor", None, "", Guest(cpus=2))


def test_every_engine_has_the_common_options():
    common = {"modules", "files", "cpus", "memory", "append", "timeout"}
    for engine in engines.ENGINES.values():
        assert common <= engine.options
