"""The programs `ip` and `tc` of guests that have a network, unpacked in the cache.

They have their own root, so guests without a network stay the same to the byte.
"""

from pathlib import Path

from ..kernels import unpacked

SUITES = ("trixie", "trixie-security")
# Only the libraries of these two programs, not those of the package's other programs.
ALONE = ["iproute2", "libbpf1", "libc6", "libcap2", "libelf1t64", "libmnl0", "libpcre2-8-0",
         "libselinux1", "libxtables12", "libzstd1", "zlib1g"]  # fmt: skip
PROGRAMS = ("usr/bin/ip", "usr/sbin/tc")


def root() -> Path:
    """Return the directory with the programs; LabError if it is not available."""
    return unpacked.unpacked("iproute2", SUITES, [], ALONE)


def files() -> dict[str, Path]:
    """Return the files that a guest needs for them, in the engines' form: guest path -> file."""
    return unpacked.files(root(), PROGRAMS)
