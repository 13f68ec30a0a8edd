"""Run a command inside a kernel's root directory.

Done in a mount namespace of its own, with this machine's /dev and /proc bound in (objtool reads
/proc), so nothing stays mounted afterwards; without being root, in a user namespace too.
"""

import os
import shlex
import subprocess
from pathlib import Path

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/tmp"}


def run_in(root: Path, argv: list[str]) -> subprocess.CompletedProcess:
    """Run `argv` with `root` as its root directory; output of both kinds is in `.stdout`."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    where = shlex.quote(str(root))
    mounts = " && ".join(f"mount --rbind /{d} {where}/{d}" for d in ("dev", "proc"))
    inside = f"{mounts} && exec chroot {where} {shlex.join(argv)}"
    return subprocess.run(
        ["unshare", *user, "--mount", "/bin/sh", "-c", inside],
        env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
