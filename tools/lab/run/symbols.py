"""Functions of a guest's kernel by address."""

import bisect
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Symbol:
    """A function of the kernel or of one of its modules."""

    name: str
    module: str  # "" for the kernel itself


class Symbols:
    """Lines of /proc/kallsyms."""

    def __init__(self, lines: str) -> None:
        found = []
        for line in lines.splitlines():
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                found.append((int(address, 16), Symbol(name, "".join(module).strip("[]"))))
        found.sort(key=lambda symbol: symbol[0])
        self._addresses = [address for address, _ in found]
        self._symbols = [symbol for _, symbol in found]

    def find(self, address: int) -> Symbol:
        """Return the last symbol at or before an address; if there is none, one without a name."""
        at = bisect.bisect_right(self._addresses, address)
        return self._symbols[at - 1] if at else Symbol("", "")

    def begins(self, address: int) -> bool:
        """Tell whether a symbol begins at an address."""
        at = bisect.bisect_left(self._addresses, address)
        return self._addresses[at : at + 1] == [address]
