"""Write a Linux initramfs (cpio, "newc" form) whose bytes depend only on its contents.

No modification times, owners or inode numbers of this machine get into it, and entries are
sorted: the guest that unpacks it executes the same instructions every time.
"""

import stat
from pathlib import Path

from ..build import userland


class Initramfs:
    """Collect files, then `write` the archive. Paths in the guest are given without leading /."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {}

    def directory(self, path: str) -> None:
        """Add a directory and its parents."""
        parts = path.split("/")
        for i in range(len(parts)):
            self._entries.setdefault("/".join(parts[: i + 1]), (stat.S_IFDIR | 0o755, b"", (0, 0)))

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Add a regular file and its parent directories."""
        self._add(path, stat.S_IFREG | mode, data)

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def device(self, path: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._add(path, stat.S_IFCHR | 0o600, b"", (major, minor))

    def program(self, source: str) -> None:
        """Add a program of the lab's userland (``usr/bin/trace-cmd``) and its libraries."""
        base = userland.root()
        for name in [source, *userland.libraries(source)]:
            self.file(name, (base / name).read_bytes(), 0o755)

    def write(self, target: Path) -> None:
        """Write the archive, uncompressed, because the guest unpacks that fastest."""
        with open(target, "wb") as out:
            for inode, name in enumerate(sorted(self._entries), start=1):
                _write_entry(out, inode, name, *self._entries[name])
            _write_entry(out, 0, "TRAILER!!!", 0, b"", (0, 0))

    def _add(self, path: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        if "/" in path:
            self.directory(path.rpartition("/")[0])
        self._entries[path] = (mode, data, device)


def _write_entry(out, inode: int, name: str, mode: int, data: bytes, device) -> None:
    links = 2 if stat.S_ISDIR(mode) else 1
    # inode mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    fields = (inode, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
    out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
