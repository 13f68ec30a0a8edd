"""The shaper's demo shows the paper's figure 5."""

import importlib.util
import re

import pytest
from lab.bench import figures
from lab.bench.rows import Key
from lab.build import build
from lab.run import demo_shaper

HARD = ("apic", "hard")


@pytest.mark.matrix
def test_demo_shapes(monkeypatch, capsys):
    """Ours keeps the spacing to a few cycles and the rate exactly; no rival comes close."""
    found = demo_shaper.measure()
    assert found is not None
    # The texts describe the run above; it is not repeated.
    monkeypatch.setattr(demo_shaper, "measure", lambda: found)
    (plot := demo_shaper.PLOT / "fig5.svg").unlink(missing_ok=True)
    capsys.readouterr()
    assert demo_shaper.main() == 0
    shown = capsys.readouterr().out
    print(shown)
    assert demo_shaper.table(found.samples) in shown
    if importlib.util.find_spec("matplotlib"):
        assert f"Figure 5: {plot.relative_to(build.TREE)}" in shown
        assert plot.read_text().startswith("<?xml")
    spread = {}
    for way in demo_shaper.WAYS:
        row = figures.summary(found.samples[Key("shaper/fig5", way.timer, mode=way.mode)])
        assert row["n"] == demo_shaper.PACKETS - 1, way
        spread[way.timer, way.mode] = max(-row["min"], row["max"])
    assert spread[HARD] <= 4
    assert list(found.samples[Key("shaper/fig5", "apic", mode="hard", unit="ppm")]) == [0]
    assert all(spread[timer, "-"] > 100 * spread[HARD] for timer in demo_shaper.RIVALS)
    # Warm-up and counted packets. A packet that finds the queue empty need not wait.
    by = {mode: int(n) for mode, n in re.findall(r" sent_(\w+) (\d+)", found.statistics)}
    assert sum(by.values()) == 2 * demo_shaper.PACKETS == by["hard"] + by["soft"]
    assert by["soft"] <= 2
    assert " backlog 0b 0p " in found.statistics
