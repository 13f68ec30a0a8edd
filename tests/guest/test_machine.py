"""Each machine, taken as a whole, boots, and its kernel log is clean."""

import pytest
import times
from lab.engines import splats
from machines import TABLE


@pytest.mark.parametrize("machine", TABLE, ids=lambda m: m.id)
def test_comes_to_its_end(boots, machine):
    """The script ended, all our modules are unloaded, and the kernel log has no splat."""
    for boot in boots:
        result = boot.result().check()
        assert not splats.find(result.kernel_log)
    print("\n".join(times.of_machines((machine, boot) for boot in boots)))
