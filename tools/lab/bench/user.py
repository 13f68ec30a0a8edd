"""Benchmark `user`: how late programs' threads run, by /dev/apic_timer and its rivals.

An error is the TSC at the thread's first instruction after its moment, minus the moment. The wait
of each sleep on the TSC after its wake-up, which is the cost of exactness, has rows of its own.
"""

from dataclasses import dataclass

from .rows import Key
from .script import LAPIC, Script, ours
from .size import Size

LOADS = ("idle", "syscall", "net")
# By the device: the mode as rows name it, and as tests/user/latency.c calls it.
MODES = {"user": "device", "kernel": "kernel", "nofence": "nofence"}
RIVALS = ("nanosleep", "timerfd", "sleepspin", "spin")
# Distances in ns. They are short under load, where idle time cannot be skipped.
IDLE_NS, LOADED_NS = (20_000, 1_020_000), (20_000, 120_000)
WARM_UP = 2000  # sleeps from which the device learns, before those that count
MODULE, PROGRAM = "apic_timer_dev", "latency"
NAME, WAITED = "user/sleep", "user/sleep/waited"


@dataclass
class UserScript(Script):
    """A script whose guest also has MODULE and PROGRAM."""


def scripts(size: Size) -> list[Script]:
    """Return a script for each seed, with every load."""
    return [_script(size, seed) for seed in size.seeds]


def _script(size: Size, seed: int) -> Script:
    script = UserScript("user", seed, weight=size.shots / 40)
    # A spinning thread may take all of the CPU; by default the kernel stops it for 50 ms a second.
    script.do("echo -1 >/proc/sys/kernel/sched_rt_runtime_us")
    for load in LOADS:
        script.do("attach source=$source", f"insmod $MODULES/{MODULE}.ko", f"load {load} {seed}")
        for n, (mode, how) in enumerate(MODES.items()):
            _sleeps(script, size, how, ours(NAME, mode, load=load), n)
        for n, how in enumerate(RIVALS):
            _sleeps(script, size, how, Key(NAME, how, load=load), 10 + n)
        distance = IDLE_NS if load == "idle" else LOADED_NS
        script.cyclictest(Key(NAME, "cyclictest", load=load), size.shots, sum(distance) // 2000)
        script.do("unload", f"rmmod {MODULE}", "detach")
    return script


def _sleeps(script: Script, size: Size, how: str, key: Key, n: int) -> None:
    low, high = IDLE_NS if key.load == "idle" else LOADED_NS
    warm_up = WARM_UP if key.source == LAPIC else 0
    script.do(
        f"{PROGRAM} {how} {size.shots} {low} {high} {script.seed * 1000 + n} {warm_up} "
        ">$work/errors 3>$work/waited"
    )
    script.take("$work/errors", key)
    script.take("$work/waited", key._replace(bench=WAITED))
