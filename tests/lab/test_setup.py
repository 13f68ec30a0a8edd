"""tools/setup and the lab say clearly what is missing on an incomplete machine.

tools/setup runs with a PATH of its own, in which programs may be missing or give false answers.
Nothing is installed or fetched.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from multiprocessing import TimeoutError
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

TOOLS = Path(__file__).resolve().parents[2] / "tools"
USED = ["cat", "cut", "date", "dirname", "flock", "mktemp", "mount", "rm", "mkdir", "setpriv", "sh",
        "sha256sum", "touch", "unshare"]  # fmt: skip
# Start of a shell without any rights, for any user of the tests.
NO_RIGHTS = """
    echo 0 >/proc/sys/user/max_user_namespaces
    exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@"
"""


@pytest.fixture(scope="module")
def namespaces():
    """Skip what needs a user namespace, as for a user without root: a plain chroot has none."""
    done = subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no user namespaces: {done.stderr}")


class Newcomer:
    """Runs tools/setup with some programs replaced."""

    def __init__(self, home: Path):
        self.home, self.bin = home, home / "bin"
        self.tools = home / "tools"
        self.bin.mkdir()
        self.tools.mkdir()
        for name in USED:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("setup", "requirements.txt", "lab"):
            (self.tools / name).symlink_to(TOOLS / name)
        self.program("apt-get", f"echo called >>{home}/apt-get")
        self.program("id", "echo 1000")

    def program(self, name: str, script: str) -> None:
        """Replace a program by a script."""
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run(self, *argv: str | Path, status: int = 0,
            cache: str = "") -> subprocess.CompletedProcess:  # fmt: skip
        """Run a command with this PATH and an empty cache."""
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, "PATH": str(self.bin), "LC_ALL": "C",
                                   "XDG_CACHE_HOME": cache or f"{self.home}/cache"})  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def setup(self, subset: str, **options) -> subprocess.CompletedProcess:
        """Run tools/setup."""
        return self.run("sh", self.tools / "setup", subset, **options)

    @property
    def fetched(self) -> bool:
        """Whether apt was asked to fetch anything."""
        return (self.home / "apt-get").exists()


@pytest.fixture
def newcomer(scratch):
    """Return a user without root, sudo, or any package."""
    newcomer = Newcomer(scratch)
    newcomer.program("dpkg-query", "exit 1")
    return newcomer


def test_no_root(namespaces, newcomer):
    """One line says what is missing and what to do."""
    done = newcomer.setup("deb", status=1)
    (line,) = (done.stdout + done.stderr).splitlines()
    assert "as root: apt-get install debian-archive-keyring lz4" in line
    assert line.count(" make") == 1
    assert not newcomer.fetched


@pytest.mark.parametrize("name", ["/my cache", "/a:b", "/a,b", "cache", "/two\nlines"])
def test_no_such_cache(newcomer, name):
    """If no kernel can be built, or no machine started, nothing is begun."""
    newcomer.program("dpkg-query", 'echo "ii "')
    cache = f"{newcomer.home}{name}" if name.startswith("/") else name
    done = newcomer.setup("demo", status=1, cache=cache)
    assert "set XDG_CACHE_HOME to an absolute path" in done.stderr
    assert not Path(cache).exists()


@pytest.mark.parametrize("status", ["ii ", "hi "])
def test_nothing_missing(namespaces, newcomer, status):
    """An ordinary user needs no root if the packages are there, also if some are held."""
    newcomer.program("dpkg-query", f'echo "{status}"')
    assert newcomer.setup("demo").stdout == ""
    assert not newcomer.fetched


def test_one_at_a_time(namespaces, newcomer):
    """Otherwise two that start from nothing would remove each other's files."""
    newcomer.program("dpkg-query", 'echo "ii "')
    (newcomer.home / "cache/apic-timer").mkdir(parents=True)
    with open(newcomer.home / "cache/apic-timer/setup.lock", "w") as lock, ThreadPool(1) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = pool.apply_async(newcomer.setup, ("demo",))
        with pytest.raises(TimeoutError):
            running.get(1)
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert running.get(60).stdout == "setup: waiting for another setup to end\n"


def test_installation_fails(newcomer):
    """apt's messages are shown then, and progress is reported before."""
    newcomer.program("id", "echo 0")
    newcomer.program("date", f"echo x >>{newcomer.home}/t; set -- $(cat {newcomer.home}/t); "
                             "echo $(($# * 9))")  # fmt: skip
    # A daemon that apt starts would keep the lock.
    newcomer.program("apt-get", '[ ! -e /proc/$$/fd/9 ] || echo "E: it has the lock" >&2; '
                                'echo "dlstatus:1:20.5:Retrieving file 2 of 9" >&3; '
                                'echo "E: no network" >&2; exit 100')  # fmt: skip
    done = newcomer.setup("host", status=1)
    assert "setup: 20 %, Retrieving file 2 of 9" in done.stdout.splitlines()
    assert done.stderr.startswith("E: no network\nsetup: apt-get install debian-archive")


def test_no_rights(namespaces, newcomer):
    """The lab needs mount namespaces: this is reported before anything is fetched."""
    confined = ["unshare", "--user", "--map-root-user", "sh", "-ec", NO_RIGHTS, "sh"]
    done = newcomer.run(*confined, "sh", newcomer.tools / "setup", "demo", status=1)
    (line,) = (done.stdout + done.stderr).splitlines()
    assert "run as root with CAP_SYS_ADMIN" in line and "unshare" in line
    assert not newcomer.fetched

    # The same by hand.
    newcomer.program("python3", f'PYTHONPATH="{TOOLS}" exec /usr/bin/python3 "$@"')
    done = newcomer.run(*confined, "python3", "-m", "lab", "kernels", "6.1", status=2)
    (line,) = done.stderr.splitlines()
    assert "run as root with CAP_SYS_ADMIN" in line
    assert not newcomer.fetched


def test_chroot(namespaces, scratch):
    """unshare fails in a root directory that is not a mount point: the message says what to do."""
    root = scratch / "root"
    script = f"""
        mkdir {root}
        for path in /*; do
            if [ -L $path ]; then
                cp -P $path {root}
            elif [ -d $path ] && [ $path != /sys ]; then
                mkdir -p {root}$path
                mount --rbind $path {root}$path
            fi
        done
        exec chroot {root} sh "{TOOLS}/lab/rights"
    """
    done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-ec", script],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)  # fmt: skip
    (line,) = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 1 and "mount --bind" in line, done


# Python, with a pip that has nothing to install: the real one takes seconds to set up.
PYTHON = """#!/bin/sh
case $* in
"-m venv "*)
    /usr/bin/python3 -m venv --without-pip "$3"
    /bin/ln -s /bin/true "$3/bin/pip"
    cd "$3"/lib/*/site-packages
    /bin/mkdir pip-1.dist-info
    echo Version: 1 >pip-1.dist-info/METADATA
    exit ;;
esac
exec /usr/bin/python3 "$@"
"""


def test_python_environment(newcomer):
    """It is kept for the Python that made it, and rebuilt if that changes."""
    python = newcomer.home / "python3"
    (newcomer.tools / "setup").unlink()
    script = (TOOLS / "setup").read_text()
    (newcomer.tools / "setup").write_text(script.replace("/usr/bin/python3", str(python)))
    (newcomer.tools / "requirements.txt").unlink()
    (newcomer.tools / "requirements.txt").write_text("# none\n")
    newcomer.program("dpkg-query", 'echo "ii "')
    python.write_text(PYTHON)
    python.chmod(0o755)

    def made(cache: str = "") -> tuple[Path, bool]:
        *said, path = newcomer.setup("host", cache=cache).stdout.splitlines()
        return Path(path), f"setup: creating {path}" in said

    venv, anew = made()
    assert anew
    assert made() == (venv, False)
    (newcomer.home / "link").symlink_to(newcomer.home)
    for slashes in ("/cache/", "//cache"):
        assert made(f"{newcomer.home}{slashes}") == (venv, False)
    assert made(f"{newcomer.home}/link/cache")[1] is False
    # As after a system upgrade: a different Python searches elsewhere for packages.
    (library,) = (venv / "lib").iterdir()
    library.rename(library.with_name("python3.0"))
    assert made() == (venv, True)
    (venv / "bin/python3").unlink()
    (venv / "bin/python3").symlink_to("/nowhere/python3")
    assert made() == (venv, True)
    # A home directory shared by two systems.
    python.write_text(PYTHON.replace("esac", "*sys.version*) echo other; exit ;;\nesac"))
    other, anew = made()
    assert anew and other != venv


# In a process of its own: PATH is also that of the threads that boot machines.
NO_NETWORK = f"""
import sys
sys.path.insert(0, "{TOOLS}")
from lab.kernels import debian

debian.EVERY = 0
debian.mirrors = lambda: ("http://localhost/debian", None)
try:
    with debian.Archive("sid"):
        pass
except debian.LabError as error:
    print(error, file=sys.stderr)
"""


def test_download_says_how_far_it_is(newcomer):
    newcomer.program("apt-get", """
        fd=/proc/self/fd/${2#*=}
        echo dlstatus:1:20.5:Retrieving file 2 of 9 >$fd
        echo 'dlstatus:2:73.1:Retrieving file 7 of 9 (1min 2s remaining)' >$fd
        echo 'E: no network'; exit 100
    """)  # fmt: skip
    said = newcomer.run(sys.executable, "-c", NO_NETWORK).stderr.splitlines()
    assert said[:2] == [
        "lab:   20 %, Retrieving file 2 of 9",
        "lab:   73 %, Retrieving file 7 of 9 (1min 2s remaining)",
    ]
    assert "E: no network" in said[2:]
