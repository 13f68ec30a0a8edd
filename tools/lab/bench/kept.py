"""A cache of the benchmark's samples in virtual time, so that hours of it can be interrupted.

In virtual time a script gives the same samples each time. They are kept in the cache under a hash
of all that they depend on: kernel, modules, the script with the names and the decoders of its
samples, and the code that runs it.
"""

import gzip
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ..base.cache import cache_dir
from ..base.progress import say
from ..build import userland
from ..engines import qemu
from ..kernels import kernels, lock
from .rows import Key, Samples
from .script import Script, Take

LAB = Path(__file__).parents[1]
# Code that makes guests, and hands over what they return. The code that writes a script counts by
# the script, and that which decodes its samples by its file: see _script(). test_bench_kept.py has
# the files that need not be here.
MAKERS = (
    "bench/figures.py",
    "bench/kept.py",
    "bench/main.py",
    "bench/rows.py",
    "bench/script.py",
    "build/native.py",
    "engines/diskless.py",
    "engines/guest/*",
    "engines/image.py",
    "engines/initramfs.py",
    "engines/monitor.py",
    "engines/options.py",
    "engines/qemu.py",
    "engines/result.py",
    "engines/splats.py",
    "engines/virtual.py",
    "kernels/vmlinux.py",
)
SECONDS = 14 * 24 * 3600  # how long samples are kept


def kept(run: Callable[[Script], Samples], kernel: kernels.Kernel, taken: Iterable[Path | bytes],
         options: str) -> Callable[[Script], Samples]:  # fmt: skip
    """Return a function that runs a script by `run`, unless its samples are in the cache.

    taken:   modules and other files that the guest gets
    options: everything else that the samples depend on
    """
    roots = [lock.identity(root) for root in (kernel.root, userland.root())]
    what = (kernel.release, qemu.version(), roots, options)
    base = hashlib.sha256(repr(what).encode())
    makers = [file for name in MAKERS for file in sorted(LAB.glob(name))]
    for file in [*taken, *makers]:
        data = file if isinstance(file, bytes) else file.read_bytes()
        base.update(hashlib.sha256(data).digest())
    directory = cache_dir("bench")
    for old in directory.iterdir():
        with suppress(FileNotFoundError):  # removed or renamed by another benchmark
            if time.time() - old.stat().st_mtime > SECONDS:
                old.unlink()

    def run_or_read(script: Script) -> Samples:
        key = base.copy()
        key.update(_script(script))
        file = directory / f"{script.name}-{script.seed}-{key.hexdigest()[:16]}.json.gz"
        if file.exists():
            say("bench", f"{script.name}, seed {script.seed}: reusing the results in {file}")
            return _decode(file.read_bytes())
        samples = run(script)
        new = file.with_name(f".{file.name}")
        new.write_bytes(_encode(samples))
        new.rename(file)
        return samples

    return run_or_read


def _script(script: Script) -> bytes:
    """Return all that a script's samples depend on: it, and the files with the code it names."""
    # The weight only decides when it runs. The text has the files that are returned, but not their
    # keys and decoders.
    fields = sorted(item for item in vars(script).items() if item[0] not in ("weight", "steps"))
    takes = [step for step in script.steps if isinstance(step, Take)]
    what = [type(script).__name__, fields, script.text()]
    for take in takes:
        # A decoder may be made by a function that takes the number of samples, say.
        made_with = [cell.cell_contents for cell in take.decode.__closure__ or ()]
        what.append((take.file, tuple(take.key), take.plugin, take.decode.__qualname__, made_with))
    modules = {type(script).__module__, *(take.decode.__module__ for take in takes)}
    files = [Path(sys.modules[name].__file__).read_bytes() for name in sorted(modules)]
    return repr((what, files)).encode()


def _encode(samples: Samples) -> bytes:
    rows = [[list(key), sorted(counts.items())] for key, counts in samples.items()]
    return gzip.compress(json.dumps(rows).encode())


def _decode(data: bytes) -> Samples:
    return {Key(*key): Counter(dict(counts)) for key, counts in json.loads(gzip.decompress(data))}
