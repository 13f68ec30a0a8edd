"""Build Debian packages of a patched kernel: Debian's source and configuration, our patches."""

import hashlib
import os
import platform
import subprocess
from pathlib import Path

from ..base.cache import fresh_dir, is_complete
from ..base.errors import BuildError, LabError
from ..base.progress import say
from . import kernels, patches, sources

NAME = "-apic-timer"  # suffix of the kernel's release
# Only Debian has its signing keys; debug information takes most of the time and disk space.
CHANGES = [
    "--disable", "MODULE_SIG", "--disable", "SECURITY_LOCKDOWN_LSM",
    "--set-str", "SYSTEM_TRUSTED_KEYS", "", "--set-str", "SYSTEM_REVOCATION_KEYS", "",
    "--enable", "DEBUG_INFO_NONE", "--disable", "DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT",
    "--disable", "DEBUG_INFO_DWARF4", "--disable", "DEBUG_INFO_DWARF5",
    "--disable", "DEBUG_INFO_BTF",
]  # fmt: skip


def build(series: str, config: Path | None, output: Path) -> list[Path]:
    """Build the packages for a series of the patches into a directory; return their paths.

    config: the kernel's configuration. None: this machine's, if its kernel is of that series,
    otherwise that of the stock kernel. With Debian's own configuration this takes hours and 30 GB;
    objects stay in `output` for the next time. BuildError when it fails.
    """
    chosen = patches.named(series)
    config = config or _config(series)
    if not config.is_file():
        raise LabError(f"no kernel configuration {config}")
    source = sources.ensure(series)
    output.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(b"".join(p.read_bytes() for p in chosen.patches)).hexdigest()[:8]
    tree = output.resolve() / f"linux-{source.version}-{key}"
    if not is_complete(tree):
        say("lab", f"unpacking {source.package} {source.version} into {tree}")
        with fresh_dir(tree) as temp:
            sources.unpack(source, temp)
            patches.apply(temp)
    say("lab", f"configuring as {config}")
    (tree / ".config").write_bytes(config.read_bytes())
    _run(tree, "scripts/config", "--file", ".config", *CHANGES)
    # Options missing from the configuration get their defaults.
    _run(tree, "make", "olddefconfig")
    before = _packages(output)
    _run(tree, "make", f"-j{len(os.sched_getaffinity(0))}", f"LOCALVERSION={NAME}", "bindeb-pkg")
    found = [p for p, when in _packages(output).items() if before.get(p) != when]
    if not any(p.name.startswith("linux-image-") for p in found):
        raise BuildError(f"make bindeb-pkg left no linux-image package in {output}")
    return sorted(found)


def _config(series: str) -> Path:
    """Return Debian's configuration for a series."""
    running = platform.release()
    if running.startswith(f"{series}.") and Path(f"/boot/config-{running}").exists():
        return Path(f"/boot/config-{running}")
    kernel = kernels.ensure(series)
    places = [kernel.root / "boot" / f"config-{kernel.release}", kernel.modules / "config"]
    return next((p for p in places if p.exists()), places[0])


def _packages(output: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in output.glob("*.deb")}


def _run(tree: Path, *argv: str) -> None:
    """Run a command in the kernel tree; its output goes to ours."""
    if subprocess.run(argv, cwd=tree, stdin=subprocess.DEVNULL).returncode:
        raise BuildError(f"{' '.join(argv[:3])} failed in {tree}")
