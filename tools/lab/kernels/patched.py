"""Kernels that the lab builds itself, from Debian's source: with this tree's patches, or without.

``ensure("6.1-patched")`` returns a Kernel like a stock one, with the compiler of its suite in its
root. "6.1-plain" is the same source with the same configuration, unpatched, for comparison.
"6.1-debug" is patched and has run-time checks: KASAN, UBSAN, lockdep, debugobjects, kmemleak and
so on; "6.1-kcsan" is patched and detects data races in modules.

The configuration is allnoconfig plus tools/lab/kernels/configs/common.config plus the options of
the series, of the variant, and of both together. Each of these options must survive; neither
compiler nor objtool may warn.
"""

import hashlib
import os
import re
import shutil
from pathlib import Path

from ..base.cache import (
    cache_dir,
    fresh_dir,
    is_complete,
    locked,
    newest_first,
    prune,
    used,
)
from ..base.errors import BuildError, LabError
from ..base.progress import say, spending
from . import ccache, kernels, patches, sources, vmlinux
from .chroot import namespace
from .debian import Archive
from .kernels import SUITES, Kernel

CONFIGS = Path(__file__).parent / "configs"
VARIANTS = ("patched", "plain", "debug", "kcsan")
# Further arguments of make. The kernel has data races of its own, and the first report ends a
# guest. Therefore KCSAN is in the kernel, but only modules built for it later are instrumented.
# A race with the kernel still shows because the value changes.
ARGUMENTS = {"kcsan": ["KCSAN_SANITIZE=n"]}
# What building a kernel needs in addition to what building a module needs.
TOOLS = ["bc", "bison", "cpio", "flex", "gzip", "libc6-dev", "libelf-dev", "libssl-dev", "lz4",
         "patch", "perl-base", "tar", "xz-utils"]  # fmt: skip
TREE = "usr/src/linux"  # in the root
KNOWN = "scripts/genksyms/parse.y: warning: "  # conflicts of the grammar, in every kernel
RECIPE = 2  # increment when a change below changes the result


def names() -> list[str]:
    """List the kernels that can be built: "6.1-patched" and so on."""
    return [f"{s.name}-{variant}" for s in patches.series() for variant in VARIANTS]


def find(name: str) -> Kernel:
    """Return a stock kernel ("6.1", "6.1-rt") or one that is built here ("6.1-patched")."""
    return ensure(name) if name in names() else kernels.ensure(name)


def ensure(name: str) -> Kernel:
    """Return a kernel of `names`, building it if the cache has none with exactly these contents.

    Building takes some minutes and 1 GB of disk. BuildError, with the compiler's output, if it
    fails or something warns; LabError if the sources are not available.
    """
    if name not in names():
        raise LabError(f"unknown kernel {name}; available: {', '.join(names())}")
    series, _, variant = name.partition("-")
    source = sources.ensure(series)
    config = _config(series, variant)
    key = _key(source, config, variant)
    release_end = f"-{variant}-{key}"
    with locked(f"patched-{name}"):
        for root in newest_first(list(cache_dir("patched").glob(f"{series}.*{release_end}"))):
            if is_complete(root):
                return _kernel(series, used(root))
        return _build(source, config, variant, release_end)


def _kernel(series: str, root: Path) -> Kernel:
    return Kernel(series, root.name, root, root / "boot" / f"vmlinuz-{root.name}")


def _config(series: str, variant: str) -> str:
    """Combine the requested options."""
    names = ("common", series, variant, f"{series}-{variant}")
    parts = [CONFIGS / f"{name}.config" for name in names]
    return "".join(p.read_text() for p in parts if p.exists())


def _key(source: sources.Source, config: str, variant: str) -> str:
    """Return the hash that names a kernel: of all that it is built from."""
    key = hashlib.sha256(repr((RECIPE, source.version, SUITES[source.series], TOOLS)).encode())
    key.update(config.encode())
    key.update("".join(ARGUMENTS.get(variant, [])).encode())
    if variant != "plain":
        for patch in patches.named(source.series).patches:
            key.update(patch.read_bytes())
    return key.hexdigest()[:8]


@spending("building kernels")
def _build(source: sources.Source, config: str, variant: str, release_end: str) -> Kernel:
    namespace()  # fails before anything is fetched in vain
    say("lab", f"building kernel {source.series}-{variant}; this takes some minutes")
    # The release is known once the source is unpacked; before, the directory has another name.
    work = cache_dir("patched") / f".work-{source.series}-{variant}"
    with fresh_dir(work) as root:
        _root(root, source)
        tree = root / TREE
        tree.mkdir(parents=True)
        sources.unpack(source, tree, sources.SMALL)
        if variant != "plain":
            patches.apply(tree)
        release = patches.version(tree) + release_end
        # Not a configuration option: every object would depend on it.
        (tree / "localversion-lab").write_text(f"{release_end}\n")
        _configure(root, config)
        _compile(root, source.series if variant != "plain" else None, ARGUMENTS.get(variant, []))
        _install(root, release)
    final = work.with_name(release)
    if final.exists():
        shutil.rmtree(final)
    work.rename(final)
    # Those with other contents take 1 GB each, but another tree's tests may be booting one.
    every = cache_dir("patched").glob(f"{source.series}.*-{variant}-*")
    prune(root for root in every if root != final)
    return _kernel(source.series, final)


def _root(root: Path, source: sources.Source) -> None:
    """Unpack the compiler and other tools of the source's suite."""
    kernels.merge_usr(root)
    with Archive(*SUITES[source.series]) as archive:
        archive.unpack([*kernels.TOOLS, *TOOLS], root)
    kernels.make_usable(root)


def _make(root: Path, *arguments: str) -> str:
    """Run make in the kernel tree; return what it printed. BuildError if it fails or warns."""
    done = ccache.run(root, ["make", "-C", f"/{TREE}", *arguments])
    if done.returncode:
        errors = [x for x in done.stdout.splitlines() if re.search(r"error|Error|\*\*\*", x)]
        raise BuildError(f"make {' '.join(arguments)} failed:\n" + "\n".join(errors)
                         + f"\n--- end of its output ---\n{done.stdout[-4000:]}")  # fmt: skip
    if warned := [x for x in done.stdout.splitlines() if "warning:" in x and KNOWN not in x]:
        raise BuildError(f"make {' '.join(arguments)} warns:\n" + "\n".join(warned))
    return done.stdout


def _configure(root: Path, config: str) -> None:
    """Make the configuration, and check that each option has the requested value."""
    wanted = root / TREE / "lab.config"
    wanted.write_text(config)
    _make(root, f"KCONFIG_ALLCONFIG=/{TREE}/{wanted.name}", "allnoconfig")
    _make(root, "olddefconfig")
    have = _options((root / TREE / ".config").read_text())
    lost = [f"{name}={value}, but is {have.get(name, 'n')}"
            for name, value in _options(wanted.read_text()).items()
            if have.get(name, "n") != value]  # fmt: skip
    if lost:
        raise BuildError("the configuration lacks these requested settings:\n" + "\n".join(lost))


def _options(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))


def _compile(root: Path, series: str | None, arguments: list[str]) -> None:
    """Build the kernel, after compiling the C files that the patches touch with all warnings."""
    options = [f"-j{len(os.sched_getaffinity(0))}", *arguments]
    _make(root, *options, "prepare", "modules_prepare")
    if series is not None:
        touched = [f for f in patches.named(series).files() if f.endswith(".c")]
        for file in touched:
            _make(root, *arguments, "W=1", "cmd_checkdoc=", f"{file[:-2]}.o")
    log = _make(root, *options, "bzImage", "modules")
    (root / "build.log").write_text(log)


def _install(root: Path, release: str) -> None:
    """Install the kernel, modules and what modules need to build where a stock kernel has them."""
    tree = root / TREE
    built = (tree / "include/config/kernel.release").read_text().strip()
    if built != release:
        raise BuildError(f"the kernel calls itself {built} instead of {release}")
    for name in ("boot", "lab"):
        (root / name).mkdir(exist_ok=True)
    image = tree / "arch/x86/boot/bzImage"
    if f"Linux version {release} ".encode() not in vmlinux.payload(image.read_bytes()):
        raise BuildError(f"the image has another kernel than {release}")
    shutil.copyfile(image, root / "boot" / f"vmlinuz-{release}")
    shutil.copyfile(tree / ".config", root / "boot" / f"config-{release}")
    shutil.copyfile(tree / "System.map", root / "boot" / f"System.map-{release}")
    shutil.move(tree / "vmlinux", root / "lab/vmlinux")
    _make(root, "modules_install")
    modules = root / "usr/lib/modules" / release
    for name in ("build", "source"):
        (modules / name).unlink(missing_ok=True)
    (modules / "build").symlink_to(f"/{TREE}")
    (modules / "kernel").mkdir(exist_ok=True)
    keep = {tree / "scripts", tree / "tools"}
    for file in tree.rglob("*"):  # files that building modules does not need
        waste = file.suffix in (".c", ".o", ".a", ".S") or re.fullmatch(r"\..*\.cmd", file.name)
        if waste and file.is_file() and not keep & set(file.parents):
            file.unlink()
