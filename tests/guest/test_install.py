"""DKMS installs the module, and other modules build against what it installs.

The tests run in a copy of a stock kernel's root directory, with the DKMS of the same suite; this
machine's own /usr/src, /lib/modules and DKMS stay untouched. The consumer is samples/hello, which
the documentation shows.
"""

import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest
from lab.base.cache import STAMP, cache_dir, fresh_dir, is_complete, locked, temporary
from lab.build import build
from lab.engines import uefi, virtual
from lab.kernels import ccache, kernels
from lab.kernels.debian import Archive

TREE = Path(__file__).resolve().parents[2]
SOURCES = ["COPYING", "Kbuild", "Makefile", "README.md", "dkms.conf", "include", "module",
           "packaging", "samples", "tools/tc", "user"]  # fmt: skip
VERSION = re.search(r'VERSION "(.*)"', (TREE / "include/linux/apic_version.h").read_text())[1]
OLDEST = kernels.SUPPORTED[0]
PLUGINS = "/usr/lib/x86_64-linux-gnu/tc"  # where iproute2's plug-ins are
KNOWN = "/var/lib/dkms/apic-timer"  # what DKMS knows of us
PACKAGES = ["dkms", "openssl", "xz-utils"]  # with openssl DKMS signs modules


class Machine:
    """A Debian machine, as far as needed to build and install modules."""

    def __init__(self, kernel: kernels.Kernel, root: Path):
        self.kernel = kernel
        self.release = kernel.release
        self.root = root

    def run(self, command: str, status: int = 0) -> str:
        """Run a shell command that must exit with `status`; return its output."""
        done = ccache.run(self.root, ["/bin/bash", "-c", command])
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file, making its directories."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def files(self) -> set[str]:
        """List all files, except those in /tmp and the lab's own."""
        found = self.run("find / -xdev '(' -path /tmp -o -path /lab ')' -prune -o -print")
        return set(found.splitlines())

    def copy(self, directory: Path) -> "Machine":
        """Return another machine with the same files."""
        copy_root(self.root, directory / "copy")
        return Machine(self.kernel, directory / "copy")


def new_machine(series: str, directory: Path) -> Machine:
    """Make a machine with DKMS and, in /src, this tree."""
    kernel = kernels.ensure(series)
    root = directory / "root"
    copy_root(kernel.root, root)
    copy(dkms(series), root)
    (root / "src").mkdir()
    for name in SOURCES:
        if (TREE / name).is_file():
            shutil.copy(TREE / name, root / "src")
        else:
            shutil.copytree(TREE / name, root / "src" / name,
                            ignore=shutil.ignore_patterns("*.ko", "*.o"))  # fmt: skip
    (root / PLUGINS[1:]).mkdir()
    return Machine(kernel, root)


def copy_root(source: Path, root: Path) -> None:
    """Copy a root directory, without what builds do not need: the kernel and most modules.

    Compilers, libraries and kernel headers, which are never written, become hard links.
    """
    root.mkdir()
    linked = ["usr/lib/gcc", "usr/lib/x86_64-linux-gnu", "usr/include"]
    linked += [str(p.relative_to(source)) for p in source.glob("usr/src/linux-*-*")]
    copy(source, root, ["build", "boot", "lab", "usr/lib/modules/*/kernel/[!l]*", *linked])
    for name in linked:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-al", source / name, root / name], check=True)


def copy(source: Path, target: Path, leave: Iterable[str] = ()) -> None:
    """Copy a directory's contents into another one, in which links to directories stay links.

    The directory itself may be a build that another test's use marks as used meanwhile, which tar
    would report as a change of it.
    """
    pack = ["tar", "-c", "-C", source, *(f"--exclude=./{name}" for name in leave),
            *(f"./{path.name}" for path in source.iterdir())]  # fmt: skip
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", target],
                       stdin=archive.stdout, check=True)  # fmt: skip
    assert archive.returncode == 0


def dkms(series: str) -> Path:
    """Return a directory with the DKMS of a kernel's suite."""
    final = cache_dir("dkms") / "-".join([*kernels.SUITES[series], *PACKAGES])
    with locked("dkms"):
        if not is_complete(final):
            with fresh_dir(final) as temp, Archive(*kernels.SUITES[series]) as archive:
                archive.unpack(PACKAGES, temp, dependencies=False)
    return final


# Debian's releases; sid, the newest, is also built for all other tests.
SERIES = [pytest.param(s, marks=[pytest.mark.matrix] if s == kernels.SUPPORTED[-1] else [])
          for s in kernels.SUPPORTED]  # fmt: skip


@pytest.fixture(scope="module", params=SERIES)
def installed(request):
    """Yield a machine after `make install`."""
    with temporary("tmp", cache_dir("scratch")) as directory:
        machine = new_machine(request.param, directory)
        before = machine.files()
        machine.run(f"make -C /src install KVER={machine.release}")
        machine.before = before
        yield machine


def write_consumer(machine: Machine, directory: str, names=("hello_apic.c", "Makefile")) -> None:
    """Write the module of samples/hello."""
    for name in names:
        machine.write(f"{directory}/{name}", (TREE / "samples/hello" / name).read_text())


def test_install(installed):
    status = installed.run("dkms status apic-timer")
    assert f"apic-timer/{VERSION}, {installed.release}, x86_64: installed" in status
    info = installed.run(f"modinfo -k {installed.release} apic_timer")
    assert "/updates/dkms/apic_timer.ko" in info
    assert re.search(rf"^version: +{re.escape(VERSION)}$", info, re.M)
    assert re.search("^signer: +DKMS module signing key$", info, re.M)
    device = installed.run(f"modinfo -k {installed.release} apic_timer_dev")
    assert "/updates/dkms/apic_timer_dev.ko" in device
    assert re.search("^depends: +apic_timer$", device, re.M)
    calendar = installed.run(f"modinfo -k {installed.release} apic_calendar")
    assert "/updates/dkms/apic_calendar.ko" in calendar
    shaper = installed.run(f"modinfo -k {installed.release} sch_apic")
    assert "/updates/dkms/sch_apic.ko" in shaper
    assert re.search("^alias: +net-sch-apic$", shaper, re.M)
    assert re.search("^depends: +apic_timer$", shaper, re.M)
    for needed in (f"/usr/src/apic-timer-{VERSION}/dkms.conf", "/usr/src/apic-timer/README.md",
                   "/usr/src/apic-timer/packaging/modprobe.conf"):  # fmt: skip
        installed.run(f"test -e {needed}")
    assert "apic" not in installed.run("ls /etc/modprobe.d")


def test_plug_in_for_tc(installed, scratch):
    """It is where tc looks; without tc, `make install` reports that and continues."""
    installed.run(f"test -s {PLUGINS}/q_apic.so")
    installed.run("mkdir -p /tmp/other/usr/lib/tc && DESTDIR=/tmp/other /src/packaging/tc-plugin "
                  "install && test -s /tmp/other/usr/lib/tc/q_apic.so && rm -r /tmp/other"
                  )  # fmt: skip
    output = installed.run("DESTDIR=/tmp/nothing /src/packaging/tc-plugin install")
    assert "no tc, so no plug-in for it" in output


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_signed(installed, scratch):
    """The key that DKMS made suffices if the machine's owner trusts it."""
    module = installed.root / "usr/lib/modules" / installed.release / "updates/dkms/apic_timer.ko"
    unsigned = scratch / "unsigned.ko"
    unsigned.write_bytes(module.read_bytes().rpartition(b"~Module signature appended~")[0])
    script = """
        insmod $MODULES/unsigned.ko && exit 1
        insmod $MODULES/apic_timer.ko
        dmesg | grep -e apic_timer: -e X.509
        rmmod apic_timer
    """
    certificate = installed.root / "var/lib/dkms/mok.pub"
    result = uefi.run(installed.kernel, script, certificates=[certificate],
                      modules=[module, unsigned], append="module.sig_enforce=1")  # fmt: skip
    assert result.ok, result.verdict
    assert "Key was rejected" in result.output or "Required key not available" in result.output
    assert re.search(r"apic_timer: source proxy .* serves CPUs", result.output)


def test_consumer(installed):
    write_consumer(installed, "tmp/hello")
    output = installed.run(f"cd /tmp/hello && make KDIR=/lib/modules/{installed.release}/build")
    assert "warning:" not in output.lower()
    info = installed.run("modinfo /tmp/hello/hello_apic.ko")
    assert re.search("^depends: +apic_timer$", info, re.M)

    if installed.kernel.series == OLDEST:  # and it works
        directory = installed.root / "usr/lib/modules" / installed.release / "updates/dkms"
        modules = [directory / "apic_timer.ko", installed.root / "tmp/hello/hello_apic.ko"]
        script = ("insmod $MODULES/apic_timer.ko\ninsmod $MODULES/hello_apic.ko\nsleep 1\n"
                  "rmmod hello_apic\nrmmod apic_timer\ndmesg | grep hello,\n")  # fmt: skip
        result = virtual.run(installed.kernel, script, modules=modules, timeout=300)
        assert result.ok, result.verdict
        assert re.search(r"hello, \d+ cycles late", result.output)

    installed.run(f"cd /tmp/hello && make clean KDIR=/lib/modules/{installed.release}/build")
    assert installed.run("ls /tmp/hello").split() == ["Makefile", "hello_apic.c"]

    # It reports that apic-timer is missing for the kernel that it is built for.
    link = f"/var/lib/dkms/apic-timer/kernel-{installed.release}-x86_64"
    installed.run(f"mv {link} /tmp/link")
    output = installed.run(f"make -C /tmp/hello KDIR=/lib/modules/{installed.release}/build", 2)
    assert f"apic-timer is not installed for kernel {installed.release}" in output
    installed.run(f"mv /tmp/link {link}")


OTHERS = "KBUILD_EXTRA_SYMBOLS=/tmp/own/others.symvers"  # of a third module


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
@pytest.mark.parametrize(
    "before, after, environment, arguments",
    [("ccflags-y := -Wextra", "", "", ""), (OTHERS.replace("=", " := "), "", "", ""),
     ("", OTHERS.replace("=", " += "), "", ""), ("", "", OTHERS, ""), ("", "", "", OTHERS)],
    ids=["flags", "symbols", "later", "environment", "arguments"],
)  # fmt: skip
def test_consumer_with_its_own(installed, before, after, environment, arguments):
    """What a consumer assigns to the variables of apic_timer.mk is added to, wherever it does."""
    write_consumer(installed, "tmp/own", ["hello_apic.c"])
    makefile = (TREE / "samples/hello/Makefile").read_text()
    include = re.search("^include .*$", makefile, re.M)[0]
    lines = "\n".join([before, include, after])
    installed.write("tmp/own/Makefile", makefile.replace(include, lines))
    try:
        installed.run("touch /tmp/own/others.symvers")
        kdir = f"KDIR=/lib/modules/{installed.release}/build"
        output = installed.run(f"cd /tmp/own && {environment} make V=1 {kdir} {arguments}")
        assert "undefined!" not in output
        if before.startswith("ccflags"):
            assert " -Wextra " in output
        else:
            modpost = re.search(r"^.*scripts/mod/modpost .*$", output, re.M)[0]
            assert modpost.count("/tmp/own/others.symvers") == 1
        info = installed.run("modinfo /tmp/own/hello_apic.ko")
        assert re.search("^depends: +apic_timer$", info, re.M)
    finally:
        installed.run("rm -rf /tmp/own")


def git(tree: Path, *arguments: str) -> str:
    """Run git in a directory; return its output."""
    return subprocess.run(["git", "-C", tree, *arguments], check=True, text=True,
                          stdout=subprocess.PIPE).stdout  # fmt: skip


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_consumer_without_dkms(installed):
    """As in docs/howto/depend-on-us.md: with apic-timer's own tree, built in place."""
    page = (TREE / "docs/howto/depend-on-us.md").read_text()
    section = page.split("## Without DKMS\n")[1].split("\n## ")[0]
    kbuild = re.search(r"```make\n(.*?)```", section, re.S)[1]
    commands = textwrap.dedent(re.search(r"(?:^    .*\n)+", section, re.M)[0])
    commands = commands.replace("/path/to/kernel", f"/lib/modules/{installed.release}")
    write_consumer(installed, "tmp/plain/consumer", ["hello_apic.c"])
    installed.write("tmp/plain/consumer/Kbuild", kbuild)
    try:
        installed.run("cp -a /src /tmp/plain/apic-timer")
        output = installed.run(f"export HOME=/tmp/plain; cd; set -e\n{commands}")
        assert "warning:" not in output.lower()
        info = installed.run("modinfo /tmp/plain/consumer/hello_apic.ko")
        assert re.search("^depends: +apic_timer$", info, re.M)
    finally:
        installed.run("rm -rf /tmp/plain")


def test_dkms_consumer(installed):
    source = "usr/src/hello-apic-1.0"
    write_consumer(installed, source, ("hello_apic.c", "Makefile", "dkms.conf"))
    try:
        installed.run(f"dkms install hello-apic/1.0 -k {installed.release}")
        load = installed.run(f"modprobe -S {installed.release} -D hello_apic").split()
        names = [Path(word).name.split(".")[0] for word in load if word != "insmod"]
        assert names == ["apic_timer", "hello_apic"]
    finally:
        installed.run("dkms remove hello-apic/1.0 --all")
        shutil.rmtree(installed.root / source)


def test_uninstall_leaves_nothing(installed, scratch):
    machine = installed.copy(scratch)
    machine.run("make -C /src uninstall")
    # The key belongs to DKMS, for other modules too.
    key = {"/var/lib/dkms/mok.key", "/var/lib/dkms/mok.pub"}
    assert machine.files() == installed.before | key


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
@pytest.mark.parametrize(
    "removal",
    [f"rm -r /usr/src/apic-timer-{VERSION}", f"dkms remove apic-timer/{VERSION} --all",
     f"rm -r {KNOWN}", f"rm {KNOWN}/kernel-*", f"rm {KNOWN}/{VERSION}/*/*/module/apic_clock.ko*"],
    ids=["source", "dkms", "records", "link", "module"],
)  # fmt: skip
def test_uninstall_where_a_part_was_removed(installed, scratch, removal):
    """Without its source DKMS cannot remove a version; without DKMS the source is still there.

    Without its own files, or some of them, DKMS finds nothing to remove.
    """
    machine = installed.copy(scratch)
    machine.run(removal)
    machine.run("make -C /src uninstall")
    key = {"/var/lib/dkms/mok.key", "/var/lib/dkms/mok.pub"}
    assert machine.files() == installed.before | key


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_new_kernel(installed, scratch):
    """Installing a kernel installs both automatically, in the right order."""
    machine = installed.copy(scratch)
    release = machine.release
    write_consumer(machine, "usr/src/a-hello-1.0", ("hello_apic.c", "Makefile", "dkms.conf"))
    machine.run("sed -i 's/hello-apic/a-hello/' /usr/src/a-hello-1.0/dkms.conf")
    machine.run("dkms add a-hello/1.0")
    # As on removal of the kernel, except that DKMS still knows the modules' sources.
    machine.run(f"dkms unbuild apic-timer/{VERSION} -k {release}")
    machine.run("test ! -e /usr/src/apic-timer")
    refused = machine.run(f"dkms install a-hello/1.0 -k {release}; make -C /usr/src/a-hello-1.0 "
                          f"KDIR=/lib/modules/{release}/build", 2)  # fmt: skip
    assert "apic_timer.mk: No such file" in refused
    machine.run(f"dkms autoinstall -k {release}")
    assert machine.run("dkms status").count(": installed") == 2


def test_clean(installed):
    """A build leaves only what git ignores, and `make clean` leaves nothing of it.

    It is the lab's build, by the kernel's own kbuild, which already exists.
    """
    tree = installed.root / "tmp/tree"
    tree.mkdir()
    copy(build.build(installed.kernel), tree)
    for name in (STAMP, build.LOG, build.SPARSE):
        (tree / name).unlink(missing_ok=True)
    shutil.copy(TREE / ".gitignore", tree)
    git(tree, "init", "--quiet")
    git(tree, "add", "--force", ".gitignore", *map(str, build.sources()))
    files = git(tree, "ls-files")
    assert (tree / "module/core/apic_timer.ko").exists()
    git(tree, "add", "--all")
    assert git(tree, "ls-files") == files
    installed.run("make -C /tmp/tree clean")
    assert git(tree, "ls-files", "--others") == ""
    shutil.rmtree(tree)


BUILDS_NOTHING = """#!/bin/sh
case $1 in build | install) echo "dkms: $*" ;; *) exec /usr/sbin/dkms "$@" ;; esac
"""


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_install_again(installed, scratch):
    """From a tree in which modules were built, none of these files is installed.

    DKMS forgets the old sources and takes the new ones; another test builds them.
    """
    machine = installed.copy(scratch)
    machine.write("tmp/bin/dkms", BUILDS_NOTHING)
    source = machine.root / "usr/src" / f"apic-timer-{VERSION}"
    files = {file.relative_to(source) for file in source.rglob("*")}
    for name in ("module", "include", "samples"):
        copy(build.build(installed.kernel) / name, machine.root / "src" / name)
    machine.run("echo 'int more;' >> /src/module/core/main.c")
    output = machine.run(f"chmod +x /tmp/bin/dkms; PATH=/tmp/bin:$PATH make -C /src install "
                         f"KVER={machine.release}")  # fmt: skip
    assert f"dkms: install apic-timer/{VERSION} -k {machine.release}" in output
    assert {file.relative_to(source) for file in source.rglob("*")} == files
    machine.run(f"tail -n 1 /usr/src/apic-timer-{VERSION}/module/core/main.c | grep -q more")
    assert machine.run("dkms status").strip() == f"apic-timer/{VERSION}: added"


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_install_where_the_source_was_removed(installed, scratch):
    """DKMS then cannot remove what is installed; with the new source it can."""
    machine = installed.copy(scratch)
    machine.write("tmp/bin/dkms", BUILDS_NOTHING)
    machine.run(f"chmod +x /tmp/bin/dkms; rm -r /usr/src/apic-timer-{VERSION}; "
                f"dkms remove apic-timer/{VERSION} -k {machine.release}", 4)  # fmt: skip
    output = machine.run(f"PATH=/tmp/bin:$PATH make -C /src install KVER={machine.release}")
    assert f"dkms: install apic-timer/{VERSION} -k {machine.release}" in output
    assert machine.run("dkms status").strip() == f"apic-timer/{VERSION}: added"
    machine.run(f"! ls /lib/modules/{machine.release}/updates/dkms/apic_timer.ko*")


# Builds by copying what was built before.
COPIES = f"""#!/bin/sh
case $1 in build) exec cp -a /tmp/built {KNOWN}/{VERSION}/$4 ;; esac
exec /usr/sbin/dkms "$@"
"""


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_install_after_one_that_was_interrupted(installed, scratch):
    """DKMS has then copied some modules, or all, and does not know; it must replace each."""
    machine = installed.copy(scratch)
    machine.write("tmp/bin/dkms", COPIES)
    build = f"{KNOWN}/{VERSION}/{machine.release}"
    modules = f"/lib/modules/{machine.release}/updates/dkms"
    machine.run(f"chmod +x /tmp/bin/dkms; cp -a {build} /tmp/built; "
                f"cd {modules}; for file in *; do echo >>$file; done")  # fmt: skip
    # The last is of one that was interrupted while it built: DKMS neither uses nor removes that.
    for lost in ("", f"{modules}/sch_apic.ko", f"{build}/x86_64/module/*.ko"):
        machine.run(f"rm {KNOWN}/kernel-* {lost}; "
                    f"PATH=/tmp/bin:$PATH /src/packaging/install {machine.release}")  # fmt: skip
        assert ": installed" in machine.run("dkms status apic-timer")
        machine.run(f"cd /tmp/built/x86_64/module; "
                    f"for file in *.ko; do cmp $file {modules}/$file || exit; done; "
                    f"cd {modules}; for file in *; do echo >>$file; done")  # fmt: skip


@pytest.fixture(scope="module")
def uninstalled():
    """Yield a machine that also has other kernels, none of which will do."""
    with temporary("tmp", cache_dir("scratch")) as directory:
        machine = new_machine(OLDEST, directory)
        config = f"/lib/modules/{machine.release}/build/.config"
        for release in ("5.10.0-1-amd64", "7.4.0-1-amd64", "6.5.0-noapic"):
            build = f"/lib/modules/{release}/build"
            machine.run(f"mkdir -p {build}/include && touch {build}/Makefile && "
                        f"sed s/^CONFIG_X86_LOCAL_APIC=y// {config} > {build}/.config")  # fmt: skip
        machine.run("mkdir /lib/modules/6.5.0-headless")
        yield machine


@pytest.mark.parametrize(
    "release, reason",
    [
        ("5.10.0-1-amd64", "kernel 5.10.0-1-amd64 is not supported"),
        ("7.4.0-1-amd64", "kernel 7.4.0-1-amd64 is not supported"),
        ("6.5.0-noapic", "kernel 6.5.0-noapic was built without CONFIG_X86_LOCAL_APIC"),
        ("6.5.0-headless", "apt-get install linux-headers-6.5.0-headless"),
        ("6.5.0-none", "kernel 6.5.0-none is not in"),
    ],
)
def test_refusal(uninstalled, release, reason):
    before = uninstalled.files()
    assert reason in uninstalled.run(f"make -C /src install KVER={release}", 2)
    assert uninstalled.files() == before


@pytest.mark.parametrize("release", ["5.10.0-1-amd64", "7.4.0-1-amd64", "6.5.0-noapic"])
def test_refusal_by_dkms(uninstalled, release):
    uninstalled.run(f"cp -a /src /usr/src/apic-timer-{VERSION}")
    try:
        output = uninstalled.run(f"dkms install apic-timer/{VERSION} -k {release}", 77)
        assert "BUILD_EXCLUSIVE" in output
    finally:
        uninstalled.run(f"make -C /src uninstall; rm -r /usr/src/apic-timer-{VERSION}")


STUB = """#!/bin/sh\necho "dkms: $*"\n"""


def kernels_of(output: str) -> list[str]:
    """Return the kernels for which a stub of DKMS was to install."""
    return re.findall(rf"^dkms: install apic-timer/{VERSION} -k (.*)$", output, re.M)


def test_all_kernels(uninstalled, scratch):
    """One of the others may be booted next: it is built for, or the output says why not."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/bin/dkms", STUB)
    machine.write("tmp/bin/uname", f"#!/bin/sh\n[ $1 = -m ] && echo x86_64 || "
                                   f"echo {machine.release}\n")  # fmt: skip
    machine.run(f"""chmod +x /tmp/bin/*; cd /lib/modules; mkdir -p 6.2.0/kernel
                    ln -s ../{machine.release}/build 6.2.0/build
                    mkdir {machine.release}/kernel 6.5.0-headless/kernel 5.10.0-1-amd64/kernel || :
                """)  # fmt: skip
    install = "PATH=/tmp/bin:$PATH make -C /src install"
    output = machine.run(install)
    assert kernels_of(output) == [machine.release, "6.2.0"]
    for reason in ("6.5.0-headless: the headers of kernel 6.5.0-headless are missing: apt-get",
                   "5.10.0-1-amd64: kernel 5.10.0-1-amd64 is not supported"):  # fmt: skip
        assert f"apic-timer: not for kernel {reason}" in output
    # Nothing has ever been a kernel there.
    assert "6.5.0-noapic" not in output

    assert kernels_of(machine.run(f"{install} KVER=6.2.0")) == ["6.2.0"]
    # What other kernels have of the same version is replaced with the source that it was built of;
    # from that source a kernel is added.
    machine.run(f"mkdir -p /var/lib/dkms/apic-timer/{VERSION}/{machine.release}")
    assert kernels_of(machine.run(f"{install} KVER=6.2.0")) == ["6.2.0", machine.release]
    output = machine.run(f"PATH=/tmp/bin:$PATH make -C /usr/src/apic-timer-{VERSION} install "
                         "KVER=6.2.0")  # fmt: skip
    assert kernels_of(output) == ["6.2.0"]

    # Where nothing can be built for one of them, it keeps another version's modules; the others
    # get the new ones.
    for fails, works, status in ((machine.release, "6.2.0", 1), ("6.2.0", machine.release, 0)):
        machine.write("tmp/bin/dkms", f'{STUB}[ "$4" != {fails} ] || [ $1 = remove ] || exit 10\n')
        output = machine.run(f"mkdir -p {KNOWN}/0.0.9/{{6.2.0,{machine.release}}}/x86_64/module; "
                             "PATH=/tmp/bin:$PATH /src/packaging/install", status)  # fmt: skip
        assert kernels_of(output) == [works]
        assert f"apic-timer: not for kernel {fails}: DKMS has said why" in output
        removed = re.findall("^dkms: remove apic-timer/0.0.9 -k (.*)$", output, re.M)
        assert removed == [works]


def test_downgrade(uninstalled, scratch):
    """DKMS would bring the newer version back, if it still knew it, with the next kernel."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/bin/dkms", BUILDS_NOTHING)
    machine.run("chmod +x /tmp/bin/dkms")
    # What a failed build leaves, and modules for a kernel that has no headers now.
    for version, kept in (("0.98.0", "build"), ("0.99.0", "6.5.0-headless/x86_64/module"),
                          ("0.0.9", "6.5.0-headless/x86_64/module")):  # fmt: skip
        source = f"/usr/src/apic-timer-{version}"
        machine.run(f"""mkdir {source}; cp -R /src/dkms.conf /src/packaging {source}
                        sed -i s/{VERSION}/{version}/ {source}/dkms.conf
                        dkms add apic-timer/{version}; mkdir -p {KNOWN}/{version}/{kept}""")
    output = machine.run(f"PATH=/tmp/bin:$PATH /src/packaging/install {machine.release}")
    assert set(machine.run(f"ls {KNOWN}").split()) == {VERSION, "0.0.9", "0.99.0"}
    (line,) = re.findall("^apic-timer: version .*$", output, re.M)
    assert line.startswith("apic-timer: version 0.99.0 stays for kernel 6.5.0-headless: DKMS will")
    assert line.endswith(": dkms remove apic-timer/0.99.0 --all")


@pytest.mark.parametrize("installed", [OLDEST], indirect=True)
def test_upgrade(installed, scratch):
    """All modules are the new ones, although most of them have not changed."""
    machine = installed.copy(scratch)
    machine.run(f"sed -i 's/{VERSION}/0.99.0/' /src/dkms.conf /src/include/linux/apic_version.h; "
                f"make -C /src install KVER={machine.release}")  # fmt: skip
    (status,) = machine.run("dkms status apic-timer").splitlines()
    assert f"apic-timer/0.99.0, {machine.release}, x86_64: installed" in status
    for name in re.findall(r'^BUILT_MODULE_NAME.*="(.*)"', (TREE / "dkms.conf").read_text(), re.M):
        assert machine.run(f"modinfo -k {machine.release} -F version {name}") == "0.99.0\n", name


def test_how_to_unload(uninstalled, scratch):
    """Those that use a module are unloaded before it, each once."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/bin/dkms", STUB)
    assert machine.run("/src/packaging/unload") == ""
    machine.run("""chmod +x /tmp/bin/dkms
        mkdir -p /sys/module/apic_timer/holders && cd /sys/module
        mkdir -p apic_clock/holders sch_apic/holders pps_gen_apic/holders
        ln -s ../../apic_clock ../../sch_apic ../../pps_gen_apic apic_timer/holders
        ln -s ../../pps_gen_apic apic_clock/holders
    """)
    unload = "rmmod pps_gen_apic apic_clock sch_apic apic_timer"
    assert machine.run("/src/packaging/unload") == f"{unload}\n"
    machine.write("tmp/bin/uname", f"#!/bin/sh\n[ $1 = -m ] && echo x86_64 || "
                                   f"echo {machine.release}\n")  # fmt: skip
    machine.run("chmod +x /tmp/bin/uname")
    for command, hint in (("install", f"{unload} && modprobe apic_timer"), ("uninstall", unload)):
        output = machine.run(f"PATH=/tmp/bin:$PATH make -C /src {command}")
        assert f"still loaded; to {'un' * (command != 'install')}load" in output
        assert f": {hint}\n" in output


@pytest.mark.parametrize("own", [".git", "user", "tests"])
def test_tree_where_dkms_has_its_sources(uninstalled, scratch, own):
    """A clone in /usr/src, or an installed tree, installs itself, and a user's own tree stays."""
    machine = uninstalled.copy(scratch)
    source = f"/usr/src/apic-timer-{VERSION}"
    # Another test shows what DKMS does with it.
    machine.write("tmp/bin/dkms", STUB)
    machine.run(f"chmod +x /tmp/bin/dkms; cp -a /src {source}; rm -r {source}/user "
                f"{source}/tools; mkdir {source}/{own}")  # fmt: skip
    before = machine.run(f"find {source}")
    make = f"PATH=/tmp/bin:$PATH make -C {source}"
    for _ in range(2):
        output = machine.run(f"{make} install KVER={machine.release}")
        assert f"dkms: install apic-timer/{VERSION} -k {machine.release}" in output
        assert machine.run(f"find {source}") == before
        assert f"not removing {source}: it is a clone or" in machine.run(f"{make} uninstall")
        assert machine.run(f"find {source}") == before
    # Another tree does not replace it either.
    refused = machine.run(f"PATH=/tmp/bin:$PATH make -C /src install KVER={machine.release}", 2)
    assert f"{source} is a clone or an unpacked archive: install from there" in refused
    assert "dkms: " not in refused and machine.run(f"find {source}") == before
    machine.run(f"rmdir {source}/{own}; {make} uninstall; test ! -e {source}")


def test_clone_where_the_path_without_a_version_is(uninstalled, scratch):
    """The scripts that DKMS runs leave it alone."""
    machine = uninstalled.copy(scratch)
    known = "/var/lib/dkms/apic-timer"
    machine.run(f"cp -a /src /usr/src/apic-timer; mkdir -p {known}; "
                f"ln -s {VERSION}/6.1.0/x86_64 {known}/kernel-6.1.0-x86_64")  # fmt: skip
    before = machine.files()
    machine.run("/src/packaging/dkms-hook changed")
    assert machine.files() == before
    # A link to a clone does as well; ours points to where DKMS has a version.
    machine.run("mv /usr/src/apic-timer /clone; ln -s /clone /usr/src/apic-timer; "
                "/src/packaging/dkms-hook changed")  # fmt: skip
    assert machine.run("readlink /usr/src/apic-timer") == "/clone\n"
    machine.run("ln -sfn apic-timer-0.0.9 /usr/src/apic-timer; /src/packaging/dkms-hook changed")
    assert machine.run("readlink /usr/src/apic-timer") == f"apic-timer-{VERSION}\n"
    machine.run("rm /var/lib/dkms/apic-timer/kernel-*; /src/packaging/dkms-hook changed; "
                "test ! -L /usr/src/apic-timer")  # fmt: skip


def test_private_tree(uninstalled, scratch):
    """All users may build against the files installed from it, whatever root's umask."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/bin/dkms", "#!/bin/sh\n")
    machine.run(f"chmod +x /tmp/bin/dkms; chmod -R go= /src; umask 077; "
                f"PATH=/tmp/bin:$PATH make -C /src install KVER={machine.release}")  # fmt: skip
    closed = "! -type l ! -perm -o=r -o -type d ! -perm -o=x"
    assert machine.run(f"find /usr/src/apic-timer-{VERSION} {PLUGINS} {closed}") == ""


def test_uninstall_goes_on(uninstalled, scratch):
    """Without DKMS, or the source that it needs to remove: all else is removed, and make fails."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/bin/dkms", "#!/bin/sh\nexit 3\n")
    machine.write("usr/local/bin/apic-timer", "")
    machine.run("chmod +x /tmp/bin/dkms; mkdir -p /var/lib/dkms/apic-timer/0.0.8 "
                "/usr/src/apic-timer-0.0.8 /usr/src/apic-timer-0.0.9")  # fmt: skip
    said = machine.run("PATH=/tmp/bin:$PATH make -C /src uninstall", 2)
    assert "apic-timer: DKMS did not remove version 0.0.8: keeping its source" in said
    machine.run("cd /usr/src; test -e apic-timer-0.0.8 -a ! -e apic-timer-0.0.9")
    machine.run("test ! -e /usr/local/bin/apic-timer")


def test_path_of_su(uninstalled, scratch):
    """Without a dash, `su` leaves the user's PATH, which does not have DKMS's directory."""
    machine = uninstalled.copy(scratch)
    machine.run("rm /usr/sbin/dkms")
    machine.write("usr/sbin/dkms", STUB)
    make = "chmod +x /usr/sbin/dkms; PATH=/usr/local/bin:/usr/bin:/bin make -C /src"
    output = machine.run(f"{make} install KVER={machine.release}")
    assert kernels_of(output) == [machine.release]
    output = machine.run(f"mkdir -p {KNOWN}/0.0.8; {make} uninstall")
    assert "dkms: remove apic-timer/0.0.8 --all" in output


def test_only_root_uninstalls(uninstalled, scratch):
    """Others get a message, and nothing is removed, not even files that they may write."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/bin/id", "#!/bin/sh\necho 1000\n")
    machine.write("home/sbin/apic-timer", "")
    machine.run("chmod +x /tmp/bin/id; mkdir /home/bin; touch /home/bin/apic-timer")
    before = machine.files()
    refused = machine.run("PATH=/tmp/bin:$PATH make -C /src uninstall PREFIX=/home", 2)
    assert "apic-timer: only root can uninstall: sudo make uninstall" in refused
    assert machine.files() == before


@pytest.mark.parametrize("package", ["apic-timer-dkms", "apic-timer-dev"])
def test_package_and_what_lies_there(uninstalled, scratch, package):
    """The message says how to make room: uninstalling alone does not move a clone."""
    machine = uninstalled.copy(scratch)
    machine.write("tmp/preinst", (TREE / f"debian/{package}.preinst").read_text())
    machine.run("sh /tmp/preinst install; mkdir /usr/src/apic-timer-0.0.9")
    refused = machine.run("sh /tmp/preinst install", 1)
    assert "/usr/src/apic-timer-0.0.9 is from 'make install': run 'make uninstall'" in refused
    machine.run("mkdir /usr/src/apic-timer-0.0.9/user; make -C /src uninstall")
    refused = machine.run("sh /tmp/preinst install", 1)
    assert "/usr/src/apic-timer-0.0.9 is a clone or an unpacked archive: run 'make uni" in refused


PREBUILT = "usr/lib/modules/6.5.0-prebuilt/updates/dkms"  # as of "dkms mkbmdeb"
PACKAGE = f"""
    mkdir -p /tmp/deb/DEBIAN /tmp/deb/usr/src /var/lib/dpkg/info /var/lib/dpkg/updates
    touch /var/lib/dpkg/status
    cp -a /src /tmp/deb/usr/src/apic-timer-{VERSION}
    mkdir -p /tmp/deb/{PREBUILT} && touch /tmp/deb/{PREBUILT}/apic_timer.ko
    printf '%s\\n' 'Package: apic-timer-dkms' 'Version: {VERSION}-1' 'Architecture: all' \\
        'Maintainer: nobody <nobody@localhost>' 'Description: test' > /tmp/deb/DEBIAN/control
    dpkg-deb -b /tmp/deb /tmp/package.deb
    dpkg --force-all -i /tmp/package.deb
    rm -r /tmp/deb
    dkms add apic-timer/{VERSION}
"""


def test_files_of_a_package_stay(uninstalled, scratch):
    """Files of dpkg in /usr/src and /lib/modules are neither replaced nor removed."""
    machine = uninstalled.copy(scratch)
    machine.run(f"set -e\n{PACKAGE}")
    before = machine.files()
    refused = machine.run(f"make -C /src install KVER={machine.release}", 2)
    (line,) = [line for line in refused.splitlines() if line.startswith("apic-timer: ")]
    assert f"/usr/src/apic-timer-{VERSION} belongs to the package apic-timer-dkms" in line
    assert machine.files() == before

    machine.run("mkdir /usr/src/apic-timer-0.0.9 && ln -s apic-timer-0.0.9 /usr/src/apic-timer")
    kept = machine.run("make -C /src uninstall")
    assert "apic-timer-dkms" in kept
    assert machine.files() == before
    assert f"apic-timer/{VERSION}" in machine.run("dkms status")
    assert machine.run("dpkg --verify apic-timer-dkms") == ""


def test_no_headers(uninstalled):
    output = uninstalled.run("make -C /src KVER=6.5.0-headless", 2)
    assert "apt-get install linux-headers-6.5.0-headless" in output
