"""Samples of the benchmark are kept only as long as nothing that they depend on changes."""

import ast
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab.bench import kept
from lab.bench.rows import Key
from lab.bench.script import Script, decode_number
from lab.kernels import kernels

# Files that the benchmark imports on which no sample depends: what they make is hashed itself
# (modules, programs, packages, scripts), or they only report.
OTHERS = {
    *(f"base/{name}.py" for name in ("background", "cache", "errors", "progress")),
    *(f"bench/{name}.py" for name in (
        "chain", "clocks", "cost", "distance", "error", "goals", "guest", "period", "plots",
        "size", "spin", "user",
    )),
    *(f"build/{name}.py" for name in ("build", "plugins", "tool", "user", "userland")),
    "engines/limit.py",
    *(f"kernels/{name}.py" for name in (
        "ccache", "chroot", "debian", "kernels", "lock", "patched", "patches", "sources",
        "unpacked",
    )),
}  # fmt: skip
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


def decoder(least: int):
    def decode(data: bytes) -> Counter[int]:
        return Counter([least])

    return decode


def test_script_with_other_samples_is_measured_anew(bench):
    """The text has neither the names of the samples nor what decodes them."""
    bench, ran = bench
    script = Script("error", 7, 1)
    script.take_output("cat file", KEY, decode_number)
    for key, decode in [(KEY, decode_number), (KEY._replace(unit="ns"), decode_number),
                        (KEY, decoder(1)), (KEY, decoder(2)), (KEY, decoder(2))]:  # fmt: skip
        other = Script("error", 7, 1)
        other.take_output("cat file", key, decode)
        assert other.text() == script.text()
        bench(other)
    assert ran == [7] * 4
    bench(Script("error", 7, 2))
    bench(Script("error", 7, 3))  # it only takes longer
    bench(Script("error", 7, 3, cpus=2))
    assert ran == [7] * 6


def test_decoder_that_has_changed(bench, tmp_path, monkeypatch):
    """Its file counts, and no other script of the benchmark is measured anew."""
    bench, ran = bench
    file = tmp_path / "decoders.py"
    monkeypatch.setitem(sys.modules, "decoders", SimpleNamespace(__file__=str(file)))
    for number in (1, 1, 2):
        file.write_text(f"# {number}")
        decode = decoder(1)
        decode.__module__ = "decoders"
        for script in (Script("error", 7, 1), Script("cost", 8, 1)):
            if script.name == "error":
                script.take_output("cat file", KEY, decode)
            bench(script)
    assert ran == [7, 8, 7]


def imported(file: Path) -> set[Path]:
    """List the files of the lab that one imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            room = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            files = [room.with_suffix(".py"), *(room / f"{name.name}.py" for name in node.names)]
            found |= {file for file in files if file.is_file()}
    return found


def test_all_that_makes_samples_counts():
    makers = {file for name in kept.MAKERS for file in kept.LAB.glob(name)}
    assert all(list(kept.LAB.glob(name)) for name in kept.MAKERS)
    found, new = set(), {kept.LAB / "bench/main.py"}
    while new:
        found |= new
        new = set().union(*map(imported, new)) - found
    assert {str(file.relative_to(kept.LAB)) for file in found - makers} == OTHERS


def test_failures_are_not_kept(bench):
    bench, ran = bench
    for _ in range(2):
        with pytest.raises(RuntimeError):
            bench(Script("bad", 1, 1))
    assert ran == [1, 1]
