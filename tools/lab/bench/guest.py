"""Benchmark `guest`: the cost of apic_timer to the kernel that it runs in.

The same things are measured with apic_timer absent, attached and idle, and firing 10,000 shots a
second.
"""

from .rows import Key
from .script import Script, decode_number
from .size import Size

STATES = {
    "absent": "",
    "idle": "attach source=$source",
    "firing": "attach source=$source; insmod $MODULES/apic_timer_busy.ko rate=10000",
}
DISTANCE_NS = (20_000, 1_020_000)
CYCLICTEST_US = 520

# Interrupts so far on all CPUs: first local timer interrupts, then all other kinds.
INTERRUPTS = """
interrupts() {
	awk 'NR > 1 {
		for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) {
			if ($1 == "LOC:")
				loc += $i
			else
				others += $i
		}
	} END { print loc, others }' /proc/interrupts
}
"""


def scripts(size: Size) -> list[Script]:
    """Return a script for each of up to 3 seeds, with all three states in one boot."""
    return [_script(size, seed) for seed in size.seeds[:3]]


def bench(state: str) -> str:
    """Return the name of the benchmark in a state: "absent", "idle" or "firing"."""
    return f"guest/{state}"


def _script(size: Size, seed: int) -> Script:
    script = Script("guest", seed, weight=size.guest_shots / 100)
    script.do(INTERRUPTS)
    for state, command in STATES.items():
        name = bench(state)
        script.do(command, "sleep 1")
        script.shots("hrtimer_hard", Key(name, "hrtimer_hard"), size.guest_shots, DISTANCE_NS)
        script.do(f"echo hrtimer_hard expire {size.guest_shots // 5} {seed} >$bench/cost")
        script.take("$bench/samples", Key(f"{name}/event", "hrtimer_hard"))
        script.cyclictest(Key(name, "cyclictest"), size.guest_shots, CYCLICTEST_US)
        script.do(
            f"before=$(interrupts); sleep {size.guest_seconds}; after=$(interrupts)",
            "set -- $before $after",
        )
        per = f"in_{size.guest_seconds}_s"
        for kind, of in (("LOC", "$(($3 - $1))"), ("others", "$(($4 - $2))")):
            key = Key(f"{name}/wakeups", kind, unit=per)
            script.take_output(f"echo {of}", key, decode_number)
        script.do("detach")
    return script
