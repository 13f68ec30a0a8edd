"""Code for newer kernels begins with the version that has what it uses, tested here or not."""

import re
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
VERSION = """
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION({})
"""


def preprocessed(header: str, version: tuple[int, int], tmp_path: Path) -> str:
    """Return what a header has for a version of the kernel, whose own headers are empty."""
    text = (TREE / header).read_text()
    for name in re.findall(r"^#include <(.+)>$", text, re.M):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "linux/version.h").write_text(VERSION.format("{}, {}, 0".format(*version)))
    return subprocess.run(["gcc", "-E", "-P", "-nostdinc", "-I", tmp_path, TREE / header],
                          check=True, capture_output=True, text=True).stdout  # fmt: skip


@pytest.mark.parametrize(
    "version, has", [((6, 18), False), ((6, 19), True), ((7, 0), True), ((7, 2), True)]
)
def test_control_block(version, has, tmp_path):
    """Linux 6.19 counts a packet's segments in the qdisc's control block.

    That has moved the reason of a drop to where segmentation overwrites it.
    """
    found = preprocessed("module/shaper/compat.h", version, tmp_path)
    assert ("->pkt_segs = segs;" in found) == has
    assert ("->drop_reason = reason;" in found) == has
