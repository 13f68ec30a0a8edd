"""The files of a tree, as git lists them."""

import subprocess
from pathlib import Path

from .errors import LabError


def listed(tree: Path) -> list[str]:
    """List the files of a tree that git knows, or would add.

    Raises:
        LabError: there is no git, or it refuses to list them: "dubious ownership", for one.
    """
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=tree, capture_output=True, text=True,
        )  # fmt: skip
    except FileNotFoundError:
        raise LabError("git is missing: apt-get install git") from None
    if done.returncode:
        raise LabError(f"git does not list the files of {tree}: {done.stderr.strip()}")
    return sorted({f for f in done.stdout.split("\0") if (tree / f).is_file()})
