"""Files that a check has passed are not checked again until something changes."""

import os
import time

import pytest
from lab.base import passed
from lab.base.cache import cache_dir


@pytest.fixture
def tree(tmp_path, monkeypatch, own_cache):
    """Return a directory with two sources and a tool, and a separate cache."""
    for name in ("a.c", "b.c", "tool"):
        (tmp_path / name).write_text(f"{name}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def looked_at(tree, *options, finds="", meanwhile=lambda: None):
    """List the files that a check is asked to judge."""
    asked = []

    def check(files):
        asked.extend(files)
        meanwhile()
        return finds

    assert passed.only_new(check, ["a.c", "b.c"], [tree / "tool"], *options) in ("", finds)
    return asked


def test_once(tree):
    assert looked_at(tree) == ["a.c", "b.c"]
    assert looked_at(tree) == []


@pytest.mark.parametrize("file, again", [("b.c", ["b.c"]), ("tool", ["a.c", "b.c"])])
def test_changed(tree, file, again):
    looked_at(tree)
    (tree / file).write_text("other\n")
    assert looked_at(tree) == again


def test_other_options(tree):
    looked_at(tree, "--strict")
    assert looked_at(tree, "--strict", "--terse") == ["a.c", "b.c"]


def test_what_failed(tree):
    """All files of that call are checked again, because the check does not name the bad one."""
    assert looked_at(tree, finds="a.c: wrong\n") == ["a.c", "b.c"]
    assert looked_at(tree) == ["a.c", "b.c"]


def test_changed_meanwhile(tree):
    """The check may have read either version."""
    looked_at(tree, meanwhile=lambda: (tree / "a.c").write_text("other\n"))
    assert looked_at(tree) == ["a.c"]
    (tree / "a.c").write_text("a.c\n")
    assert looked_at(tree) == ["a.c"]


def test_forgotten(tree):
    looked_at(tree)
    old = time.time() - passed.FORGET - 10
    (mark, _) = cache_dir("passed").iterdir()
    os.utime(mark, (old, old))
    (tree / "a.c").write_text("other\n")
    (tree / "b.c").write_text("other\n")
    # One removed by another check in the meantime: listed, but not there.
    (cache_dir("passed") / "gone").symlink_to("nowhere")
    looked_at(tree)
    assert not mark.exists()
