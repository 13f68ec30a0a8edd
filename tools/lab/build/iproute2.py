"""The programs `ip` and `tc` of guests that have a network, unpacked in the cache.

A root of its own: guests without a network stay as they are, to the byte.
"""

from pathlib import Path

from ..kernels import unpacked

SUITES = ("trixie", "trixie-security")
# Only the libraries of these two programs, not those of all others in the package.
ALONE = ["iproute2", "libbpf1", "libc6", "libcap2", "libelf1t64", "libmnl0", "libpcre2-8-0",
         "libselinux1", "libxtables12", "libzstd1", "zlib1g"]  # fmt: skip
PROGRAMS = ("usr/bin/ip", "usr/sbin/tc")


def root() -> Path:
    """Return the directory with the programs; LabError when it cannot be had."""
    return unpacked.unpacked("iproute2", SUITES, [], ALONE)


def files() -> dict[str, Path]:
    """Return what a guest needs for them, as engines take files: guest path -> file."""
    return unpacked.files(root(), PROGRAMS)
