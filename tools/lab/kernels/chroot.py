"""Run a command inside a kernel's root directory.

Done in a mount namespace of its own, with this machine's /dev and /proc bound in (objtool reads
/proc), so nothing stays mounted afterwards; without root's rights, in a user namespace too.
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
    """Return the command that begins a mount namespace; LabError where there is no right to.

    To be called before what is fetched or built for a root directory, too.
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
    """Run `argv` with `root` as its root directory; output of both kinds is in `.stdout`.

    bound:       directories, and where the command finds them, which is made if need be
    environment: variables besides, or in place of, those of ENVIRONMENT
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
