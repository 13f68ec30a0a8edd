"""A directory appears in the cache atomically, and an interrupted one leaves nothing."""

import os
import subprocess
import sys
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab.base.cache import (
    IN_USE,
    STAMP,
    cache_dir,
    fresh_dir,
    is_complete,
    separate_cache,
    temporary,
)
from lab.kernels import patched, patches, sources
from lab.run import kunit

TOOLS = Path(__file__).resolve().parents[2] / "tools"
# Fetch a kernel that others already have: as after looking for it in a different cache.
FETCHED_AGAIN = """
from contextlib import nullcontext
from types import SimpleNamespace
from lab.base.cache import STAMP, cache_dir
from lab.kernels import kernels, lock

wanted = lock.root("kernel-6.1")
release = wanted.version(kernels.IMAGE)[0].removeprefix("linux-image-")
root = cache_dir("kernels", f"6.1_{release}_{wanted.key}")
(root / STAMP).touch()
(root / "used").touch()
kernels.cached = kernels.namespace = lambda *_: None
kernels.Archive = lambda *_: nullcontext(SimpleNamespace(suites=wanted.suites))
kernels.lock.choose = lambda *_: wanted.packages
kernels._kernel = lambda _, root: root
assert kernels._fetch("6.1") == root
assert (root / "used").exists() and lock.is_for("kernel-6.1", root)
"""


def test_all_or_nothing(tmp_path):
    final = tmp_path / "final"
    with pytest.raises(KeyError), fresh_dir(final) as temp:
        (temp / "file").touch()
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with fresh_dir(final) as temp:
        assert not final.exists()
    assert is_complete(final) and list(tmp_path.iterdir()) == [final]


def test_what_a_killed_process_has_left(tmp_path):
    """The next one removes it, but neither one in use nor that of another directory."""
    left, other = tmp_path / ".final.abcd_123", tmp_path / ".final.1.abcd_123"
    for directory in (left, other):
        (directory / "below").mkdir(parents=True)
    with fresh_dir(tmp_path / "final") as first, fresh_dir(tmp_path / "final") as second:
        assert first.exists() and second.exists() and not left.exists()
    assert is_complete(tmp_path / "final") and other.exists()


def test_temporary_directories_of_killed_processes(tmp_path):
    """They go once they are old, unless a process holds them or they have another name."""
    old, young, other = (tmp_path / name for name in ("vm.abcd_123", "vm.abcd_124", "vm.abcd"))
    for directory in (old, young, other):
        (directory / "below").mkdir(parents=True)
    long_ago = time.time() - IN_USE - 60
    with temporary("vm.", tmp_path) as held:
        for directory in (old, other, held):
            os.utime(directory, (long_ago, long_ago))
        with temporary("vm.", tmp_path) as second:
            assert set(tmp_path.iterdir()) == {young, other, held, second}
    assert set(tmp_path.iterdir()) == {young, other}


def test_other_threads_keep_their_cache(tmp_path):
    """Machines are booted by threads while a test of the lab uses a cache of its own."""
    usual = cache_dir()
    with ThreadPool(1) as pool, separate_cache(tmp_path):
        assert cache_dir() == tmp_path / "apic-timer"
        assert pool.apply(cache_dir) == usual
    assert cache_dir() == usual


def test_a_kernel_in_use_is_not_replaced(tmp_path):
    done = subprocess.run([sys.executable, "-c", FETCHED_AGAIN], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(TOOLS),
                               "XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_patched_kernel_in_use_stays(patch_here, own_cache):
    """Another tree's tests may be booting it while this one's are being built."""
    patch_here(sources, "ensure", lambda series: SimpleNamespace(series=series))
    patch_here(sources, "unpack", lambda *_: None)
    patch_here(patches, "apply", lambda *_: None)
    patch_here(patches, "version", lambda *_: "6.1.9")
    for name in ("namespace", "_root", "_configure", "_compile", "_install"):
        patch_here(patched, name, lambda *_: None)
    key = "00000000"
    patch_here(patched, "_key", lambda *_: key)
    long_ago = time.time() - IN_USE - 60
    for name in ("old", "in use"):
        root = cache_dir("patched", f"6.1.9-patched-{name}")
        (root / STAMP).touch()
        os.utime(root, (long_ago, long_ago))
    key = "in use"
    assert patched.ensure("6.1-patched").release == "6.1.9-patched-in use"
    key = "new"
    patched.ensure("6.1-patched")
    left = {root.name.rpartition("-")[2] for root in cache_dir("patched").iterdir()}
    assert left == {"in use", "new"}


def test_build_directory_of_another_compiler(tmp_path):
    """KUnit's kernels are built anew after the host's compiler has changed, and only then."""
    directory = tmp_path / "build"
    kunit.renew_for_compiler(directory)
    (directory / "object").touch()
    kunit.renew_for_compiler(directory)
    assert (directory / "object").exists()
    (directory / kunit.COMPILER).write_text("gcc 1.0")
    kunit.renew_for_compiler(directory)
    assert [path.name for path in directory.iterdir()] == [kunit.COMPILER]
    (directory / kunit.COMPILER).unlink()
    (directory / "object").touch()
    kunit.renew_for_compiler(directory)
    assert not (directory / "object").exists()
