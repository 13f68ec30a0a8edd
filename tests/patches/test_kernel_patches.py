"""tools/kernel-patches works on the files of real kernel trees that the patches touch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.base import cache
from lab.kernels import kernels, patches, sources

TREE = Path(__file__).resolve().parents[2]

# Sources that Debian has: the series of the manifest, and others that their patches fit.
TREES = {"6.1": "6.1", "6.12": "6.12", "7.2": "7.2", "7.3": "7.2"}


# Fetching a canary's source takes 140 MB.
PARAMS = [pytest.param(s, marks=[pytest.mark.matrix] if s in kernels.CANARIES else [])
          for s in TREES]  # fmt: skip


@pytest.fixture(scope="session", params=PARAMS)
def pristine(request):
    """A part of a kernel tree, and the name of the series that fits it."""
    (fits,) = [s for s in patches.series() if s.name == TREES[request.param]]
    home = sources.members(sources.ensure(request.param), ["Makefile", *fits.old_files()])
    return home, fits.name


@pytest.fixture
def tree(pristine, tmp_path):
    """A copy of it that may be changed."""
    copy = tmp_path / "linux"
    shutil.copytree(pristine[0], copy, ignore=shutil.ignore_patterns(cache.STAMP))
    return copy


def run(verb: str, tree: Path, home: Path = TREE, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, home / "tools/kernel-patches", verb, tree],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment or None,
    )  # fmt: skip


def contents(tree: Path) -> dict[str, bytes]:
    return {str(p.relative_to(tree)): p.read_bytes() for p in tree.rglob("*") if p.is_file()}


def refused(verb: str, tree: Path) -> str:
    """Run a command that must be refused and change nothing; return the reason."""
    before = contents(tree)
    done = run(verb, tree)
    assert done.returncode == 1, done.stdout
    assert done.stdout == ""
    assert contents(tree) == before
    return done.stderr


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_apply_and_remove(pristine, tree):
    before = contents(tree)
    done = run("check", tree)
    assert done.returncode == 0, done.stderr
    assert contents(tree) == before

    done = run("apply", tree)
    assert done.returncode == 0, done.stderr
    assert f"of series {pristine[1]} applied" in done.stdout
    after = contents(tree)
    (series,) = [s for s in patches.series() if s.name == pristine[1]]
    assert {f for f in after if after[f] != before.get(f)} == set(series.files())
    assert (
        "EXPORT_SYMBOL_GPL(lapic_timer_hook_register);"
        in (tree / "arch/x86/kernel/apic/lapic_hook.c").read_text()
    )

    done = run("remove", tree)
    assert done.returncode == 0, done.stderr
    assert contents(tree) == before


def test_same_as_git_am(pristine, tree):
    """A maintainer who applies the patches by git am gets the same tree, without fuzz."""
    git = ["git", "-C", tree, "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", "init", "-q", tree], check=True)
    subprocess.run([*git, "add", "-f", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "base"], check=True)
    (series,) = [s for s in patches.series() if s.name == pristine[1]]
    subprocess.run([*git, "am", "-q", *series.patches], check=True)
    taken = {f: d for f, d in contents(tree).items() if not f.startswith(".git/")}

    run("remove", tree)
    assert run("apply", tree).returncode == 0
    assert {f: d for f, d in contents(tree).items() if not f.startswith(".git/")} == taken


def test_twice(tree):
    assert run("apply", tree).returncode == 0
    assert "already applied" in refused("apply", tree)
    assert "already applied" in refused("check", tree)


def test_remove_without_apply(tree):
    assert "not applied" in refused("remove", tree)


def test_keeps_other_changes(tree):
    apic = tree / "arch/x86/kernel/apic/apic.c"
    append(apic, "/* a user's own line */\n")
    before = contents(tree)
    assert run("apply", tree).returncode == 0
    assert run("remove", tree).returncode == 0
    assert contents(tree) == before


def test_conflict_in_the_last_patch(tree):
    """A conflict is found before anything has changed."""
    apic = tree / "arch/x86/kernel/apic/apic.c"
    text = apic.read_text()
    assert text.count("bool __init apic_needs_pit(void)") == 1
    apic.write_text(text.replace("\t/* APIC timer disabled? */\n", "\t/* APIC timer off? */\n"))
    reason = refused("apply", tree)
    assert "0004-x86-apic-Honour-nolapic_timer-with-TSC-deadline-too.patch does not apply" in reason


def test_half_applied(tree):
    added = tree / "arch/x86/include/asm/lapic_hook.h"
    added.parent.mkdir(parents=True, exist_ok=True)
    added.write_text("/* what a user left */\n")
    assert "does not apply" in refused("apply", tree)


def test_missing_file(tree):
    (tree / "arch/x86/kernel/apic/apic.c").unlink()
    assert "does not apply" in refused("apply", tree)


@pytest.mark.parametrize(
    "version", ["5.10.223", "6.1.100", "6.2.0", "6.11.9", "6.13.0", "7.1.5", "7.2.0-rc1", "7.4.0"]
)
def test_other_versions(tree, version):
    numbers, _, extra = version.partition("-")
    names = ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    lines = [f"{n} = {v}" for n, v in zip(names, numbers.split("."), strict=True)]
    end = f"EXTRAVERSION = -{extra}" if extra else "EXTRAVERSION ="
    (tree / "Makefile").write_text("\n".join([*lines, end, ""]))
    assert f"no patches for Linux {version}; available for 6.1.192" in refused("apply", tree)


@pytest.mark.parametrize("makefile", [None, "all:\n\techo no kernel\n", "VERSION = 6\n"])
def test_no_kernel_tree(tmp_path, makefile):
    if makefile is not None:
        (tmp_path / "Makefile").write_text(makefile)
    assert "is not a kernel tree" in refused("apply", tmp_path)


def kernel(tmp_path: Path) -> Path:
    """Return a tree that only has the version of a kernel, which a series fits."""
    tree = tmp_path / "linux"
    tree.mkdir()
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n")
    return tree


def test_no_patch_program(tmp_path):
    tree = kernel(tmp_path)
    before = contents(tree)
    done = run("apply", tree, PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == 'kernel-patches: the program "patch" is missing: apt-get install patch\n'
    assert contents(tree) == before


def test_nothing_is_left_in_the_clone(tmp_path):
    """Run by root it would leave files there that the clone's owner cannot remove."""
    home = tmp_path / "clone"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("tools/lab/base", "tools/lab/kernels", "patches"):
        shutil.copytree(TREE / name, home / name, ignore=ignore)
    for name in ("tools/kernel-patches", "tools/lab/__init__.py"):
        shutil.copy(TREE / name, home / name)
    before = contents(home)
    done = run("check", tmp_path / "none", home, PATH="/usr/bin:/bin")
    assert "is not a kernel tree" in done.stderr
    assert contents(home) == before


PATCH = """\
--- a/{0}
+++ b/{0}
@@ -1 +1 @@
-old
+new
"""
NEW = "--- /dev/null\n+++ b/first\n@@ -0,0 +1 @@\n+new\n"


@pytest.fixture
def small(tmp_path):
    """Return a tree with two files, and the home of a series that changes them and adds one."""
    tree, home = kernel(tmp_path), tmp_path / "patches"
    (home / "6.1").mkdir(parents=True)
    (home / "manifest").write_text("6.1 6.1.192 6.2\n")
    (home / "6.1/0001.patch").write_text(PATCH.format("second") + PATCH.format("third") + NEW)
    for name in ("second", "third"):
        (tree / name).write_text("old\n")
    return tree, home


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_stopped_while_writing(small, monkeypatch, error):
    """A full disk, or Ctrl-C, in the midst of a file: no file has changed, and none is left."""
    tree, home = small
    before, write = contents(tree), shutil.copyfile

    def copyfile(source, target, **options):
        if Path(target).name == "third.new":
            Path(target).write_text("ne")
            raise error
        write(source, target, **options)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(type(error)):
        patches.apply(tree, home)
    assert contents(tree) == before
    monkeypatch.undo()
    patches.apply(tree, home)
    assert {name: contents(tree)[name] for name in ("first", "second", "third")} == dict.fromkeys(
        ("first", "second", "third"), b"new\n"
    )
    patches.remove(tree, home)
    assert contents(tree) == before


def test_tree_that_cannot_be_written(tree):
    """The reason is one line; root may write everywhere, so here a directory is in the way."""
    (tree / "arch/x86/kernel/apic/apic.c.new").mkdir()
    reason = refused("apply", tree)
    assert reason == f"kernel-patches: {tree}/arch/x86/kernel/apic/apic.c.new: Is a directory\n"


@pytest.mark.parametrize("line", ["6.1 6.1.192", "6.1 6.1.x 6.2", "6.1 6.1.192 6.2 more"])
def test_bad_manifest(tmp_path, line):
    (tmp_path / "manifest").write_text(line + "\n")
    with pytest.raises(patches.PatchError, match='is not "series first end"'):
        patches.series(tmp_path)


def test_series_without_patches(tmp_path):
    (tmp_path / "manifest").write_text("6.1 6.1.192 6.2\n")
    with pytest.raises(patches.PatchError, match="has no patches"):
        patches.series(tmp_path)
