"""The programs compile with newer compilers than this machine's, and a warning ends no build."""

import subprocess

import pytest
from lab.build import tool
from lab.build.build import TREE
from lab.kernels import kernels
from lab.kernels.chroot import run_in

INCLUDED = ("include/uapi", "include/uapi/linux", "user", "user/tool", "module/calendar")
SOURCES = ("Makefile", "include", "module", "tools", "user")
SERIES = ("6.12", "7.2")  # Debian 13's compiler, and sid's


@pytest.mark.parametrize("series", SERIES)
def test_tool(series):
    done = subprocess.run([tool.tool(series), "--version"], check=True, capture_output=True)
    assert done.stdout.startswith(b"apic-timer ")


@pytest.mark.parametrize("series", SERIES)
def test_others(series):
    sources = [*TREE.glob("user/*.c"), *TREE.glob("user/examples/*.c"),
               TREE / "module/calendar/table.c", TREE / "tests/tool/units.c"]  # fmt: skip
    assert len(sources) >= 8
    kernel, sysroot = kernels.ensure(series), tool.libc()
    bound = {sysroot: "lab/sysroot", TREE: "lab/tree"}
    for name in bound.values():
        (kernel.root / name).mkdir(parents=True, exist_ok=True)
    for source in sources:
        done = run_in(kernel.root, [
            "gcc", "--sysroot=/lab/sysroot", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC",
            *(f"-I/lab/tree/{name}" for name in INCLUDED),
            "-c", "-o", "/dev/null", f"/lab/tree/{source.relative_to(TREE)}",
        ], bound)  # fmt: skip
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("target", ["build/tc/q_apic.so", "build/tool/apic-timer"])
def test_a_warning_ends_no_build(target, tmp_path):
    """A compiler that does not exist yet will warn of more."""
    source = tmp_path / "source"
    source.mkdir()
    subprocess.run(["cp", "-R", *(TREE / name for name in SOURCES), source], check=True)
    compiler = "gcc -Wpadded -Wlong-long -pedantic"
    done = subprocess.run(["make", "-C", source, target, f"CC={compiler}", f"TOOL_CC={compiler}"],
                          capture_output=True, text=True)  # fmt: skip
    assert "warning: " in done.stderr and done.returncode == 0, done.stderr
