"""Benchmark `cost`: the cost of operations while other timers are pending, ours and hrtimer's.

On two CPUs it measures the cost of a fresh timer on each: no CPU's lock may be shared by all.
"""

from .rows import Key
from .script import Script, ours
from .size import Size

# What tests/modules/bench/cost.c measures with a number of timers pending.
PROBES = ("add", "fresh", "head", "modify", "delete", "older", "expire")
# The mode makes a difference only to the interrupt.
MODE = "exact"


def scripts(size: Size) -> list[Script]:
    """Return scripts for 1 and for 2 CPUs: instruction counts need no second sample."""
    script = Script("cost", size.seeds[0], weight=max(size.pending) / 10_000 + 10)
    script.do("attach source=$source")
    for pending in size.pending:
        _measure(script, size, "apic_timer", pending)
        _measure(script, size, "hrtimer_hard", pending)
    script.do("detach")
    return [script, _on_each_cpu(size)]


def bench(operation: str, pending: int) -> str:
    """Return the name of the benchmark of an operation."""
    return f"cost/{operation}/{pending}"


def key(operation: str, pending: int, timer: str) -> Key:
    """Return the key of an operation on a timer of a kind."""
    if timer == "apic_timer":
        return ours(bench(operation, pending), MODE)
    return Key(bench(operation, pending), timer)


def fresh_on(cpu: int) -> str:
    """Return the name of the benchmark of a fresh timer on a CPU."""
    return bench(f"fresh_on_cpu{cpu}", 1)


def _on_each_cpu(size: Size) -> Script:
    script = Script("cost-cpus", size.seeds[0], weight=10, cpus=2)
    script.do("attach source=$source")
    for cpu in range(script.cpus):
        # A timer that expires first is pending there: the hardware is not programmed for another.
        for operation, count in (("fill", 1), ("fresh", size.operations)):
            command = f"echo apic_timer_{MODE} {operation} {count} {script.seed} >$bench/cost"
            script.do(f'taskset {1 << cpu:x} sh -c "{command}"')
        script.take("$bench/samples", ours(fresh_on(cpu), MODE))
        script.do(f"echo apic_timer_{MODE} empty 0 {script.seed} >$bench/cost")
    script.do("detach")
    return script


def _measure(script: Script, size: Size, timer: str, pending: int) -> None:
    name = f"apic_timer_{MODE}" if timer == "apic_timer" else timer

    def do(operation: str, count: int) -> None:
        script.do(f"echo {name} {operation} {count} {script.seed} >$bench/cost")
        script.take("$bench/samples", key(operation, pending, timer))

    do("fill", pending)
    for operation in PROBES:
        do(operation, size.operations)
    do("empty", 0)
