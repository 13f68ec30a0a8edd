"""The stock Debian kernels of the lab, each in a root directory with its own suite's compiler.

``ensure("6.1")`` returns a Kernel whose `root` holds, unpacked from Debian's packages, the kernel
image of that series that is locked (the newest, where lock.py has none), its headers, and the gcc
and make of the suite it comes from: modules are built by chroot into it, so the result is the same
whatever this machine runs (the kbuild tools of a sid kernel need sid's libc). A kernel in the cache
is used without any network.
"""

import functools
import lzma
import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.cache import STAMP, cache_dir, fresh_dir, is_complete, locked, newest_first
from ..base.errors import LabError
from ..base.progress import say
from . import lock
from .chroot import namespace, run_in
from .debian import Archive, Groups

# series -> the suites that carry it. All but "7.3" are supported; that one is a canary.
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

# What kbuild needs to build an external module, without anything's recommended extras.
TOOLS = ["gcc", "make", "dash", "mawk", "bash", "coreutils", "sed", "grep", "findutils",
         "diffutils", "base-files", "libc-bin", "kmod"]  # fmt: skip
# And with clang in place of gcc: one that knows -mfunction-return, as bookworm's "clang" does not.
CLANG_VERSION = "-19"
CLANG = [f"{name}{CLANG_VERSION}" for name in ("clang", "lld", "llvm")]


@dataclass(frozen=True)
class Kernel:
    """One stock kernel in the cache."""

    series: str  # as in SUITES, perhaps with a flavour: "6.1", "6.1-rt"
    release: str  # uname -r: "6.1.0-56-amd64"
    root: Path  # chroot with gcc, make and the headers
    vmlinuz: Path

    @property
    def modules(self) -> Path:
        """The directory that the running kernel calls /lib/modules/RELEASE."""
        return self.root / "usr/lib/modules" / self.release

    @property
    def headers(self) -> str:
        """The kernel build directory as seen inside the root."""
        return f"/lib/modules/{self.release}/build"

    def has(self, option: str) -> bool:
        """Tell whether an option ("CONFIG_KASAN") is built in, as far as /boot has the options."""
        config = self.root / "boot" / f"config-{self.release}"
        return config.exists() and f"\n{option}=y\n" in config.read_text()

    def own_module(self, name: str) -> dict[str, bytes]:
        """Return a module ("virtio_blk") and those it needs, uncompressed, in the order to load.

        File name (virtio_blk.ko) -> contents; none if it is built in. LabError if it is not there.
        """
        if re.search(rf"/{name}\.ko$", (self.modules / "modules.builtin").read_text(), re.M):
            return {}
        dependencies = (self.modules / "modules.dep").read_text()
        line = re.search(rf"^(\S+/{name}\.ko\S*):(.*)$", dependencies, re.M)
        if not line:
            raise LabError(f"{self.release} has no module {name}")
        files: dict[str, bytes] = {}
        # A module's own comes last, and what it depends on in the reverse order.
        for path in reversed([line[1], *line[2].split()]):
            data = (self.modules / path).read_bytes()
            compressed = path.endswith(".xz")
            files[Path(path).name.removesuffix(".xz")] = (
                lzma.decompress(data) if compressed else data
            )
        return files


def ensure(series: str) -> Kernel:
    """Return the kernel of a series, fetching it when the cache has none.

    Fetching takes half a minute or so and about 1 GB of disk. LabError, with the reason, when the
    kernel cannot be had: callers must not turn that into a skip.
    """
    name, _, flavour = series.partition("-")
    if name not in SUITES or (flavour and flavour not in FLAVOURS):
        raise LabError(f"no kernel series {series}: there are {', '.join(SUITES)}, each also "
                       f"with -{' or -'.join(FLAVOURS)}")  # fmt: skip
    return cached(series) or _fetch(series)


def part(series: str) -> str:
    """Return the name of a series' part of the lock."""
    return f"kernel-{series}"


def cached(series: str) -> Kernel | None:
    """Return the kernel of a series in the cache, None when there is none.

    That is the locked one, or one that was fetched in its place; without a lock the newest.
    """
    wanted = lock.root(part(series))
    home = cache_dir("kernels")
    # SERIES-RELEASE is of before there was a lock.
    roots = [*home.glob(f"{series}_*"), *home.glob(f"{series}-[0-9]*")]
    roots = [p for p in roots if is_complete(p)]
    if wanted.packages:
        roots = [p for p in roots if lock.is_for(part(series), p) or _as_locked(p, wanted)]
    found = newest_first(roots)
    return _kernel(series, found[0]) if found else None


def with_clang(kernel: Kernel) -> Kernel:
    """Return a kernel with its suite's clang and lld next to gcc, fetching them when need be.

    The root directory is a copy of the kernel's, of hard links, so the kernel's own stays as it is.
    """
    final = cache_dir("clang") / f"{kernel.series}-{kernel.release}"
    with locked(f"clang-{kernel.series}"):
        if not is_complete(final):
            namespace()
            with Archive(*SUITES[kernel.series.partition("-")[0]]) as archive:
                say("lab", f"fetching clang for {kernel.release} ({', '.join(archive.suites)})")
                with fresh_dir(final) as root:
                    _link(kernel.root, root)
                    archive.unpack(CLANG, root)
                    make_usable(root)
    return replace(kernel, root=final, vmlinuz=final / kernel.vmlinuz.relative_to(kernel.root))


def _link(source: Path, target: Path) -> None:
    """Copy what is in a root directory by hard links, all but what was built in it."""
    # tar, which unpacks packages into it, replaces a file rather than write to it.
    names = sorted(p for p in source.iterdir() if p.name != "build" and p.name != STAMP)
    done = subprocess.run(["cp", "-al", "--", *names, target], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"cannot copy {source}: {done.stderr[-1000:]}")


@functools.cache
def _as_locked(root: Path, wanted: lock.Root) -> bool:
    """Tell whether a root is as locked, by the kernel and the compiler if it has no record.

    Those are what a figure depends on, and say which version they are.
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
    """Return the packages that the newest kernel of a series is made of."""
    image = _image_package(archive, series)
    release = image.removeprefix("linux-image-")
    # sid splits the image; its other dependencies are for booting real machines.
    parts = archive.names(rf"linux-(binary|modules|base)-{re.escape(release)}")
    return [([image, *parts], False), ([f"linux-headers-{release}", *TOOLS], True)]


def _fetch(series: str) -> Kernel:
    with locked(f"kernel-{series}"):
        if found := cached(series):  # another process fetched it while we waited for the lock
            return found
        namespace()  # without which all that is fetched is of no use
        with Archive(*SUITES[series.partition("-")[0]]) as archive:
            chosen = lock.choose(part(series), archive, lambda a: asked(a, series))
            made = lock.Root(archive.suites, chosen)
            image = made.version(IMAGE)
            if not image:
                raise LabError(f"no kernel image among the packages of {part(series)}")
            release = image[0].removeprefix("linux-image-")
            say("lab", f"fetching kernel {release} ({', '.join(archive.suites)})")
            final = cache_dir("kernels") / f"{series}_{release}_{made.key}"
            with fresh_dir(final) as root:
                merge_usr(root)
                archive.unpack_exactly(chosen, root)
                lock.record(part(series), root, chosen)
                _finish(root, release)
    return _kernel(series, final)


def _image_package(archive: Archive, series: str) -> str:
    """Find the newest image package of its flavour (no debug or unsigned one)."""
    name, _, flavour = series.partition("-")
    end = f"-{flavour}-amd64" if flavour else "-amd64"
    others = [f for f in FLAVOURS if f != flavour]
    names = archive.names(rf"linux-image-{re.escape(name)}(?!\d)[-+.~a-z0-9]*{end}")
    names = [n for n in names if not re.search(rf"-({'|'.join(others)}|dbg|unsigned)\b", n)]
    if not names:
        raise LabError(f"no linux-image-{name}*{end} in Debian {', '.join(archive.suites)}")
    return names[-1]


def merge_usr(root: Path) -> None:
    """Make /lib a link to /usr/lib and so on, as every Debian since bookworm has it."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")


def make_usable(root: Path) -> None:
    """Do what the packages' own install scripts would, as far as a build needs it."""
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
    """Put the kernel where it is looked for, then check that all is there."""
    make_usable(root)
    boot = root / "boot" / f"vmlinuz-{release}"
    if not boot.exists():  # sid's linux-binary-* keeps the image next to the modules
        boot.parent.mkdir(exist_ok=True)
        boot.symlink_to(f"../usr/lib/modules/{release}/vmlinuz")
    for path in (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/kernel",
                 f"usr/lib/modules/{release}/build", "usr/bin/gcc", "usr/bin/make"):  # fmt: skip
        if not (root / path).exists() and not (root / path).is_symlink():
            raise LabError(f"Debian's packages for {release} did not bring /{path}")
    done = run_in(root, ["depmod", release])
    if done.returncode:
        raise LabError(f"depmod failed for {release}:\n{done.stdout}")
