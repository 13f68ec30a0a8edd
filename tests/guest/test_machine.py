"""Each machine as a whole."""

import re
from itertools import pairwise

import pytest
from lab.engines import splats
from machines import TABLE


@pytest.mark.parametrize("machine", TABLE, ids=lambda m: m.id)
def test_comes_to_its_end(boot):
    """The script ended, all our modules are unloaded, and the kernel has complained of nothing."""
    result = boot.result().check()
    assert not splats.find(result.kernel_log)
    begins = re.findall(r"^\[ *([\d.]+)\] @begin@ (\S+)$", result.kernel_log, re.MULTILINE)
    times = [(float(b) - float(a), name) for (a, name), (b, _) in pairwise(begins)]
    print(
        f"{boot.seconds:.0f} s of wall time; longest in the machine's own time:",
        ", ".join(f"{name} {s:.1f} s" for s, name in sorted(times)[:-9:-1]),
    )
