"""Where instructions are spent: the counts of the plug-in `profile`, by function.

In virtual time an instruction is a cycle, so this shows the cost of each part of an expiry, of a
packet or of a thread's wake-up, including the kernel's share. A part is a script that sends the
plug-in ``begin NAME EVENTS`` and ``end`` around the counted code, which runs the same thing EVENTS
times.
"""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..base.errors import LabError
from ..base.progress import say
from ..build import build, network, plugins, user
from ..engines import virtual
from ..kernels import patched
from ..kernels.kernels import Kernel
from . import calendar
from .symbols import Symbol, Symbols

SERIES = "6.1"
MODULES = ("apic_timer", "sch_apic", "apic_timer_sink", "apic_timer_dev", "apic_calendar",
           "apic_timer_bench", "apic_timer_bench_ours", "apic_timer_busy")  # fmt: skip
PROGRAMS = ("latency", "calendar")
TIMEOUT = 900  # s of wall time
MEMORY = 1024  # MiB
KERNEL = 1 << 63  # the kernel's addresses start here
USER = Symbol("", "programs")
TOP = 25  # functions to show

# The first rounds of each are not counted: leads are learnt in them.
TIMERS = """
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_timer_bench.ko
insmod $MODULES/apic_timer_bench_ours.ko
for timer in apic_timer_exact hrtimer_hard; do
    echo $timer uniform 3000 20000 120000 1 0 >/sys/kernel/debug/apic_timer_bench/run
    tell begin $timer 3000
    echo $timer uniform 3000 20000 120000 2 0 >/sys/kernel/debug/apic_timer_bench/run
    tell end
done
"""
# 100 us apart; all of them are queued long before the first expires.
PACKETS = """
insmod $MODULES/apic_timer.ko
insmod $MODULES/sch_apic.ko
insmod $MODULES/apic_timer_sink.ko
/usr/bin/ip link set sink0 up
/usr/bin/ip address add 10.9.9.1/24 dev sink0
/usr/sbin/tc qdisc add dev sink0 root apic mode hard limit 10000
udpsend count=2000 gap=100000 size=100 batch=2000 ahead=100000000 >/dev/null
udpsend count=2000 gap=100000 size=100 batch=2000 ahead=100000000 >/dev/null &
sleep 0.15
tell begin packet 1000
sleep 0.1
tell end
wait
"""
SLEEPS = """
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_timer_dev.ko
for how in device nanosleep; do
    latency $how 3000 20000 120000 1 0 >/dev/null 3>&1
    tell begin $how 3000
    latency $how 3000 20000 120000 2 0 >/dev/null 3>&1
    tell end
done
"""
# Four windows per millisecond: each unit ends one itself, and is stopped at the end of the other.
WINDOWS = """
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_calendar.ko
calendar /windows 1000 sense 1 >/dev/null 3>&1 4>&1 &
sleep 0.5
tell begin window 1600
sleep 0.4
tell end
wait
"""
PARTS = {"timers": TIMERS, "packets": PACKETS, "sleeps": SLEEPS, "windows": WINDOWS}


@dataclass
class Window:
    """Counts between "begin" and "end", by function: instructions and calls."""

    name: str
    events: int
    instructions: Counter[Symbol] = field(default_factory=Counter)
    calls: Counter[Symbol] = field(default_factory=Counter)

    def by_module(self) -> Counter[str]:
        """Sum up instructions by the function's module: "kernel", "programs" and so on."""
        found: Counter[str] = Counter()
        for symbol, count in self.instructions.items():
            found[symbol.module or "kernel"] += count
        return found


def main(names: Iterable[str], series: str, script: str | None, top: int) -> int:
    """Print where instructions go in the named parts (none: all), or in a script. Return 0."""
    kernel = patched.find(series)
    for window in measure(kernel, names) if script is None else run(kernel, script):
        print(table(window, top) + "\n")
    return 0


def measure(kernel: Kernel, names: Iterable[str] = ()) -> list[Window]:
    """Run the named parts, each in its own guest; LabError if there is no such part."""
    names = list(names) or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        raise LabError(f"unknown part {', '.join(unknown)}; available: {', '.join(PARTS)}")
    return [window for name in names for window in run(kernel, PARTS[name])]


def run(kernel: Kernel, script: str) -> list[Window]:
    """Run a script in a guest with all modules; return its windows. LabError if it fails."""
    started = time.monotonic()
    built = build.build(kernel)
    programs = {f"usr/bin/{name}": user.program(kernel, name) for name in PROGRAMS}
    result = virtual.run(
        kernel, f"{script}\nput symbols </proc/kallsyms\n", memory=MEMORY, timeout=TIMEOUT,
        modules=[build.find_ko(built, name) for name in MODULES],
        files={**network.files(kernel), **programs, "windows": calendar.table(20_000)},
        plugins={"profile": plugins.plugin("profile")},
    ).check()  # fmt: skip
    windows = parse(result.files["profile"].decode(), Symbols(result.files["symbols"].decode()))
    say("profile", f"{', '.join(w.name for w in windows)}: {time.monotonic() - started:.0f} s")
    return windows


def parse(text: str, symbols: Symbols) -> list[Window]:
    """Parse the plug-in's output. Addresses below the kernel's belong to programs."""
    windows: list[Window] = []
    for line in text.splitlines():
        match line.split():
            case [":", "begin", name, *events]:
                count = int(events[0]) if events and events[0].isdigit() else 1
                windows.append(Window(name, count))
            case [":", *_]:
                pass
            case [address, executed, begun]:
                at = int(address, 16)
                symbol, begins = (symbols.find(at), symbols.begins(at)) if at >= KERNEL else (
                    USER, False)  # fmt: skip
                windows[-1].instructions[symbol] += int(executed)
                if begins:
                    windows[-1].calls[symbol] += int(begun)
    return windows


def rows(window: Window) -> list[dict]:
    """Return a row per function, with figures per event, the most expensive first."""
    return [{"window": window.name, "events": window.events, "function": symbol.name,
             "module": symbol.module or "kernel", "instructions": round(count / window.events, 1),
             "calls": round(window.calls[symbol] / window.events, 2)}
            for symbol, count in sorted(window.instructions.items(),
                                        key=lambda item: (-item[1], item[0]))]  # fmt: skip


def table(window: Window, top: int = TOP) -> str:
    """Return a window's tables, per event: by module, and for the most expensive functions."""
    every, n = rows(window), window.events
    total = sum(window.instructions.values())
    lines = [f"{window.name}: {total / n:,.0f} instructions an event, {n:,} events", ""]
    lines += [f"{count / n:12,.1f}         {module}"
              for module, count in window.by_module().most_common()]  # fmt: skip
    lines += ["", f"{'instructions':>12}  {'calls':>5}  function"]
    lines += [f"{row['instructions']:12,.1f}  {row['calls']:5.2f}  {row['function']} "
              f"[{row['module']}]" for row in every[:top]]  # fmt: skip
    rest = sum(row["instructions"] for row in every[top:])
    return "\n".join([*lines, f"{rest:12,.1f}         {len(every[top:])} others"])
