"""Debian packages of any suite, unpacked into a directory without installing them.

A private apt (own lists, own empty status file) reads the suites from the mirror that this
machine's own apt is configured with, checks signatures with the Debian archive keyring and
resolves dependencies; the packages are then unpacked, not configured. The machine's package
state is neither read nor changed.
"""

import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from ..base.cache import cache_dir, temporary
from ..base.errors import LabError
from ..base.progress import say, spending

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Files that neither our chroots nor our QEMU read; leaving them out halves some packages.
EXCLUDE = ["./usr/share/doc/*", "./usr/share/man/*", "./usr/share/locale/*", "./usr/share/info/*"]
EVERY = 5  # s between progress lines of a download

# Packages, and whether their dependencies are included.
Groups = list[tuple[list[str], bool]]


class Package(NamedTuple):
    """One package of an archive."""

    name: str
    version: str
    sha256: str


def _run(argv: list[str], env: dict | None = None, cwd: str | None = None) -> str:
    done = subprocess.run(
        argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace",
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"{' '.join(argv[:4])} ... failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def mirrors() -> tuple[str, str | None]:
    """Return the URIs of the Debian archive and of its security archive (None: not configured).

    They are taken from this machine's own apt configuration, which may have other repositories with
    a component main; LabError if it has none.
    """
    every = _targets("--no-release-info", "$(REPO_URI) $(RELEASE)")
    # Only repositories whose lists were fetched have an origin.
    origins = dict(line.partition(" ")[::2] for line in _targets("$(REPO_URI) $(ORIGIN)"))
    archives = {tuple(line.split()) for line in every}

    def first(pattern: str) -> str | None:
        found = [line.split() for line in every if re.fullmatch(pattern, line.split()[1])]
        # False sorts before True.
        found.sort(key=lambda pair: (
            origins.get(pair[0]) != "Debian",
            (pair[0], f"{pair[1]}-updates") not in archives,
            not pair[0].endswith("/debian/"),
        ))  # fmt: skip
        return found[0][0] if found else None

    main = first("[a-z]+")
    if main is None:
        raise LabError("no Debian mirror with component main in this machine's apt sources")
    return main, first("[a-z]+-security")


def _targets(*words: str) -> list[str]:
    """List apt's package lists of component main: options of apt, then the form of a line."""
    *options, form = words
    text = _run(["apt-get", "indextargets", *options, "--format", form, "Created-By: Packages",
                 "Component: main"])  # fmt: skip
    return text.splitlines()


class Archive:
    """A private apt over some suites: ``with Archive("bookworm", "bookworm-security") as a:``.

    Entering fetches the package lists (some MB, seconds) into a temporary directory of the cache;
    leaving deletes it. LabError when the lists cannot be fetched.
    """

    def __init__(self, *suites: str):
        self.suites = suites
        self.absent: list[str] = []  # suites of which this machine's apt has no archive

    def __enter__(self) -> "Archive":
        with ExitStack() as stack:
            self.home = stack.enter_context(temporary(".apt.", cache_dir()))
            self._update()
            self._end = stack.pop_all().close
        return self

    def __exit__(self, *exc) -> None:
        self._end()

    def _update(self) -> None:
        archive, security = mirrors()
        lines = []
        for suite in self.suites:
            uri = security if suite.endswith("-security") else archive
            if uri:
                lines.append(f"deb [arch=amd64 signed-by={KEYRING}] {uri} {suite} main\n")
            else:
                self.absent.append(suite)
        for sub in ("lists/partial", "archives/partial", "empty"):
            (self.home / sub).mkdir(parents=True, exist_ok=True)
        (self.home / "sources.list").write_text("".join(lines))
        (self.home / "status").touch()
        self._write_config()
        # Update failures are warnings to apt unless an option says otherwise.
        self._fetch("-o", "APT::Update::Error-Mode=any", "update")

    def names(self, pattern: str) -> list[str]:
        """List the package names that match a regular expression as a whole, oldest first."""
        every = self._apt("apt-cache", "pkgnames").split()
        return sorted((n for n in every if re.fullmatch(pattern, n)), key=_version_key)

    def version(self, package: str) -> str:
        """Return the version of a package that would be fetched."""
        found = re.search(r"Candidate: (\S+)", self._apt("apt-cache", "policy", package))
        if not found or found[1] == "(none)":
            raise LabError(f"no package {package} in {', '.join(self.suites)}")
        return found[1]

    def resolve(self, groups: Groups) -> tuple[Package, ...]:
        """Return the newest packages of these names and of their dependencies, sorted."""
        chosen: dict[str, str] = {}
        for names, dependencies in groups:
            if dependencies:
                done = self._apt("apt-get", "-s", "-o", "APT::Install-Recommends=false", "install",
                                 *names)  # fmt: skip
                chosen |= dict(re.findall(r"^Inst (\S+) \((\S+) ", done, re.M))
            else:
                chosen |= {name: self.version(name) for name in names}
        uris = self._apt("apt-get", "--print-uris", "download",
                         *(f"{name}={version}" for name, version in chosen.items()))  # fmt: skip
        hashes = dict(re.findall(r"^'\S+' ([^_\s]+)_\S+ \d+ SHA256:(\S+)$", uris, re.M))
        if missing := chosen.keys() - hashes.keys():
            raise LabError(f"apt has no SHA-256 of {', '.join(sorted(missing))}")
        return tuple(Package(n, version, hashes[n]) for n, version in sorted(chosen.items()))

    def gone(self, packages: Iterable[Package]) -> list[Package]:
        """List the packages that the archive does not have, or no longer has, in their version."""
        packages = list(packages)
        known = set(self._apt("apt-cache", "pkgnames").split())
        names = [p.name for p in packages if p.name in known]
        rows = self._apt("apt-cache", "madison", *names).splitlines() if names else []
        there = {tuple(field.strip() for field in row.split("|")[:2]) for row in rows}
        return [p for p in packages if (p.name, p.version) not in there]

    def unpack(self, packages: list[str], into: Path, *, dependencies: bool = True) -> None:
        """Download the newest packages of these names and unpack them below `into`."""
        self.unpack_exactly(self.resolve([(packages, dependencies)]), into)

    def unpack_exactly(self, packages: Iterable[Package], into: Path) -> None:
        """Download these packages and unpack them below `into`; the archives are then deleted.

        LabError when one is not available, or does not match its SHA-256.
        """
        packages = list(packages)
        with tempfile.TemporaryDirectory(dir=self.home) as temp:
            self._fetch("download", *(f"{p.name}={p.version}" for p in packages), cwd=temp)
            debs = {deb.name.partition("_")[0]: deb for deb in Path(temp).glob("*.deb")}
            said = time.monotonic()
            with spending("unpacking packages"):
                for number, package in enumerate(packages):
                    if time.monotonic() - said >= EVERY:
                        say("lab", f"  unpacking, {number} of {len(packages)} packages done")
                        said = time.monotonic()
                    if package.name not in debs:
                        raise LabError(f"apt did not fetch {package.name} {package.version}")
                    deb = debs[package.name]
                    if hashlib.sha256(deb.read_bytes()).hexdigest() != package.sha256:
                        raise LabError(f"the SHA-256 of {deb.name} is not {package.sha256}")
                    unpack_deb(deb, into)

    def _write_config(self) -> None:
        """Write the apt configuration that confines apt to this archive's directories."""
        home = self.home
        (home / "apt.conf").write_text(
            f'Dir::State::lists "{home}/lists";\n'
            f'Dir::State::status "{home}/status";\n'
            f'Dir::State::extended_states "{home}/extended_states";\n'
            f'Dir::Cache::archives "{home}/archives";\n'
            f'Dir::Cache::pkgcache "{home}/pkgcache.bin";\n'
            f'Dir::Cache::srcpkgcache "{home}/srcpkgcache.bin";\n'
            f'Dir::Etc::sourcelist "{home}/sources.list";\n'
            f'Dir::Etc::sourceparts "{home}/empty";\n'
            f'Dir::Etc::preferences "{home}/preferences";\n'
            f'Dir::Etc::preferencesparts "{home}/empty";\n'
            'APT::Architecture "amd64";\n'
            'APT::Architectures { "amd64"; };\n'
            'APT::Sandbox::User "root";\n'
            'APT::Default-Release "";\n'
            'Acquire::Languages "none";\n'
            'Acquire::Retries "3";\n'
            "#clear APT::Update::Post-Invoke;\n"
            "#clear APT::Update::Post-Invoke-Success;\n"
            "#clear APT::Update::Pre-Invoke;\n"
            "#clear DPkg::Post-Invoke;\n"
            "#clear DPkg::Pre-Install-Pkgs;\n"
        )

    def _apt(self, tool: str, *args: str) -> str:
        return _run([tool, *args], self._environment())

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "APT_CONFIG": f"{self.home}/apt.conf", "LC_ALL": "C.UTF-8"}

    def _fetch(self, *args: str, cwd: str | None = None) -> None:
        """Run apt-get, and report progress every few seconds."""
        read, write = os.pipe()
        argv = ["apt-get", "-o", f"APT::Status-Fd={write}", *args]
        with open(read) as status, tempfile.TemporaryFile("w+") as output:
            with spending("fetching packages"), subprocess.Popen(
                argv, env=self._environment(), cwd=cwd, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, pass_fds=[write],
            ) as apt:  # fmt: skip
                os.close(write)
                said = time.monotonic()
                for line in status:  # dlstatus:1:20.3:Retrieving file 2 of 9 (7s remaining)
                    _, _, percent, text = line.rstrip().split(":", 3)
                    if time.monotonic() - said >= EVERY:
                        say("lab", f"  {float(percent):.0f} %, {text}")
                        said = time.monotonic()
            if apt.returncode:
                output.seek(0)
                raise LabError(f"{' '.join(argv[:4])} ... failed:\n{output.read()[-3000:]}")


def _version_key(name: str) -> list:
    return [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]


def unpack_deb(deb: Path, into: Path) -> None:
    """Unpack one package; a directory that is a symbolic link (/lib -> usr/lib) stays one."""
    contents = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
    tar = ["tar", "-x", "-C", str(into), "--keep-directory-symlink", "--no-same-owner"]
    done = subprocess.run([*tar, *(f"--exclude={e}" for e in EXCLUDE)], stdin=contents.stdout,
                          capture_output=True, text=True)  # fmt: skip
    contents.stdout.close()
    if contents.wait() or done.returncode:
        raise LabError(f"cannot unpack {deb.name}: {done.stderr[-1000:]}")
