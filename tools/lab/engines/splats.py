"""The lines of a kernel log by which the kernel reports a fault in itself."""

import re

# A CPU or a task does not go on. An emulated CPU may be the cause: it is a thread of this machine.
_LOCKUP = "soft lockup|hard LOCKUP"
_RCU = "rcu.*(detected stall|starved for)"
_HUNG = "INFO: task .* blocked for more than"
_NO_TICK = "IO-APIC . timer doesn't work"  # a panic in boot: no tick came in time

# Extended regular expressions and no further syntax, because guests use them with grep -E.
PATTERNS = [
    r"WARNING: ",
    r"(^|[^E])BUG:",  # not ODEBUG, which has a selftest
    r"kernel BUG at",
    r"Oops",
    r"Call Trace",
    r"[Gg]eneral protection fault",
    r"[Uu]nable to handle",
    _RCU,
    r"possible recursive|possible circular|possible irq lock|inconsistent lock",
    _HUNG,
    _LOCKUP,
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

# A further parameter of guests in real time, whose log is read at their end. CPUs that go offline
# each second fill the kernels' usual buffer of 128 KiB in minutes. The descriptors of this one take
# another 60 MB. In virtual time it would change the moments of all that follows.
LONG_LOG = "log_buf_len=16M"
FIRST, FIRST_LINES = "Linux version ", 5  # a log has this in one of its first lines


def find(log: str) -> list[str]:
    """Return the lines of a kernel log that are splats."""
    every = re.compile("|".join(PATTERNS))
    return [line for line in log.splitlines() if every.search(line)]


def is_stall(line: str) -> bool:
    """Tell whether a splat only says that a CPU, a task or the tick does not go on."""
    return bool(re.search("|".join((_LOCKUP, _RCU, _HUNG, _NO_TICK)), line))


def judge(verdict: str, log: str) -> str:
    """Return a guest's verdict about itself, or that its log has lost its beginning.

    The guest has looked for splats in what the kernel had kept of the log.
    """
    if verdict == "ok" and not any(FIRST in line for line in log.splitlines()[:FIRST_LINES]):
        return "the kernel log is not whole: a splat may be lost"
    return verdict
