"""Renew the lock: for each root, the newest packages in today's Debian archive."""

from ..base.progress import say
from ..build import iproute2, jitterdebugger, linuxptp, tool, userland
from ..engines import bochs, successor, uefi
from ..kernels import ccache, kernels, lock, sources
from ..kernels.debian import Archive, Groups


def main() -> int:
    """Write packages.lock; only package lists are fetched."""
    before = lock.parse(lock.LOCK.read_text()) if lock.LOCK.exists() else {}
    roots: dict[str, lock.Root] = {}
    every = [userland.SUITES, bochs.SUITES, *(kernels.SUITES[s] for s in kernels.SUPPORTED)]
    for suites in dict.fromkeys(every):
        say("lock", f"reading the lists of {', '.join(suites)}")
        with Archive(*suites) as archive:
            for name, groups in _asked(archive).items():
                roots[name] = lock.Root(suites, archive.resolve(groups))
    lock.LOCK.write_text(lock.text(roots))
    for name in sorted(roots):
        old = set(before.get(name, lock.Root()).packages)
        new = [package for package in roots[name].packages if package not in old]
        say("lock", f"{name}: {len(new)} of {len(roots[name].packages)} packages have changed")
    return 0


def _asked(archive: Archive) -> dict[str, Groups]:
    """Return the packages to ask an archive for, by root."""
    asked: dict[str, Groups] = {}
    if archive.suites == userland.SUITES:
        asked["userland"] = [(userland.PACKAGES, True), (userland.ALONE, False)]
        asked["iproute2"] = [(iproute2.ALONE, False)]
        asked["jitterdebugger"] = [(jitterdebugger.ALONE, False)]
        asked["linuxptp"] = [(linuxptp.ALONE, False)]
        asked["kexec"] = [(successor.PACKAGES, True)]
        asked["ovmf"] = [(uefi.PACKAGES, True)]
    if archive.suites == ccache.SUITES:
        asked[ccache.NAME] = [(ccache.PACKAGES, True)]
    if archive.suites == bochs.SUITES:
        asked["bochs"] = [(bochs.PACKAGES, True)]
    if archive.suites == tool.SUITES:
        asked["libc"] = [(tool.ALONE, False)]
    for series in kernels.SUPPORTED:
        if archive.suites == kernels.SUITES[series]:
            asked[kernels.part(series)] = kernels.asked(archive, series)
            asked[sources.part(series)] = [([f"linux-source-{series}"], False)]
    return asked
