"""`make patched-deb` rejects bad input before building, and its packages are as documented."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.build.build import SOURCES
from lab.engines import smp
from lab.kernels import deb, kernels, patched
from lab.kernels.debian import unpack_deb

TREE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["5.10"], "no patches for Linux 5.10; available for 6.1, 6.12, 7.2"),
        (["7.3"], "no patches for Linux 7.3; available for 6.1, 6.12, 7.2"),
        (["6.1", "--config", "/no/such/file"], "no kernel configuration /no/such/file"),
    ],
)
def test_refused(arguments, reason, tmp_path):
    output = tmp_path / "build"
    done = subprocess.run(
        [sys.executable, "-m", "lab", "deb", *arguments, "--output", output],
        env={**os.environ, "PYTHONPATH": str(TREE / "tools")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout
    assert f"lab: {reason}" in done.stderr
    assert not output.exists()


def unpacked(packages: list[Path], root: Path) -> kernels.Kernel:
    """Do what installing the packages would do, without touching this machine."""
    root.mkdir()
    kernels.merge_usr(root)
    for package in packages:
        unpack_deb(package, root)
    (modules,) = (root / "usr/lib/modules").iterdir()
    release = modules.name
    subprocess.run(["depmod", "-b", root, release], check=True)
    return kernels.Kernel("6.1", release, root, root / "boot" / f"vmlinuz-{release}")


def modules(kernel: kernels.Kernel, tree: Path) -> list[Path]:
    """Build our modules with the headers package and this machine's compiler, as a user does."""
    for name in SOURCES:
        if (TREE / name).is_dir():
            shutil.copytree(TREE / name, tree / name)
        else:
            tree.mkdir(exist_ok=True)
            shutil.copy(TREE / name, tree / name)
    headers = kernel.root / f"usr/src/linux-headers-{kernel.release}"
    subprocess.run(["make", "-C", tree, f"KDIR={headers}", "APIC_TIMER_TESTS=1"], check=True)
    return sorted(tree.rglob("*.ko"))


# Debian's configuration takes hours, so the lab's small one is used.
@pytest.mark.matrix
def test_packages(scratch):
    """The packages have a kernel that boots with the hook, and headers for building our modules."""
    subprocess.run([TREE / "tools/setup", "deb"], check=True)
    small = patched.ensure("6.1-patched")
    config = small.root / "boot" / f"config-{small.release}"
    packages = deb.build("6.1", config, scratch / "build")
    kernel = unpacked(packages, scratch / "root")
    assert kernel.release.endswith(deb.NAME)
    script = """
        uname -r
        insmod $MODULES/apic_timer.ko
        grep ^cpu /sys/kernel/debug/apic_timer/info
        insmod $MODULES/apic_timer_selftest.ko
        echo every_cpu_to_every_cpu >/sys/kernel/debug/apic_timer_selftest/run
        head -n 1 /sys/kernel/debug/apic_timer_selftest/result
    """
    result = smp.run(kernel, script, modules=modules(kernel, scratch / "src"))
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.log[-4000:]}"
    release, *cpus, verdict = result.output.splitlines()
    assert release == kernel.release
    assert [line.split(",")[0] for line in cpus] == ["cpu 0: source hook", "cpu 1: source hook"]
    assert verdict == "ok"
