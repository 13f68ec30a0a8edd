"""The table of engines passes options to the named engine, or rejects them."""

import pytest
from lab.base.errors import LabError
from lab.engines import engines, virtual
from lab.engines.options import Guest, engine


def test_options_reach_the_engine(monkeypatch):
    @engine(cpus=1, seed=42)
    def run(kernel, script, guest):
        return kernel, script, guest.cpus, guest.seed, guest.append, guest.x2apic

    monkeypatch.setitem(engines.ENGINES, "virtual", engines.Engine(run, "", False))
    one = engines.run("virtual", "kernel", "script", Guest(cpus=2))
    assert one == run("kernel", "script", cpus=2) == ("kernel", "script", 2, 42, "", None)
    other = engines.run("virtual", "kernel", "script", Guest(seed=0, append="quiet"))
    assert other == ("kernel", "script", 1, 0, "quiet", None)


def test_option_that_an_engine_has_not():
    with pytest.raises(LabError, match="^guests of sleeper do not support the option seed, x2"):
        engines.run("sleeper", None, "", Guest(cpus=2, x2apic=True, seed=1))
    with pytest.raises(LabError, match="^guests of virtual do not support the option x2apic$"):
        virtual.run(None, "", x2apic=False)
    with pytest.raises(TypeError, match="cpu"):
        virtual.run(None, "", cpu=2)
    with pytest.raises(LabError, match="^unknown engine vmware; available: virtual, smp, bochs, "):
        engines.run("vmware", None, "", Guest())


def test_option_that_an_engine_needs():
    with pytest.raises(LabError, match="^guests of successor need the option then$"):
        engines.run("successor", None, "", Guest(cpus=2))


def test_every_engine_has_the_common_options():
    common = {"modules", "files", "cpus", "memory", "append", "timeout"}
    for one in engines.ENGINES.values():
        assert common <= one.options
