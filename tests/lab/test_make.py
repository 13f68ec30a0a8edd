"""The Makefiles touch only what they have built: a user's own files stay."""

import re
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]


def make(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess:
    """Run make with its own environment: this one may be a make's, with its options."""
    return subprocess.run(["make", *arguments], env={"PATH": "/usr/bin:/bin", **environment},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)  # fmt: skip


def files(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_clean_of_programs(tmp_path):
    """It removes the programs from the directory that the user has chosen, and nothing else."""
    programs = make("-n", "-C", TREE / "user", f"OUTPUT={tmp_path}").stdout
    names = ["libapictimer-preload.so", "apic-calendar", "pacing", "toggle", "event_loop"]
    assert all(f"{tmp_path}/{name}" in programs for name in names)
    for name in [*names, "notes"]:
        (tmp_path / name).write_text("")
    assert make("-C", TREE / "user", "clean", f"OUTPUT={tmp_path}").returncode == 0
    assert files(tmp_path) == {"notes"}
    (tmp_path / "notes").unlink()
    for _ in range(2):
        assert make("-C", TREE / "user", "clean", f"OUTPUT={tmp_path}").returncode == 0
        assert not tmp_path.exists()


@pytest.mark.parametrize("name", ["", "{}/my project/build"], ids=["empty", "blank"])
def test_output_of_programs(tmp_path, name):
    """Make cannot have a blank in a name: it would take each part for a directory."""
    for kept in ("my", "project/build"):
        (tmp_path / kept).mkdir(parents=True)
        (tmp_path / kept / "notes").write_text("")
    for goal in ("clean", "all"):
        done = make("-C", TREE / "user", goal, f"OUTPUT={name.format(tmp_path)}")
        assert "OUTPUT must be one directory, without blanks" in done.stdout
        assert done.returncode == 2
    assert files(tmp_path) == {"my/notes", "project/build/notes"}


def test_clean(tmp_path):
    """It removes a module's objects, but none of a kernel that `make patched-deb` builds."""
    (tmp_path / "Makefile").symlink_to(TREE / "Makefile")
    kept = {"Makefile", "build/linux-6.1.192-0a1b2c3d/kernel/fork.o", "venv/lib/libnpymath.a",
            ".git/objects/0a.o", "module/core/main.c"}  # fmt: skip
    built = {"Module.symvers", "module/core/main.o", "module/core/.main.o.cmd", "build/queue/time",
             "build/spin/spin", "build/tc/q_apic.so", "build/tool/apic-timer"}  # fmt: skip
    for name in (kept | built) - {"Makefile"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert make("-C", tmp_path, "clean").returncode == 0
    assert files(tmp_path) == kept


@pytest.mark.parametrize("lab, subset", [("none", "host"), ("", "bench")])
def test_bench_sets_up(tmp_path, lab, subset):
    """Without the lab nothing that only the lab needs is set up or demanded."""
    (tmp_path / "Makefile").write_text("modules:\n")
    done = make("-n", "-C", TREE, "bench", f"LAB={lab}", f"KDIR={tmp_path}")
    assert done.returncode == 0, done.stdout
    assert set(re.findall(r"tools/setup (\w+)", done.stdout)) == {subset}


@pytest.mark.parametrize("goal", ["install", "uninstall"])
def test_destdir(tmp_path, goal):
    """DKMS knows no other root directory: refused before anything is changed, here or there.

    A program `id` says that this is not root, so that nothing can happen here without the refusal.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "bin/id").chmod(0o755)
    stage = tmp_path / "stage"
    (stage / "usr/lib/tc").mkdir(parents=True)
    for name in ("usr/lib/tc/q_apic.so", "usr/local/bin/apic-timer"):
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_text("")
    before = files(stage)
    done = make("-s", "-C", TREE, goal, f"DESTDIR={stage}", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.returncode == 2
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("apic-timer: ")]
    assert line == ("apic-timer: DKMS works on the running system alone, so not with DESTDIR; "
                    "make deb builds packages")  # fmt: skip
    assert files(stage) == before
