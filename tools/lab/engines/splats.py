"""The lines of a kernel log by which the kernel reports a fault in itself."""

import re

# Extended regular expressions and no further syntax, because guests use them with grep -E.
PATTERNS = [
    r"WARNING: ",
    r"(^|[^E])BUG:",  # not ODEBUG, which has a selftest
    r"kernel BUG at",
    r"Oops",
    r"Call Trace",
    r"[Gg]eneral protection fault",
    r"[Uu]nable to handle",
    r"rcu.*(detected stall|starved for)",
    r"possible recursive|possible circular|possible irq lock|inconsistent lock",
    r"INFO: task .* blocked for more than",
    r"soft lockup|hard LOCKUP",
    r"list_(add|del) corruption",
    r"refcount_t:",
    r"UBSAN|KASAN|KCSAN",
    r"scheduling while atomic|sleeping function called from invalid",
    r"Kernel panic",
    r"unchecked MSR access",
    r"double fault|divide error",
    # SLUB; debugobjects and lockdep, which also report when they give up
    r"BUG \S+ \(.*\): ",
    r"ODEBUG: .*(object type|disabled|on stack)",
    r"turning off the locking correctness validator",
    r"held lock freed",
    # kmemleak, only when it gives up: test_unreferenced.py judges its findings
    r"kmemleak: .*(disabled|[Cc]annot|stopped)",
]

# Kernel parameters that end a VM at its first splat.
PARAMETERS = (
    "oops=panic panic_on_warn=1 panic=-1 softlockup_panic=1 sysctl.kernel.hung_task_panic=1 "
    "sysctl.kernel.panic_on_rcu_stall=1"
)


def find(log: str) -> list[str]:
    """Return the lines of a kernel log that are splats."""
    every = re.compile("|".join(PATTERNS))
    return [line for line in log.splitlines() if every.search(line)]
