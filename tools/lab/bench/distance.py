"""Benchmark `distance`: how the error depends on the time to the expiry."""

from .rows import Key
from .script import Script, ours
from .size import Size

WARM_UP = 2000
WARM_UP_NS = (20_000, 1_020_000)


def scripts(size: Size) -> list[Script]:
    """Return a script for each of up to 3 seeds."""
    return [_script(size, seed) for seed in size.seeds[:3]]


def bench(distance_ns: int) -> str:
    """Return the name of the benchmark at a distance in ns."""
    return f"distance/{distance_ns}"


def _script(size: Size, seed: int) -> Script:
    script = Script("distance", seed, weight=sum(size.distances.values()) / 40)
    script.do("attach source=$source")
    for mode in ("exact", "raw"):
        # Once, not at each distance: a shot an hour must be as exact as one of many.
        warm_up = f"uniform {WARM_UP} {WARM_UP_NS[0]} {WARM_UP_NS[1]} {seed}"
        script.do(f"echo apic_timer_{mode} {warm_up} >$bench/run")
        for distance, shots in size.distances.items():
            key = ours(bench(distance), mode)
            script.shots(f"apic_timer_{mode}", key, shots, (distance, distance))
    for distance, shots in size.distances.items():
        script.shots("hrtimer_hard", Key(bench(distance), "hrtimer_hard"), shots,
                     (distance, distance))  # fmt: skip
    script.do("detach")
    return script
