"""Files of a kernel's source are available without unpacking all of it."""

import subprocess

import pytest
from lab.base.errors import LabError
from lab.kernels import sources

FILES = ("Makefile", "kernel/fork.c", f"{sources.SELFTESTS}/kselftest.h",
         f"{sources.SELFTESTS}/net/so_txtime.c")  # fmt: skip


@pytest.fixture
def source(tmp_path, own_cache):
    """Return a small source, with a separate cache."""
    archive = tmp_path / "linux-source-0.1.tar.xz"
    for name in FILES:
        (tmp_path / "linux-source-0.1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "linux-source-0.1" / name).write_text(name)
    subprocess.run(["tar", "-cJf", archive, "-C", tmp_path, "linux-source-0.1"], check=True)
    return sources.Source("0.1", "0.1.0", archive)


def test_members(source):
    found = sources.members(source, ["Makefile", "kernel/fork.c"])
    assert (found / "kernel/fork.c").read_text() == "kernel/fork.c"
    assert not (found / "tools").exists()


def test_own_tests_in_one_pass(source):
    first, second = (sources.members(source, [name]) for name in FILES[2:])
    assert first == second
    assert all((first / name).read_text() == name for name in FILES[2:])


@pytest.mark.parametrize("name", ["kernel/spoon.c", f"{sources.SELFTESTS}/net/none.c"])
def test_missing(source, name):
    with pytest.raises(LabError, match=name.rpartition("/")[2]):
        sources.members(source, [name])
