"""Build the tree's modules, or a consumer's, for one kernel of the lab.

Sources are copied to ``/build/HASH`` in the kernel's root, where HASH is that of their contents,
and built there by the kernel's own kbuild, which finds them in ``/tree``: the same sources are
compiled once per kernel, and ccache recognises files that have not changed since.
"""

import hashlib
import os
import shutil
from pathlib import Path

from ..base.cache import STAMP, is_complete, locked, prune, used
from ..base.errors import BuildError
from ..base.progress import spending
from ..kernels import ccache
from ..kernels.kernels import CLANG_VERSION, SUPPORTED, Kernel, with_clang

TREE = Path(__file__).resolve().parents[3]
# Parts of the tree that go into a build. Missing ones are left out.
SOURCES = ["Kbuild", "Kconfig", "Makefile", "module", "include", "tests/accuracy", "tests/modules",
           "samples"]  # fmt: skip
KINDS = {".c", ".h", ".S", ".mk", ".sh"}  # as well as files named Kbuild, Kconfig and Makefile
# Debian's headers come with a configuration for gcc, with options that clang does not know.
CLANG = [
    f"LLVM={CLANG_VERSION}", f"CC=clang{CLANG_VERSION}",
    "CONFIG_CC_IS_GCC=", "CONFIG_CC_IS_CLANG=y", "CONFIG_AS_IS_GNU=", "CONFIG_AS_IS_LLVM=y",
    # The kernel expects the NOPs of -mnop-mcount at the start of functions; clang puts calls there.
    "CONFIG_FUNCTION_TRACER=",
]  # fmt: skip
# Debug information is nine tenths of a module, which a guest would read, through 9p or from its
# memory, at each insmod; DKMS strips it too. No instruction depends on it, nor do traces of calls.
WITHOUT_DEBUG_INFO = ["CONFIG_DEBUG_INFO=", "CONFIG_DEBUG_INFO_BTF_MODULES="]
# Warnings, for the kernels that `make check` covers: always on, because W=1 changes no instruction.
# kernel-doc is left out: not all of Debian's headers have its script, and `make check` runs it.
WARNINGS = ["W=1", "cmd_checkdoc="]
INSIDE = "tree"  # name under which a build finds its directory
LOG = "build.log"  # in a build directory: make's output
SPARSE = "sparse.log"  # and its output with sparse, once that found nothing
KEEP = 12  # newest build directories to keep, per kernel


def build(kernel: Kernel, compiler: str = "gcc") -> Path:
    """Build all modules of the working tree, tests and samples included; warnings are errors.

    `compiler` may be "clang", which is then fetched if necessary. Return the directory with
    Module.symvers and, below it, the .ko files: `find_ko` finds one. BuildError, with the
    compiler's output, if it fails.
    """
    files = sources()
    if compiler == "clang":
        return _make(with_clang(kernel), files, ["APIC_TIMER_TESTS=1", *CLANG])
    return _make(kernel, files, _arguments(kernel))


def sparse(kernel: Kernel) -> str:
    """Run sparse, from the kernel's root, on all sources where `build` has built them.

    Nothing is compiled again. Return make's output; BuildError if sparse finds an error.
    """
    built = build(kernel)
    log = built / SPARSE
    with locked(f"build-{kernel.release}"):
        if not log.exists():
            arguments = [*WITHOUT_DEBUG_INFO, *_arguments(kernel)]
            output = _kbuild(kernel, built, [*arguments, "C=2", "CF=-D__CHECK_ENDIAN__"])
            log.with_suffix(".new").write_text(output)
            log.with_suffix(".new").rename(log)
    return log.read_text()


def _arguments(kernel: Kernel) -> list[str]:
    return ["APIC_TIMER_TESTS=1", *(WARNINGS if kernel.series in SUPPORTED else [])]


def sources() -> dict[Path, Path]:
    """Return the files that go into a build: path within the tree -> file."""
    files = {}
    for name in SOURCES:
        path = TREE / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if _is_source(file):
                files[file.relative_to(TREE)] = file
    return files


def build_external(kernel: Kernel, directory: Path, base: Path | None = None,
                   variables: dict[str, str] | None = None) -> Path:  # fmt: skip
    """Build another module (a consumer) from `directory`, which has a Kbuild or Makefile.

    `base` is what `build` returned for this kernel; the consumer then finds the public headers at
    ``$(APIC_TIMER)/include`` and the exported symbols in ``$(APIC_TIMER)/Module.symvers``, which
    is passed as KBUILD_EXTRA_SYMBOLS. `variables` are further make variables. Return the directory
    with the .ko; BuildError if it fails.
    """
    files = {f.relative_to(directory): f for f in sorted(directory.rglob("*")) if _is_source(f)}
    arguments = [f"{k}={v}" for k, v in (variables or {}).items()]
    if base is not None:
        used(base)
        inside = f"/build/{base.name}"
        arguments += [f"APIC_TIMER={inside}", f"KBUILD_EXTRA_SYMBOLS={inside}/Module.symvers"]
    return _make(kernel, files, arguments)


def find_ko(built: Path, name: str) -> Path:
    """Return the path of a module (``apic_timer``, without .ko) in a build directory."""
    found = sorted(built.rglob(f"{name}.ko"))
    if not found:
        there = " ".join(sorted(p.name for p in built.rglob("*.ko"))) or "no module at all"
        raise BuildError(f"the build has no {name}.ko, only {there}")
    return found[0]


def _is_source(path: Path) -> bool:
    named = path.name in ("Kbuild", "Kconfig", "Makefile") or path.suffix in KINDS
    return path.is_file() and named and not path.name.endswith(".mod.c")


@spending("building modules")
def _make(kernel: Kernel, files: dict[Path, Path], arguments: list[str]) -> Path:
    arguments = [*WITHOUT_DEBUG_INFO, *arguments]
    key = hashlib.sha256(repr(arguments).encode())
    for relative, file in files.items():
        data = file.read_bytes()
        key.update(f"{relative}\0{len(data)}\0".encode() + data)
    final = kernel.root / "build" / key.hexdigest()[:16]
    with locked(f"build-{kernel.release}"):
        if is_complete(final):
            return used(final)
        shutil.rmtree(final, ignore_errors=True)
        for relative, file in files.items():
            target = final / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            shutil.copymode(file, target)
        try:
            output = _kbuild(kernel, final, arguments)
        except BuildError:
            shutil.rmtree(final)
            raise
        (final / LOG).write_text(output)
        (final / STAMP).touch()
        _prune(final.parent)
    return final


def _kbuild(kernel: Kernel, directory: Path, arguments: list[str]) -> str:
    """Run the kernel's kbuild on a directory with sources; return make's output."""
    flags = "-Werror"
    if CLANG[0] in arguments:
        flags += " -Wno-unknown-warning-option -DCC_USING_FENTRY"
    done = ccache.run(kernel.root, [
        "make", f"-j{os.cpu_count()}", "-C", kernel.headers, f"M=/{INSIDE}",
        f"KCFLAGS={flags} -ffile-prefix-map=/{INSIDE}/=", *arguments, "modules",
    ], {directory: INSIDE})  # fmt: skip
    output = done.stdout.replace(f"/{INSIDE}/", "")
    if done.returncode:
        raise BuildError(f"building for {kernel.release} failed:\n{output}")
    return output


def _prune(directory: Path) -> None:
    """Remove old builds and the remains of interrupted ones; the caller holds the lock."""
    builds = list(directory.iterdir())
    for left in [p for p in builds if not is_complete(p)]:
        shutil.rmtree(left)
        builds.remove(left)
    prune(builds, KEEP)
