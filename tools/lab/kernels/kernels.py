"""The stock Debian kernels of the lab, each in a root directory with its own suite's compiler.

``ensure("6.1")`` returns a Kernel. Its `root` holds, unpacked from Debian's packages, the locked
kernel image of that series (the newest, where lock.py has none), its headers, and the gcc and make
of its suite. Modules are built by chroot into it, so the result is the same on any machine (the
kbuild tools of a sid kernel need sid's libc). A kernel in the cache needs no network access.
"""

import functools
import lzma
import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.cache import (
    STAMP,
    cache_dir,
    fresh_dir,
    is_complete,
    locked,
    newest_first,
    prune,
    used,
)
from ..base.errors import LabError
from ..base.progress import say
from . import lock
from .chroot import namespace, run_in
from .debian import Archive, Groups

# series -> the suites that carry it. All except "7.3" are supported; "7.3" is a canary.
SUITES = {
    "6.1": ("bookworm", "bookworm-security"),
    "6.12": ("trixie", "trixie-security"),
    "7.2": ("sid",),
    "7.3": ("sid", "experimental"),
}
# Debian's flavours next to the ordinary one: "6.1-rt".
FLAVOURS = ("rt", "cloud")
SUPPORTED = ("6.1", "6.12", "7.2")
CANARIES = ("7.3",)
IMAGE = r"linux-image-\d.*"

# What kbuild needs to build an external module, without recommended packages.
TOOLS = ["gcc", "make", "dash", "mawk", "bash", "coreutils", "sed", "grep", "findutils",
         "diffutils", "base-files", "libc-bin", "kmod"]  # fmt: skip
# Version of clang, where it replaces gcc: bookworm's "clang" does not know -mfunction-return.
CLANG_VERSION = "-19"
CLANG = [f"{name}{CLANG_VERSION}" for name in ("clang", "lld", "llvm")]


@dataclass(frozen=True)
class Kernel:
    """One stock kernel in the cache."""

    series: str  # as in SUITES, optionally with a flavour: "6.1", "6.1-rt"
    release: str  # uname -r: "6.1.0-56-amd64"
    root: Path  # chroot with gcc, make and the headers
    vmlinuz: Path

    @property
    def stock(self) -> bool:
        """Whether it is Debian's, and not built here: see patched.py."""
        return self.root.parent.name in ("kernels", "clang")

    @property
    def modules(self) -> Path:
        """The kernel's /lib/modules/RELEASE, as a directory of this machine."""
        return self.root / "usr/lib/modules" / self.release

    @property
    def headers(self) -> str:
        """The kernel build directory as seen inside the root."""
        return f"/lib/modules/{self.release}/build"

    def has(self, option: str) -> bool:
        """Tell whether an option ("CONFIG_KASAN") is built in, as far as /boot lists options."""
        config = self.root / "boot" / f"config-{self.release}"
        return config.exists() and f"\n{option}=y\n" in config.read_text()

    def own_module(self, name: str) -> dict[str, bytes]:
        """Return a module ("virtio_blk") and those that it needs, uncompressed, in loading order.

        File name (virtio_blk.ko) -> contents; empty if it is built in. LabError if there is no such
        module.
        """
        if re.search(rf"/{name}\.ko$", (self.modules / "modules.builtin").read_text(), re.M):
            return {}
        dependencies = (self.modules / "modules.dep").read_text()
        line = re.search(rf"^(\S+/{name}\.ko\S*):(.*)$", dependencies, re.M)
        if not line:
            raise LabError(f"{self.release} has no module {name}")
        files: dict[str, bytes] = {}
        # The module itself comes last; modules.dep lists its dependencies in the reverse order.
        for path in reversed([line[1], *line[2].split()]):
            data = (self.modules / path).read_bytes()
            compressed = path.endswith(".xz")
            files[Path(path).name.removesuffix(".xz")] = (
                lzma.decompress(data) if compressed else data
            )
        return files


def ensure(series: str) -> Kernel:
    """Return the kernel of a series, fetching it if the cache has none.

    Fetching takes half a minute or so and about 1 GB of disk. LabError, with the reason, when the
    kernel is not available: callers must not turn that into a skip.
    """
    name, _, flavour = series.partition("-")
    if name not in SUITES or (flavour and flavour not in FLAVOURS):
        raise LabError(f"unknown kernel series {series}; available: {', '.join(SUITES)}, each also "
                       f"with -{' or -'.join(FLAVOURS)}")  # fmt: skip
    return cached(series) or _fetch(series)


def part(series: str) -> str:
    """Return the name of a series' part in the lock."""
    return f"kernel-{series}"


def cached(series: str) -> Kernel | None:
    """Return the kernel of a series in the cache, None when there is none.

    That is the locked one, or one that was fetched instead; without a lock it is the newest.
    """
    wanted = lock.root(part(series))
    home = cache_dir("kernels")
    # Names of the form SERIES-RELEASE date from before there was a lock.
    roots = [*home.glob(f"{series}_*"), *home.glob(f"{series}-[0-9]*")]
    roots = [p for p in roots if is_complete(p)]
    if wanted.packages:
        roots = [p for p in roots if lock.is_for(part(series), p) or _as_locked(p, wanted)]
    found = newest_first(roots)
    return _kernel(series, found[0]) if found else None


def with_clang(kernel: Kernel) -> Kernel:
    """Return a kernel with its suite's clang and lld as well as gcc, fetching them if necessary.

    The root directory is a hard-linked copy of the kernel's, which stays unchanged.
    """
    key = lock.identity(kernel.root)[:8]
    final = cache_dir("clang") / f"{kernel.series}-{kernel.release}_{key}"
    with locked(f"clang-{kernel.series}"):
        if is_complete(final):
            used(final)
        else:
            namespace()
            with Archive(*SUITES[kernel.series.partition("-")[0]]) as archive:
                say("lab", f"fetching clang for {kernel.release} ({', '.join(archive.suites)})")
                with fresh_dir(final) as root:
                    _link(kernel.root, root)
                    archive.unpack(CLANG, root)
                    make_usable(root)
            every = cache_dir("clang").glob(f"{kernel.series}-{kernel.release}*")
            prune(root for root in every if root != final)
    return replace(kernel, root=final, vmlinuz=final / kernel.vmlinuz.relative_to(kernel.root))


def _link(source: Path, target: Path) -> None:
    """Copy a root directory by hard links, except for what was built in it."""
    # tar, which unpacks packages into it, replaces files instead of writing to them.
    names = sorted(p for p in source.iterdir() if p.name != "build" and p.name != STAMP)
    done = subprocess.run(["cp", "-al", "--", *names, target], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"cannot copy {source}: {done.stderr[-1000:]}")


@functools.cache
def _as_locked(root: Path, wanted: lock.Root) -> bool:
    """Tell whether a root matches the lock; without a record, judge by its kernel and compiler.

    Figures depend on these two, and both state their version.
    """
    if (root / lock.RECORD).exists():
        return (root / lock.RECORD).read_text().endswith(f"\n{wanted.text}")
    image, compiler = wanted.version(IMAGE), wanted.version(r"gcc-\d+(-x86-64-linux-gnu)?")
    if not image or not compiler:
        return False
    release = image[0].removeprefix("linux-image-")
    files = {root / "boot" / f"vmlinuz-{release}": image, root / "usr/bin/gcc": compiler}
    return all(file.exists() and re.search(rb"Debian %s[\s')]" % re.escape(version.encode()),
                                           file.read_bytes())
               for file, (_, version) in files.items())  # fmt: skip


def _kernel(series: str, root: Path) -> Kernel:
    release = root.name[len(series) + 1 :].partition("_")[0]
    return Kernel(series, release, root, root / "boot" / f"vmlinuz-{release}")


def asked(archive: Archive, series: str) -> Groups:
    """Return the packages that make up the newest kernel of a series."""
    image = _image_package(archive, series)
    release = image.removeprefix("linux-image-")
    # sid splits the image; its other dependencies are for booting real machines.
    parts = archive.names(rf"linux-(binary|modules|base)-{re.escape(release)}")
    return [([image, *parts], False), ([f"linux-headers-{release}", *TOOLS], True)]


def _fetch(series: str) -> Kernel:
    with locked(f"kernel-{series}"):
        if found := cached(series):  # fetched by another process while we waited for the lock
            return found
        namespace()  # without it the packages are of no use
        with Archive(*SUITES[series.partition("-")[0]]) as archive:
            chosen = lock.choose(part(series), archive, lambda a: asked(a, series))
            made = lock.Root(archive.suites, chosen)
            image = made.version(IMAGE)
            if not image:
                raise LabError(f"no kernel image among the packages of {part(series)}")
            release = image[0].removeprefix("linux-image-")
            final = cache_dir("kernels") / f"{series}_{release}_{made.key}"
            if is_complete(final):  # the same packages; another thread or process may use it
                lock.record(part(series), final, chosen)
                return _kernel(series, final)
            say("lab", f"fetching kernel {release} ({', '.join(archive.suites)})")
            with fresh_dir(final) as root:
                merge_usr(root)
                archive.unpack_exactly(chosen, root)
                lock.record(part(series), root, chosen)
                _finish(root, release)
    return _kernel(series, final)


def _image_package(archive: Archive, series: str) -> str:
    """Find the newest image package of the series' flavour (no debug or unsigned one)."""
    name, _, flavour = series.partition("-")
    end = f"-{flavour}-amd64" if flavour else "-amd64"
    others = [f for f in FLAVOURS if f != flavour]
    names = archive.names(rf"linux-image-{re.escape(name)}(?!\d)[-+.~a-z0-9]*{end}")
    names = [n for n in names if not re.search(rf"-({'|'.join(others)}|dbg|unsigned)\b", n)]
    if not names:
        raise LabError(f"no linux-image-{name}*{end} in Debian {', '.join(archive.suites)}")
    return names[-1]


def merge_usr(root: Path) -> None:
    """Make /lib a link to /usr/lib and so on, as in every Debian since bookworm."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def make_usable(root: Path) -> None:
    """Do what the packages' install scripts would do, as far as a build needs it."""
    awk = root / "usr/bin/awk"
    if not awk.exists():
        awk.symlink_to("mawk")
    sh = root / "usr/bin/sh"
    if not sh.exists():
        sh.symlink_to("dash")
    for name in ("dev", "proc", "sys", "tmp", "build"):
        (root / name).mkdir(exist_ok=True)
    os.chmod(root / "tmp", 0o1777)


def _finish(root: Path, release: str) -> None:
    """Put the kernel where the lab expects it, then check that everything is there."""
    make_usable(root)
    boot = root / "boot" / f"vmlinuz-{release}"
    if not boot.exists():  # sid's linux-binary-* keeps the image next to the modules
        boot.parent.mkdir(exist_ok=True)
        boot.symlink_to(f"../usr/lib/modules/{release}/vmlinuz")
    for path in (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/kernel",
                 f"usr/lib/modules/{release}/build", "usr/bin/gcc", "usr/bin/make"):  # fmt: skip
        if not (root / path).exists() and not (root / path).is_symlink():
            raise LabError(f"Debian's packages for {release} do not contain /{path}")
    done = run_in(root, ["depmod", release])
    if done.returncode:
        raise LabError(f"depmod failed for {release}:\n{done.stdout}")
