"""The source package has what git knows; without git the lab says why there is none."""

import subprocess

import pytest
from lab.base.errors import LabError
from lab.run import package


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a tree for a package, which is no checkout yet."""
    tree = tmp_path / "tree"
    (tree / "debian").mkdir(parents=True)
    (tree / "debian/changelog").write_text("apic-timer (0.1.0-1) unstable; urgency=low\n")
    (tree / "Kbuild").write_text("")
    monkeypatch.setattr(package, "TREE", tree)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return tree


def test_files_of_git(tree, tmp_path):
    subprocess.run(["git", "init", "-q", tree], check=True)
    (tree / ".gitignore").write_text("*.o\n")
    (tree / "main.o").write_text("")
    source = package.write_source(tmp_path)
    assert {p.name for p in source.iterdir()} == {".gitignore", "debian", "Kbuild"}
    assert (tmp_path / "apic-timer_0.1.0.orig.tar.gz").exists()


def test_no_checkout(tree, tmp_path, monkeypatch):
    """Nothing is made before, above all no root directory, which takes minutes."""
    monkeypatch.setattr(package, "root", None)
    monkeypatch.setattr(package, "cache_dir", lambda name: tmp_path)
    with pytest.raises(LabError, match="git does not list the files of .*: not a git repository"):
        package.build("trixie", tmp_path / "output")
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_owner_of_the_checkout(tree, tmp_path, monkeypatch):
    """Git refuses a clone of another user, and says how to allow it."""
    subprocess.run(["git", "init", "-q", tree], check=True)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")  # the user may have allowed it
    with pytest.raises(LabError, match="dubious ownership(.|\n)*safe.directory"):
        package.write_source(tmp_path)


def test_no_git(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="git is missing: apt-get install git"):
        package.write_source(tmp_path)
