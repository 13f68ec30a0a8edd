"""Run builds in a root directory, with compilers that ask ccache first.

Most builds repeat an earlier one: the next version of a tree differs in a few files, or DKMS
builds the same sources in another root. This ccache lives in the cache and runs with its own
libraries, so it works in the root of any suite. It identifies an object by the compiler, the
options, and the contents of every file that was read. The compiler does not list what a source
includes by .incbin, as arch/x86/boot/compressed/piggy.S does with the kernel itself; ccache is not
asked for such sources.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..base.cache import cache_dir
from .chroot import ENVIRONMENT, run_in
from .unpacked import LIBRARIES, unpacked

NAME = "ccache"
SUITES = ("trixie", "trixie-security")
PACKAGES = ["ccache"]
# Paths within a root directory
PROGRAMS, STORE, COMPILERS = "lab/ccache", "lab/ccache-store", "lab/compilers"
COMPILER = re.compile(r"(x86_64-linux-gnu-)?gcc(-\d+)?|clang(-\d+)?")
CCACHE = (f"/{PROGRAMS}/lib64/ld-linux-x86-64.so.2 --library-path /{PROGRAMS}/{LIBRARIES} "
          f"/{PROGRAMS}/usr/bin/ccache")  # fmt: skip
SCRIPT = f"""#!/bin/sh
for word; do
    case $word in
    *.[cSs]) ! grep -qs incbin "$word" || exec /usr/bin/${{0##*/}} "$@" ;;
    esac
done
exec {CCACHE} /usr/bin/${{0##*/}} "$@"
"""
VARIABLES = {
    "PATH": f"/{COMPILERS}:{ENVIRONMENT['PATH']}",
    "CCACHE_DIR": f"/{STORE}",
    "CCACHE_MAXSIZE": "2G",
    # Unpacking a root again does not change its compiler.
    "CCACHE_COMPILERCHECK": "content",
    # The compiler itself lists the files that it read, so nothing is preprocessed twice.
    "CCACHE_DEPEND": "1",
}


def run(
    root: Path, argv: list[str], bound: Mapping[Path, str] | None = None
) -> subprocess.CompletedProcess:
    """Do what `run_in` does, with the compilers in COMPILERS first in the path.

    LabError if the cache has no ccache and none can be fetched.
    """
    prepare(root)
    programs = unpacked(NAME, SUITES, PACKAGES)
    return run_in(root, argv, {programs: PROGRAMS, cache_dir(NAME): STORE, **(bound or {})},
                  VARIABLES)  # fmt: skip


def prepare(root: Path) -> None:
    """Make the directories that `run` needs in a root, and a script for each of its compilers."""
    for name in (PROGRAMS, STORE, COMPILERS):
        (root / name).mkdir(parents=True, exist_ok=True)
    for compiler in (root / "usr/bin").iterdir():
        script = root / COMPILERS / compiler.name
        if COMPILER.fullmatch(compiler.name) and not _is(script, SCRIPT):
            script.write_text(SCRIPT)
            script.chmod(0o755)


def _is(file: Path, text: str) -> bool:
    return file.exists() and file.read_text() == text
