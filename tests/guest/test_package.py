"""The Debian packages build, and install into a Debian system with its own kernel headers.

The lab makes the root directories; this machine stays untouched. A suite's packages are built once,
in its own build root, where lintian checks them too.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lab.base.cache import cache_dir, temporary
from lab.kernels import ccache
from lab.kernels.chroot import run_in
from lab.run import package

TREE = Path(__file__).resolve().parents[2]
VERSION = re.search(r'VERSION "(.*)"', (TREE / "include/linux/apic_version.h").read_text())[1]
# With openssl DKMS signs; dpkg-dev and dctrl-tools are for Debian's own test; programs need
# libc6-dev.
PACKAGES = ("dctrl-tools", "dkms", "dpkg-dev", "iproute2", "libc6-dev", "linux-headers-amd64",
            "openssl")  # fmt: skip
# The headers of Debian 12 bring gcc, those of Debian 13 only gcc-14, which no program is called by.
COMPILER = {"trixie": ("gcc",)}
OURS = ("apic-timer-dkms", "apic-timer-dev", "apic-timer-tc", "apic-timer-tools")
BOTH = [package.SUITES[0], pytest.param(package.SUITES[1], marks=pytest.mark.matrix)]
APT = """
    set -e
    rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
    cd /debs && dpkg-scanpackages . >Packages 2>/dev/null
    echo 'deb [trusted=yes] file:/debs ./' >/etc/apt/sources.list
    echo 'APT::Sandbox::User "root";' >/etc/apt/apt.conf.d/sandbox
    echo "DPkg::Path \"$PATH\";" >/etc/apt/apt.conf.d/path
    apt-get -qq update
"""
INSTALL = f"DEBIAN_FRONTEND=noninteractive apt-get -qq -y install {' '.join(OURS)}"
PURGE = f"DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge {' '.join(OURS)}"
# Files that dpkg, apt, ldconfig and DKMS (its key) keep.
KEPT = re.compile(r"/var/(lib/(dpkg|apt)|cache|log)/.*|/var/lib/dkms/mok\.(key|pub)|/tmp/.*")


class Debian:
    """A Debian system with DKMS, kernel headers and, in /debs, our packages for apt."""

    def __init__(self, root: Path):
        self.root = root
        self.release = next(
            path.name for path in (root / "usr/lib/modules").iterdir() if path.name[0].isdigit()
        )

    def run(self, command: str, status: int = 0) -> str:
        """Run a shell command that must exit with `status`; return its output."""
        done = ccache.run(self.root, ["/bin/bash", "-c", command])
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def files(self) -> set[str]:
        """List the files, and the targets of links."""
        found = self.run(
            r"find / -xdev \( -path /proc -o -path /dev -o -path /lab \) -prune "
            r"-o -printf '%p %l\n'"
        )
        return {line for line in found.splitlines() if not KEPT.fullmatch(line.split()[0])}


@pytest.fixture(scope="module", params=BOTH)
def built(request):
    """Yield a suite and the directory with its packages."""
    with temporary("tmp", cache_dir("scratch")) as directory:
        output = directory / "debs"
        package.build(request.param, output)  # including lintian
        yield request.param, output


@pytest.fixture
def debian(built, scratch):
    """Yield a machine without the packages."""
    suite, debs = built
    root = scratch / "root"
    origin = package.root(suite, "apt", (*PACKAGES, *COMPILER.get(suite, ())))
    # Compilers and headers are never written.
    root.mkdir()
    linked = ["usr/lib/gcc", "usr/lib/x86_64-linux-gnu", "usr/libexec",
              *(str(p.relative_to(origin)) for p in origin.glob("usr/src/linux-*"))]  # fmt: skip
    pack = ["tar", "-c", "-C", origin, *(f"--exclude=./{name}" for name in linked), "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-p", "-C", root], stdin=archive.stdout, check=True)
    for name in linked:
        if (origin / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-al", origin / name, root / name], check=True)
    shutil.copytree(debs, root / "debs")
    machine = Debian(root)
    machine.run(APT)
    machine.run(f"depmod {machine.release}")  # as a kernel's own package does
    return machine


def copy_source(machine: Debian) -> None:
    """Copy the sources of `make install` to /root/tree."""
    tree = machine.root / "root/tree"
    tree.mkdir()
    for name in ("COPYING", "Kbuild", "Makefile", "README.md", "dkms.conf"):
        shutil.copy(TREE / name, tree)
    for name in ("include", "module", "packaging", "samples", "tools/tc"):
        shutil.copytree(TREE / name, tree / name,
                        ignore=shutil.ignore_patterns("*.ko", "*.o"))  # fmt: skip


def test_contents(built):
    _, debs = built
    listed = {}
    for name in OURS:
        (deb,) = debs.glob(f"{name}_*.deb")
        listed[name] = subprocess.run(["dpkg-deb", "-c", deb], check=True, text=True,
                                      stdout=subprocess.PIPE).stdout  # fmt: skip
    for path in ("dkms.conf", "Kbuild", "module/core/main.c", "packaging/dkms-hook"):
        assert f" ./usr/src/apic-timer-{VERSION}/{path}\n" in listed["apic-timer-dkms"]
    assert "./usr/src/apic-timer -> ../share/apic-timer\n" in listed["apic-timer-dev"]
    for path in ("apic-timer/include/linux/apic_timer.h", "apic-timer/include/apic_timer.mk",
                 "man/man7/apic_timer.7.gz", "man/man9/add_apic_timer.9.gz"):  # fmt: skip
        assert f" ./usr/share/{path}\n" in listed["apic-timer-dev"]
    for path in ("lib/x86_64-linux-gnu/tc/q_apic.so", "share/man/man8/tc-apic.8.gz"):
        assert f" ./usr/{path}\n" in listed["apic-timer-tc"]
    for path in ("bin/apic-timer", "share/man/man1/apic-timer.1.gz",
                 "share/man/man1/apic-timer-status.1.gz",
                 "share/bash-completion/completions/apic-timer",
                 "share/zsh/vendor-completions/_apic-timer"):  # fmt: skip
        assert f" ./usr/{path}\n" in listed["apic-timer-tools"]


def test_clean(tmp_path):
    """What was built in the tree before is not packaged as its source."""
    source = package.write_source(tmp_path)
    before = {path for path in source.rglob("*") if path.is_file()}
    for name in ("Module.symvers", "module/core/apic_timer.ko", "module/core/main.o",
                 "module/core/.main.o.cmd", "build/tool/apic-timer",
                 "build/man/man4/apic_timer.4"):  # fmt: skip
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    root = package.root(package.SUITES[0], "buildd", package.BUILD)
    done = run_in(root, ["make", "-C", f"/{package.WORK}", "-f", "debian/rules",
                         "override_dh_auto_clean"], {source: package.WORK})  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert {path for path in source.rglob("*") if path.is_file()} == before


NEWEST = "6.99.0-1-amd64"
LOGS = f"""
    set -e
    export DEBIAN_FRONTEND=noninteractive
    mkdir -p /tmp/bin /lib/modules/{NEWEST}/build/include
    echo 'echo "$*" >>/tmp/log' >/tmp/bin/dkms
    echo '[ $1 = -r ] && ls /lib/modules | head -n 1 || exec /usr/bin/uname $1' >/tmp/bin/uname
    sed -i '1i #!/bin/sh' /tmp/bin/*
    chmod +x /tmp/bin/*
    touch /boot/config-{NEWEST}
"""


def built_by(debian, command: str) -> list[str]:
    """Return the kernels that a command has DKMS build for; this DKMS builds nothing."""
    debian.run(f"{LOGS} PATH=/tmp/bin:$PATH {command}")
    log = (debian.root / "tmp/log").read_text()
    debian.run(f"rm -r /tmp/bin /tmp/log /lib/modules/{NEWEST} /boot/config-{NEWEST}")
    return re.findall(r"^build .*-k (\S+)", log, re.M)


def test_install_and_purge(debian):
    """A consumer builds with the packages; `make install` declines; purging leaves nothing.

    What the page of Secure Boot says builds the modules again, for each kernel that has them.
    """
    before = debian.files()
    debian.run(INSTALL)
    status = debian.run("dkms status apic-timer")
    assert f"apic-timer/{VERSION}, {debian.release}, x86_64: installed" in status
    assert debian.run(f"dpkg --verify {' '.join(OURS)}") == ""
    assert "Usage: ... apic" in debian.run("tc qdisc add dev lo root apic help 2>&1", 1)
    assert debian.run("apic-timer --version") == f"apic-timer {VERSION}\n"
    assert debian.run("readlink /usr/src/apic-timer") == "../share/apic-timer\n"
    shutil.copytree(TREE / "samples/hello", debian.root / "root/hello")
    make = f"make -C /root/hello KDIR=/lib/modules/{debian.release}/build"
    assert "warning:" not in debian.run(make).lower()
    info = debian.run("modinfo /root/hello/hello_apic.ko")
    assert re.search("^depends: +apic_timer$", info, re.M)
    shutil.rmtree(debian.root / "root/hello")
    # The preload library, apic-calendar and the examples
    debian.run("make -C /usr/share/apic-timer/user OUTPUT=/tmp/user")
    assert "usage" in debian.run("/tmp/user/apic-calendar --help").lower()

    page = (TREE / "docs/howto/secure-boot.md").read_text()
    again = re.search(r"built again.*?:\n\n +sudo ([^\n]*)", page, re.S)[1]
    assert built_by(debian, again) == [debian.release, NEWEST]

    copy_source(debian)
    installed = debian.files()
    refused = debian.run(f"make -C /root/tree install KVER={debian.release}", 2)
    assert "belongs to the package apic-timer-dkms" in refused
    # A different version would be a second one.
    debian.run("sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"9.9\"/' /root/tree/dkms.conf")
    refused = debian.run(f"make -C /root/tree install KVER={debian.release}", 2)
    assert "belongs to the package apic-timer-dkms" in refused
    assert "apic-timer-dkms" in debian.run("make -C /root/tree uninstall")
    assert debian.files() == installed
    shutil.rmtree(debian.root / "root/tree")

    debian.run(PURGE)
    assert debian.files() == before


@pytest.mark.matrix
def test_after_make_install(debian):
    """A package does not unpack over `make install`, and replaces the remaining link."""
    copy_source(debian)
    debian.run(f"make -C /root/tree install KVER={debian.release}")
    before = debian.files()
    assert "make uninstall" in debian.run(INSTALL, 100)
    # apt may unpack the other packages all the same.
    assert before <= debian.files()
    assert "apic-timer-dkms" not in debian.run("dpkg-query -f '${Package}\n' -W")
    debian.run("make -C /root/tree uninstall && rm -r /root/tree")
    debian.run("ln -s apic-timer-0.0.9 /usr/src/apic-timer")
    debian.run(INSTALL)
    assert debian.run("readlink /usr/src/apic-timer") == "../share/apic-timer\n"
    assert debian.run("dpkg --verify apic-timer-dev") == ""
    debian.run(PURGE)
    assert not list((debian.root / "usr/src").glob("apic-timer*"))
    assert not (debian.root / "var/lib/dkms/apic-timer").exists()


@pytest.mark.matrix
def test_debian_own(debian):
    """Debian's own test for packages of kernel modules passes."""
    output = debian.run("mkdir /tmp/own && cd /tmp/own && /usr/lib/dkms/dkms-autopkgtest "
                        "apic-timer-dkms 2>&1")  # fmt: skip
    print(output)
    # Debian 13's names the module, too.
    assert re.search(rf"^I: PASS (\S+ )?{re.escape(debian.release)}$", output, re.MULTILINE)
    assert "FAIL" not in output
