"""Benchmark `guest`: what we cost the kernel that we are a guest of.

The same is measured with apic_timer absent, attached and idle, and firing 10,000 shots a second.
"""

from .bench_rows import Key
from .bench_script import Script, decode_number
from .bench_size import Size

STATES = {
    "absent": "",
    "idle": "attach source=proxy",
    "firing": "attach source=proxy; insmod $MODULES/apic_timer_busy.ko rate=10000",
}
DISTANCE_NS = (20_000, 1_020_000)
CYCLICTEST_US = 520

# Interrupts of all CPUs and kinds: the rows of /proc/interrupts that count by CPU.
INTERRUPTS = """
interrupts() {
	awk -v row="$1" 'NR > 1 && ($1 == row || row == "") {
		for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i
	} END { print n + 0 }' /proc/interrupts
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
            "loc=$(interrupts LOC:) all=$(interrupts)",
            f"sleep {size.guest_seconds}",
            "loc=$(($(interrupts LOC:) - loc)) all=$(($(interrupts) - all))",
        )
        per = f"in_{size.guest_seconds}_s"
        script.take_output("echo $loc", Key(f"{name}/wakeups", "LOC", unit=per), decode_number)
        script.take_output("echo $((all - loc))", Key(f"{name}/wakeups", "others", unit=per),
                           decode_number)  # fmt: skip
        script.do("detach")
    return script
