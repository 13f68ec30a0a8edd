"""Splats in a kernel log are recognised, and ordinary lines are not."""

import subprocess

import pytest
from lab.engines import splats

COMPLAINTS = [
    "BUG: KASAN: slab-use-after-free in arm_head+0x12/0x80 [apic_timer]",
    "BUG: KASAN: null-ptr-deref in cancel+0x51/0x90 [apic_timer]",
    "BUG: KCSAN: data-race in expire [apic_timer] / runs_on [apic_timer]",
    "BUG: KCSAN: assert: race in f+0x1/0x2 / g+0x3/0x4",
    "UBSAN: shift-out-of-bounds in module/core/lib/stats.h:72:7",
    "UBSAN: array-index-out-of-bounds in module/core/lib/stats.c:36:14",
    "WARNING: possible circular locking dependency detected",
    "WARNING: possible recursive locking detected",
    "WARNING: inconsistent lock state",
    "WARNING: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected",
    "WARNING: suspicious RCU usage",
    "WARNING: held lock freed!",
    "WARNING: bad unlock balance detected!",
    "[ BUG: Invalid wait context ]",
    "BUG: MAX_LOCKDEP_CHAINS too low!",
    "INFO: turning off the locking correctness validator.",
    "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",
    "BUG: scheduling while atomic: rmmod/123/0x00000002",
    "BUG: using smp_processor_id() in preemptible [00000000] code: insmod/99",
    "ODEBUG: free active (active state 0) object: ffff8880 object type: apic_timer hint: look+0x0",
    "ODEBUG: init active (active state 0) object type: timer_list hint: 0x0",
    "ODEBUG: object 00000000 is NOT on stack 00000001, but annotated.",
    "ODEBUG: object 00000000 is on stack 00000001, but NOT annotated.",
    "ODEBUG: Out of memory. ODEBUG disabled",
    "BUG kmalloc-64 (Tainted: G           OE     ): Poison overwritten",
    "BUG kmalloc-rnd-03-96 (Not tainted): Object already free",
    "kmemleak: Kernel memory leak detector disabled",
]
HARMLESS = [
    "kasan: KernelAddressSanitizer initialized",
    "kcsan: enabled early",
    "kcsan: strict mode configured",
    "kcsan: selftest: 3/3 tests passed",
    "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
    "ODEBUG: selftest passed",
    "ODEBUG: 120 of 120 active objects replaced",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)",
    "apic_timer: refuse: timer of handler+0x0/0x10 [apic_timer_selftest] added twice",
]


@pytest.mark.parametrize("line", COMPLAINTS)
def test_complaint(line):
    assert splats.find(f"[    1.0] before\n[    1.1] {line}\n[    1.2] after\n")


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless(line):
    assert not splats.find(f"[    1.1] {line}\n")


def test_same_in_guests():
    """Guests use grep -E."""
    for lines, matching in ((COMPLAINTS, len(COMPLAINTS)), (HARMLESS, 0)):
        argv = ["grep", "-c", "-E", "\n".join(splats.PATTERNS)]
        done = subprocess.run(argv, input="\n".join(lines), capture_output=True, text=True)
        assert int(done.stdout) == matching
