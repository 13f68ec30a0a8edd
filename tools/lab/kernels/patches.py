"""This tree's kernel patches: choose the series that fits a kernel tree, apply it, remove it.

Patches are tried on copies of the files that they touch, without fuzz. The kernel tree changes only
after all of them have applied; git is not needed.
"""

import contextlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import LabError

HOME = Path(__file__).resolve().parents[3] / "patches"


class PatchError(LabError):
    """A kernel tree that the patches do not fit; the message gives the reason."""


@dataclass(frozen=True)
class Series:
    """A line of the manifest, and its patches."""

    name: str
    first: tuple[int, int, int]  # oldest version that it fits
    end: tuple[int, int, int]  # first later version that it does not fit
    patches: tuple[Path, ...]

    def files(self) -> list[str]:
        """List the files of a kernel tree that the patches touch or add."""
        return self._named(r"^\+\+\+ b/(\S+)$")

    def old_files(self) -> list[str]:
        """List those of `files` that exist before patching."""
        added = self._named(r"^--- /dev/null\n\+\+\+ b/(\S+)$")
        return [name for name in self.files() if name not in added]

    def _named(self, pattern: str) -> list[str]:
        texts = (patch.read_text() for patch in self.patches)
        return sorted({name for text in texts for name in re.findall(pattern, text, re.MULTILINE)})


def series(home: Path = HOME) -> list[Series]:
    """Read the manifest. PatchError if it is malformed."""
    found = []
    for line in (home / "manifest").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        try:
            name, first, end = line.split()
            versions = [_numbers(v) for v in (first, end)]
        except ValueError:
            raise PatchError(f'{home}/manifest: "{line}" is not "series first end"') from None
        patches = tuple(sorted((home / name).glob("*.patch")))
        if not patches:
            raise PatchError(f"{home}/manifest: {home / name} has no patches")
        found.append(Series(name, versions[0], versions[1], patches))
    return found


def named(name: str) -> Series:
    """Return the series with a name. PatchError if there is none."""
    every = {one.name: one for one in series()}
    if name not in every:
        raise PatchError(f"no patches for Linux {name}; available for {', '.join(every)}")
    return every[name]


def version(tree: Path) -> str:
    """Return the version of a kernel tree from its Makefile: "6.1.192", "7.3.0-rc7"."""
    makefile = tree / "Makefile"
    if not makefile.is_file():
        raise PatchError(f"{tree} is not a kernel tree: it has no Makefile")
    values = dict(re.findall(r"^(\w+) =[ \t]*(.*)$", makefile.read_text(errors="replace"), re.M))
    try:
        number = ".".join(values[k] for k in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
        _numbers(number)
        return number + values["EXTRAVERSION"]
    except (KeyError, ValueError):
        raise PatchError(f"{tree} is not a kernel tree: its Makefile has no version") from None


def choose(tree: Path, home: Path = HOME) -> Series:
    """Return the series for a kernel tree. PatchError if there is none."""
    have = version(tree)
    number = _numbers(have.split("-")[0])
    every = series(home)
    for one in every:
        if one.first <= number < one.end:
            return one
    ranges = ", ".join(f"{_text(s.first)} to before {_text(s.end)}" for s in every)
    raise PatchError(f"no patches for Linux {have}; available for {ranges}")


def apply(tree: Path, home: Path = HOME) -> Series:
    """Apply the series that fits; on failure (PatchError) the tree stays as it was."""
    return _change(tree, home, reverse=False, keep=True)


def remove(tree: Path, home: Path = HOME) -> Series:
    """Undo `apply`; on failure (PatchError) the tree stays as it was."""
    return _change(tree, home, reverse=True, keep=True)


def check(tree: Path, home: Path = HOME) -> Series:
    """Do as `apply` does, but leave the tree unchanged."""
    return _change(tree, home, reverse=False, keep=False)


def _change(tree: Path, home: Path, *, reverse: bool, keep: bool) -> Series:
    chosen = choose(tree, home)
    names = chosen.files()
    with tempfile.TemporaryDirectory(prefix="kernel-patches.") as temp:
        copy = Path(temp)
        _copy(tree, copy, names)
        problem = _run(copy, chosen, reverse)
        if problem:
            raise PatchError(_explain(tree, chosen, names, reverse, problem))
        if keep:
            _put(copy, tree, names)
    return chosen


def _explain(tree: Path, chosen: Series, names: list[str], reverse: bool, problem: str) -> str:
    """Say why a series cannot be applied or removed."""
    with tempfile.TemporaryDirectory(prefix="kernel-patches.") as temp:
        copy = Path(temp)
        _copy(tree, copy, names)
        other = _run(copy, chosen, not reverse)
    what = f"series {chosen.name} on {tree} (Linux {version(tree)})"
    if not other:
        return f"{what}: {'not' if reverse else 'already'} applied"
    return f"{what}: {problem}"


def _copy(source: Path, target: Path, names: list[str]) -> None:
    for name in names:
        if (source / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)


def _run(copy: Path, chosen: Series, reverse: bool) -> str:
    """Apply or undo a series; return the error, or an empty string."""
    if not shutil.which("patch"):
        raise PatchError('the program "patch" is missing: apt-get install patch')
    for patch in sorted(chosen.patches, reverse=reverse):
        done = subprocess.run(
            ["patch", "-p1", "--batch", "--fuzz=0", "--no-backup-if-mismatch", "--reject-file=-",
             "--reverse" if reverse else "--forward", "--input", patch],
            cwd=copy, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            verb = "come off" if reverse else "apply"
            return f"{patch.name} does not {verb}:\n{done.stdout.strip()}"
    return ""


def _put(copy: Path, tree: Path, names: list[str]) -> None:
    """Copy files back into a tree, writing only those that differ.

    All are written under other names first: where that fails, the tree stays as it was.
    """
    staged = {}
    try:
        for name in names:
            old, new = tree / name, copy / name
            if new.exists() and not (old.exists() and old.read_bytes() == new.read_bytes()):
                old.parent.mkdir(parents=True, exist_ok=True)
                staged[old] = old.with_name(f"{old.name}.new")
                shutil.copyfile(new, staged[old])
                if old.exists():
                    shutil.copymode(old, staged[old])
    except BaseException:
        for fresh in staged.values():
            with contextlib.suppress(OSError):
                fresh.unlink()
        raise
    for old, fresh in staged.items():
        fresh.rename(old)
    for name in names:
        if not (copy / name).exists():
            (tree / name).unlink(missing_ok=True)


def _numbers(text: str) -> tuple[int, int, int]:
    parts = [int(p) for p in text.split(".")]
    if not 2 <= len(parts) <= 3:
        raise ValueError(text)
    return (*parts, 0)[:3]


def _text(numbers: tuple[int, int, int]) -> str:
    return ".".join(str(n) for n in (numbers if numbers[2] else numbers[:2]))
