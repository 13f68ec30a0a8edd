"""Old builds and the remains of interrupted ones are removed."""

import os
import time

import pytest
from lab.base.cache import IN_USE, STAMP
from lab.build import build
from lab.kernels.kernels import Kernel


def test_what_an_interrupted_build_has_left_goes(tmp_path, patch_here, own_cache):
    kernel = Kernel("6.1", "6.1.0-0-amd64", tmp_path, tmp_path / "vmlinuz")
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "Kbuild").write_text("# first\n")

    def interrupted(*_) -> str:
        raise KeyboardInterrupt

    patch_here(build, "_kbuild", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.build_external(kernel, sources)
    (left,) = (tmp_path / "build").iterdir()
    patch_here(build, "_kbuild", lambda *_: "")
    (sources / "Kbuild").write_text("# second\n")
    built = build.build_external(kernel, sources)
    assert list((tmp_path / "build").iterdir()) == [built] and left != built


def test_old_builds_go(tmp_path):
    for i in range(build.KEEP + 2):
        made = tmp_path / f"{i}"
        made.mkdir()
        (made / STAMP).touch()
        then = time.time() - IN_USE - 100 - i
        os.utime(made, (then, then))
    build._prune(tmp_path)
    assert {int(p.name) for p in tmp_path.iterdir()} == set(range(build.KEEP))
