"""packaging/install-tool installs what `make install` adds to the module, and removes it again."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from machine_files import COMMANDS, TREE

pytestmark = pytest.mark.long

SCRIPT = TREE / "packaging/install-tool"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
REAL = shutil.which("gcc", path=PATH)


def install(to, *arguments, path=PATH) -> subprocess.CompletedProcess:
    return subprocess.run([SCRIPT, *arguments], env={"PATH": path, "DESTDIR": str(to)},
                          capture_output=True, text=True, check=True)  # fmt: skip


def files(directory) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_install_and_undo(tool, tmp_path):
    before = tmp_path / "usr/local/sbin/apic-timer"  # first in root's PATH
    before.parent.mkdir(parents=True)
    before.write_text("")
    done = install(tmp_path)
    assert done.stderr == ""
    share = "usr/local/share"
    pages = {f"{share}/man/man1/apic-timer{c}.1" for c in ("", *(f"-{c}" for c in COMMANDS))}
    completion = {f"{share}/bash-completion/completions/apic-timer",
                  f"{share}/zsh/site-functions/_apic-timer"}  # fmt: skip
    assert files(tmp_path) == {"usr/local/bin/apic-timer", *pages, *completion}
    program = tmp_path / "usr/local/bin/apic-timer"
    assert subprocess.check_output([program, "--version"], text=True) == tool("--version").stdout
    bash = (tmp_path / share / "bash-completion/completions/apic-timer").read_text()
    assert bash == tool("--completion", "bash").stdout
    (tmp_path / share / "man/man1/other.1").write_text("")
    before.write_text("")
    install(tmp_path, "--undo")
    assert files(tmp_path) == {f"{share}/man/man1/other.1"}


def test_one_directory_for_programs(tmp_path):
    """In some distributions, such as Fedora from 42 on, sbin is a link to bin."""
    (tmp_path / "usr/local/bin").mkdir(parents=True)
    (tmp_path / "usr/local/sbin").symlink_to("bin")
    for _ in range(2):
        install(tmp_path)
        subprocess.run([tmp_path / "usr/local/bin/apic-timer", "--version"], check=True)
        assert len(list((tmp_path / "usr/local/share").rglob("*apic-timer"))) == 2


def other_gcc(tmp_path, script: str) -> str:
    """Return a PATH in which gcc is a script, whose "$@" are the real one's arguments."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gcc").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bin/gcc").chmod(0o755)
    return f"{tmp_path}/bin:{PATH}"


def test_no_static_library(tmp_path):
    """Also with a compiler that warns more, and a noexec directory for temporary files."""
    path = other_gcc(tmp_path, f"""
        case " $* " in *" -static "*) exit 1 ;; esac
        {REAL} -Wconversion "$@" || exit
        while [ $# -gt 1 ]; do
            [ "$1" != -o ] || chmod -x "$2"
            shift
        done""")  # fmt: skip
    install(tmp_path / "root", path=path)
    program = tmp_path / "root/usr/local/bin/apic-timer"
    assert b"/ld-linux" in program.read_bytes()
    subprocess.run([program, "--version"], check=True)
    assert len(list((tmp_path / "root/usr/local/share").rglob("*apic-timer"))) == 2


def test_compiler_that_fails(tmp_path):
    path = other_gcc(tmp_path, f'case " $* " in *" -E "*) exec {REAL} "$@" ;; esac; exit 1')
    done = install(tmp_path / "root", path=path)
    assert "apic-timer: the program apic-timer was not built; the module" in done.stderr
    assert not (tmp_path / "root").exists()


def test_no_compiler(tmp_path):
    """The module is installed anyway, so this is not a failure."""
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dirname"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    done = install(tmp_path / "root", path=str(tmp_path / "bin"))
    assert done.stderr == (
        "apic-timer: the program apic-timer is not installed: apt-get install gcc libc6-dev\n"
    )
    assert files(tmp_path) == {"bin/sh", "bin/dirname"}


def test_stopped(tmp_path):
    """No built file stays, and the status is a failure."""
    begun, temporary = tmp_path / "begun", tmp_path / "tmp"
    temporary.mkdir()
    path = other_gcc(tmp_path, f'case " $* " in *" -E "*) exec {REAL} "$@" ;; esac; '
                               f"touch {begun}; sleep 100")  # fmt: skip
    environment = {"PATH": path, "DESTDIR": str(tmp_path / "root"), "TMPDIR": str(temporary)}
    with subprocess.Popen([SCRIPT], env=environment, start_new_session=True) as running:
        for _ in range(200):
            if begun.exists():
                break
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGTERM)
        assert running.wait(20) == 130
    assert list(temporary.iterdir()) == [] and not (tmp_path / "root").exists()


def test_directory_with_a_blank(tmp_path):
    """Make has no names with blanks; the directory for temporary files may have one."""
    temporary = tmp_path / "my files"
    temporary.mkdir()
    path = other_gcc(tmp_path, f'exec {REAL} "$@"')
    environment = {"PATH": path, "DESTDIR": str(tmp_path / "root"), "TMPDIR": str(temporary)}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert {name.split("/")[-1] for name in files(tmp_path / "root")} >= {
        "apic-timer", "_apic-timer", "apic-timer.1"}  # fmt: skip
    assert list(temporary.iterdir()) == []


def test_pages_that_fail(tmp_path):
    """For example with another version of scdoc: the rest is installed, and it is not a failure."""
    path = other_gcc(tmp_path, f'exec {REAL} "$@"')
    (tmp_path / "bin/scdoc").write_text("#!/bin/sh\necho 'line 7: refused' >&2; exit 1\n")
    (tmp_path / "bin/scdoc").chmod(0o755)
    done = install(tmp_path / "root", path=path)
    assert "line 7: refused" in done.stderr
    assert "apic-timer: the program is not, or not fully, installed" in done.stderr
    installed = files(tmp_path / "root")
    assert any(name.endswith("bin/apic-timer") for name in installed)
    assert not any("/man1/" in name for name in installed)


def test_files_of_a_package(tmp_path):
    """With PREFIX=/usr they are neither replaced nor removed; a user's own are."""
    to = tmp_path / "usr"
    names = ["bin/apic-timer", "share/bash-completion/completions/apic-timer",
             "share/zsh/site-functions/_apic-timer", "share/man/man1/apic-timer.1"]  # fmt: skip
    for name in names:
        (to / name).parent.mkdir(parents=True)
        (to / name).write_text("package's")
    path = other_gcc(tmp_path, f'exec {REAL} "$@"')
    (tmp_path / "bin/dpkg-query").write_text(
        '#!/bin/sh\n[ "$1" = -S ] || exit 2\ncase $2 in\n*/zsh/*) exit 1 ;;\n'
        f'"{to}"/*) echo "apic-timer-tools: $2" ;;\n*) exit 1 ;;\nesac\n'
    )
    (tmp_path / "bin/dpkg-query").chmod(0o755)
    environment = {"PATH": path, "PREFIX": str(to)}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == (
        f"apic-timer: not replacing {to}/bin/apic-timer of package apic-timer-tools\n"
    )
    assert all((to / name).read_text() == "package's" for name in names)
    done = subprocess.run([SCRIPT, "--undo"], env=environment, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert f"not removing {to}/bin/apic-timer: it belongs to the package apic" in done.stderr
    assert files(to) == {name for name in names if "zsh" not in name}


def test_nothing_can_be_written(tmp_path):
    """For example if /usr/local is read-only."""
    (tmp_path / "usr").write_text("")
    done = install(tmp_path)
    assert "apic-timer: the program is not, or not fully, installed" in done.stderr
    assert files(tmp_path) == {"usr"}
