"""Benchmark `error`: how late timers start under loads: ours in each mode, and the rivals."""

from .rows import Key
from .script import LAPIC, Script, ours
from .size import Size

LOADS = ("idle", "user", "syscall", "net", "timers", "irqoff")
MODES = ("exact", "mean", "raw")
RIVALS = ("hrtimer_hard", "hrtimer_soft", "usleep_range")
# Distances in ns. They are short under load, where idle time cannot be skipped.
IDLE_NS, LOADED_NS = (20_000, 1_020_000), (20_000, 120_000)
WARM_UP = 2000  # shots from which ours learns, before those that count
BUDGET_NS = 25_000  # spin that outlasts the load irqoff


def scripts(size: Size) -> list[Script]:
    """Return a script for each seed and source, with every load."""
    return [_script(size, seed, source) for seed in size.seeds for source in (LAPIC, "hrtimer")]


def _script(size: Size, seed: int, source: str) -> Script:
    script = Script(f"error-{source}", seed, weight=size.shots / 50)
    for load in size.loads:
        distance = IDLE_NS if load == "idle" else LOADED_NS
        given = "$source" if source == LAPIC else source
        script.do(f"attach source={given}", f"load {load} {seed}")
        for n, mode in enumerate(MODES):
            key = ours("error", mode, source=source, load=load)
            script.shots(f"apic_timer_{mode}", key, size.shots, distance, warm_up=WARM_UP,
                         seed=10 * n)  # fmt: skip
            if load == "irqoff":
                beyond = ours("error/beyond", mode, source=source, load=load)
                script.take("$bench/excess", beyond)
        if load == "irqoff":
            key = ours("error/budget_25us", "exact", source=source, load=load)
            script.shots("apic_timer_exact", key, size.shots, distance, spin_ns=BUDGET_NS,
                         warm_up=WARM_UP, seed=100)  # fmt: skip
        if source == LAPIC:
            _rivals(script, size, load, distance)
        script.do("unload", "detach")
    return script


def _rivals(script: Script, size: Size, load: str, distance: tuple[int, int]) -> None:
    for n, timer in enumerate(RIVALS):
        key = Key("error", timer, load=load)
        script.shots(timer, key, size.shots, distance, seed=200 + 10 * n)
    # Each shot waits for a tick or two: under load 100,000 of them would take hours.
    shots = size.shots if load == "idle" else size.jiffy_shots
    script.shots("timer_list", Key("error", "timer_list", load=load), shots, distance, seed=300)
    interval_us = sum(distance) // 2000
    script.cyclictest(Key("error", "cyclictest", load=load), size.shots, interval_us)
