"""The run-time checkers of the lab's own kernels have nothing to report at the end.

Sections run in the order of the files' names, so this one runs last.
"""

import re

import pytest
from machines import some

DEBUG, KCSAN = some(kernel="6.1-debug"), some(kernel="6.1-kcsan")


def leaks(report: str) -> list[str]:
    """Return kmemleak's reports on memory that our modules, unloaded by now, allocated.

    Functions of unloaded modules have no name any more. All others are in the kernel image.
    """
    objects = re.split(r"^(?=unreferenced object )", report, flags=re.MULTILINE)
    ours = re.compile(r"\[apic_timer|^ +(\[<\S+>\] )?0x[0-9a-f]+$", re.MULTILINE)
    return [text for text in objects if ours.search(text)]


OBJECT = """\
unreferenced object 0xffff888003c5ce40 (size 96):
  comm "{comm}", pid 127, jiffies 4294899241 (age 12.345s)
  hex dump (first 32 bytes):
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
  backtrace:
    [<(____ptrval____)>] __kmem_cache_alloc_node+0x1cf/0x2a0
    [<(____ptrval____)>] kmalloc_trace+0x2a/0x60
    [<(____ptrval____)>] {frame}
    [<(____ptrval____)>] do_one_initcall+0xa5/0x240
"""


def test_leaks():
    kernel = OBJECT.format(comm="swapper/0", frame="acpi_init+0x10/0x20")
    unloaded = OBJECT.format(comm="insmod", frame="0xffffffffc0205032")
    loaded = OBJECT.format(comm="insmod", frame="start+0x10/0x20 [apic_timer_busy]")
    assert leaks("") == []
    assert leaks(kernel + unloaded + kernel + loaded) == [unloaded, loaded]


@pytest.mark.guest(
    DEBUG,
    """
    unload
    sleep 6  # nothing younger than 5 s is looked at
    # The first time it takes checksums.
    echo scan >$DEBUG/kmemleak
    echo scan >$DEBUG/kmemleak
    cat $DEBUG/kmemleak
    """,
)
def test_no_leaks(guest):
    """Everything that our modules have allocated since boot is freed or referenced."""
    report = guest.ok()
    found = leaks(report)
    assert not found, f"{len(found)} leaks of unloaded modules:\n{''.join(found)}"
    print(report or "nothing unreferenced")


@pytest.mark.guest(
    DEBUG,
    """
    grep -E '^ *debug_locks:' /proc/lockdep_stats
    grep -E '^max_chain|^pool_' $DEBUG/debug_objects/stats
    """,
)
def test_still_on(guest):
    """Lockdep and debugobjects have not given up."""
    output = guest.ok()
    assert re.search(r"debug_locks: +1$", output, re.MULTILINE)
    assert int(re.search(r"^pool_used *:(\d+)", output, re.MULTILINE)[1]) > 0


@pytest.mark.guest(KCSAN, "cat $DEBUG/kcsan")
def test_races_are_looked_for(guest):
    """Watchpoints were set up in our modules, and no race was found."""
    counts = dict(re.findall(r"^(\w+): (\d+)$", guest.ok(), re.MULTILINE))
    print(counts)
    assert counts["enabled"] == "1"
    assert int(counts["setup_watchpoints"]) > 1000
    assert counts["data_races"] == "0"
