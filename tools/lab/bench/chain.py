"""Benchmark `chain`: from an interrupt to the thread waiting for it, as in the paper of 1997.

`apic-timer chain` measures when each handler starts after its expiry, and when the thread runs that
its deferred procedure wakes. The interrupt is apic_timer's or an hrtimer's, in the same boot.
"""

import json
from collections import Counter

from .rows import NONE, Key
from .script import LAPIC, Script, ours
from .size import Size

MODULES = ("apic_measure", "apic_timer_dev")
PROGRAM = "apic-timer"
LOADS = ("idle", "syscall")
TRIGGERS = {"apic": "apic_timer", "hrtimer": "hrtimer_hard"}  # as the tool and as rows name them
# As the tool names them. Not every kernel has "bh".
ROUTES = ("direct", "tasklet", "irq_work", "thread", "highpri", "work")
DEVICE = "device"  # not a route from an interrupt: the thread sleeps by /dev/apic_timer
# Distances in us. They are short under load, where idle time cannot be skipped.
IDLE_US, LOADED_US = (20, 1020), (20, 120)


class ChainScript(Script):
    """A script whose guest also has MODULES and PROGRAM."""


def scripts(size: Size) -> list[Script]:
    """Return a script per load and trigger, so that several guests share the work."""
    return [_script(size, load, trigger) for load in LOADS for trigger in TRIGGERS]


def bench(route: str, link: str) -> str:
    """Return the name of a series. link: "entry" (handler - expiry) or "user" (thread - expiry)."""
    return f"chain/{route}/{link}"


def _script(size: Size, load: str, trigger: str) -> Script:
    shots = size.chain_shots
    script = ChainScript(f"chain-{trigger}-{load}", size.seeds[0],
                         weight=shots / (80 if load == "idle" else 20))  # fmt: skip
    # The thread only waits for interrupts, but a load that fills the CPU must not throttle it.
    script.do("runtime=$(cat /proc/sys/kernel/sched_rt_runtime_us)",
              "echo -1 >/proc/sys/kernel/sched_rt_runtime_us",
              "attach source=$source", *(f"insmod $MODULES/{name}.ko" for name in MODULES),
              f"load {load} {size.seeds[0]}")  # fmt: skip
    least, most = IDLE_US if load == "idle" else LOADED_US
    for route in (*ROUTES, *[DEVICE] * (trigger == "apic")):
        # Without this, progress messages would be printed during the measurement.
        script.do(f"{PROGRAM} chain --via {route} --trigger {trigger} --shots {shots} "
                  f"--least {least} --most {most} --json --counts >$work/chain 2>$work/said || "
                  "{ cat $work/said; false; }")  # fmt: skip
        for link in ("user",) if route == DEVICE else ("entry", "user"):
            script.take("$work/chain", _key(route, link, trigger, load), _counts(link, shots))
    script.do("unload", *(f"rmmod {name}" for name in MODULES), "detach",
              "echo $runtime >/proc/sys/kernel/sched_rt_runtime_us")  # fmt: skip
    return script


def _key(route: str, link: str, trigger: str, load: str) -> Key:
    name = bench(route, link)
    if route == DEVICE:
        return ours(name, "user", load=load)
    if trigger == "apic":
        return Key(name, TRIGGERS[trigger], LAPIC, "exact", load)
    return Key(name, TRIGGERS[trigger], NONE, NONE, load)


def _counts(link: str, shots: int):
    """Return a decoder of the tool's JSON: no samples unless all records are there, in order."""

    def decode(data: bytes) -> Counter[int]:
        if not data.strip():
            return Counter()
        (row,) = json.loads(data)["rows"]
        counts = Counter({value: count for value, count in row[f"{link}_counts"]})
        return counts if row["disorder"] == 0 and counts.total() == shots else Counter()

    return decode
