"""Build this tree's Debian packages, in a root directory of the suite that they are for."""

import gzip
import hashlib
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from ..base.cache import cache_dir, fresh_dir, is_complete, locked, temporary
from ..base.errors import BuildError, LabError
from ..base.listing import listed
from ..base.progress import say, spending
from ..build.build import TREE
from ..kernels.chroot import namespace, run_in
from ..kernels.debian import KEYRING, mirrors

SUITES = ("bookworm", "trixie")
BUILD = ("debhelper", "dh-dkms", "lintian", "python3", "scdoc")  # in addition to build-essential
WORK = "build/packages"  # in a root: mount point of the build directory
# Part of a failure's output that is shown: dpkg-buildpackage gives the reason last.
TAIL = 4000


def root(suite: str, variant: str, packages: tuple[str, ...]) -> Path:
    """Return a root directory with packages of a suite installed, from the cache.

    mmdebstrap makes it, from the mirror of this machine's own apt; `variant` is one of its
    variants. Everything in it belongs to the current user. LabError if it cannot be made.
    """
    asked = [suite, variant, *packages]
    key = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:8]
    final = cache_dir("roots") / f"{suite}-{key}"
    namespace()
    with locked(f"root-{final.name}"):
        if is_complete(final):
            return final
        say("lab", f"creating a root directory of {suite}: {' '.join(packages)}")
        archive, security = mirrors()
        lines = [f"deb [signed-by={KEYRING}] {archive} {suite} main"]
        if security:
            lines.append(f"deb [signed-by={KEYRING}] {security} {suite}-security main")
        argv = ["mmdebstrap", "--quiet", f"--variant={variant}", f"--include={','.join(packages)}",
                "--architectures=amd64", "--format=tar", suite, "-", *lines]  # fmt: skip
        with spending("making root directories"), fresh_dir(final) as temp:
            with tempfile.TemporaryFile() as log:
                with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=log) as making:  # fmt: skip
                    unpack = ["tar", "-x", "-p", "-C", temp, "--no-same-owner", "--exclude=./dev/*"]
                    unpacked = subprocess.run(unpack, stdin=making.stdout)
                if making.returncode or unpacked.returncode:
                    log.seek(0)
                    text = log.read().decode(errors="replace")[-TAIL:]
                    raise LabError(f"mmdebstrap {suite} failed:\n{text}")
            (temp / WORK).mkdir(parents=True)
    return final


def build(suite: str, output: Path) -> list[Path]:
    """Build source and binary packages for a suite and leave them in `output`; return the .debs.

    BuildError if that fails, or if lintian finds an error or a warning.
    """
    with temporary("tmp", cache_dir("scratch")) as work:
        write_source(work)  # may fail: before the root directory, which takes minutes
        where = root(suite, "buildd", BUILD)
        say("lab", f"building the packages in a root directory of {suite}")
        source = next(path for path in work.iterdir() if path.is_dir()).name
        for command in (
            f"cd {source} && dpkg-buildpackage --no-sign",
            # The log shows the user's name, and packages should not be checked as root.
            "lintian --allow-root --fail-on error,warning --info ./*.changes",
        ):
            with spending("building packages"):
                done = run_in(where, ["/bin/sh", "-c", f"cd /{WORK} && {command}"],
                              {work: WORK})  # fmt: skip
            (work / "build.log").open("a").write(f"$ {command}\n{done.stdout}")
            if done.returncode:
                raise BuildError(f"{command} failed in {suite}:\n{done.stdout[-TAIL:]}")
        shutil.rmtree(work / source)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(work, output)
    return sorted(output.glob("*.deb"))


def write_source(directory: Path) -> Path:
    """Write apic-timer_VERSION.orig.tar.gz and the source tree next to it; return the latter.

    LabError if git does not list the files.
    """
    changelog = (TREE / "debian/changelog").read_text()
    version = re.match(r"apic-timer \(([^-]+)-", changelog)[1]
    source = directory / f"apic-timer-{version}"
    for name in listed(TREE):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / name, source / name)
    with gzip.open(directory / f"apic-timer_{version}.orig.tar.gz", "wb", 6) as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(source, source.name,
                    filter=lambda m: None if m.name == f"{source.name}/debian" else m)  # fmt: skip
    return source


def main(suites: list[str]) -> int:
    """Build for these suites, or for all; print the packages' paths."""
    for suite in suites or SUITES:
        output = TREE / "build/deb" / suite
        for package in build(suite, output):
            print(shlex.quote(str(package.relative_to(TREE))))
    return 0
