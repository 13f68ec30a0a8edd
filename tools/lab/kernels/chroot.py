"""Run a command inside a kernel's root directory.

The command has its own mount namespace, with this machine's /dev and /proc bound in (objtool reads
/proc), so nothing stays mounted afterwards; without root's rights, it has a user namespace too.
"""

import functools
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..base.errors import LabError

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/tmp"}
RIGHTS = Path(__file__).parents[1] / "rights"


@functools.cache
def namespace() -> tuple[str, ...]:
    """Return the command that enters a mount namespace; LabError if that is not permitted.

    Also call this before fetching or building anything for a root directory.
    """
    done = subprocess.run([RIGHTS], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise LabError(done.stderr.strip().removeprefix("lab: "))
    return ("unshare", *done.stdout.split())


def run_in(
    root: Path,
    argv: list[str],
    bound: Mapping[Path, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess:
    """Run `argv` with `root` as its root directory; `.stdout` has standard output and error.

    bound:       directories, and where the command finds them; the latter are made if necessary
    environment: variables added to those of ENVIRONMENT, or replacing them
    """
    for target in (bound or {}).values():
        (root / target).mkdir(parents=True, exist_ok=True)
    where = shlex.quote(str(root))
    pairs = {Path("/dev"): "dev", Path("/proc"): "proc", **(bound or {})}
    mounts = " && ".join(
        f"mount --rbind {shlex.quote(str(source))} {where}/{shlex.quote(target)}"
        for source, target in pairs.items()
    )
    inside = f"{mounts} && exec chroot {where} {shlex.join(argv)}"
    return subprocess.run(
        [*namespace(), "/bin/sh", "-c", inside],
        env={**ENVIRONMENT, **(environment or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
