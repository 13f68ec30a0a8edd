"""Benchmark `spin`: the CPU time spun in mode exact, against the chosen quantile."""

from collections import Counter

from .script import Script, ours
from .size import Size

RATES = (100, 1_000, 10_000)  # shots a second
LOADS = ("idle", "timers")
WARM_UP = 2000
MILLION = 1_000_000

# Cycles spun so far, by all CPUs.
SPIN = """
spun() {
	awk '$1 == "spin_cycles" { for (i = 2; i <= NF; i++) n += $i } END { print n }' $us/stats
}
"""


def scripts(size: Size) -> list[Script]:
    """Return a script for each quantile, with every rate and load."""
    return [_script(size, quantile) for quantile in size.quantiles]


def bench(quantile: int, rate: int) -> str:
    """Return the name of the benchmark; the quantile in 1/10000, the rate in shots a second."""
    return f"spin/{quantile}/{rate}"


def _script(size: Size, quantile: int) -> Script:
    script = Script("spin", size.seeds[0], weight=len(LOADS) * size.spin_seconds * 3)
    script.do(SPIN)
    for load in LOADS:
        for rate in RATES:
            mean = 1_000_000_000 // rate
            # Loaded again, so that nothing learnt at another rate remains.
            script.do(f"attach source=$source lead_quantile={quantile}",
                      f"load {load} {script.seed}")  # fmt: skip
            script.do(f"echo apic_timer_exact uniform {WARM_UP} 20000 120000 1 >$bench/run")
            script.do("spun=$(spun)")
            key = ours(bench(quantile, rate), "exact", load=load)
            script.shots("apic_timer_exact", key, rate * size.spin_seconds,
                         (mean // 2, mean + mean // 2))  # fmt: skip
            script.take_output("echo $(($(spun) - spun)) $(cat $bench/elapsed)",
                               key._replace(unit="ppm_of_cpu"), _ppm)  # fmt: skip
            script.do("unload", "detach")
    return script


def _ppm(data: bytes) -> Counter[int]:
    if not data.strip():
        return Counter()
    spun, elapsed = (int(word) for word in data.split())
    return Counter([spun * MILLION // elapsed])
