"""Benchmark `clocks`: what reading a clock costs, in the kernel and in a program.

The paper of 2011 called gettimeofday() 100,000,000 times, with the TSC and with the HPET as
clocksource. Here it is called less often, and the rows give the time for that many calls.
"""

from collections import Counter

from .rows import Key
from .script import Script
from .size import Size

# In tests/modules/bench/clocks.c, and in ours.c there.
KERNEL = ("rdtsc", "lfence_rdtsc", "rdtscp", "ktime_get", "ktime_get_real", "ktime_get_raw",
          "ktime_get_coarse", "hpet", "acpi_pm", "rtc")  # fmt: skip
OURS = ("apic_timer_now", "tsc_to_monotonic", "tsc_to_tai")
# In tests/user/clocks.c.
USER = ("rdtsc", "lfence_rdtsc", "rdtscp", "gettimeofday", "realtime", "monotonic", "raw",
        "coarse", "tai", "syscall", "getppid")  # fmt: skip
PROGRAM = "clocks"
CALLS = 100_000_000  # the paper's
PAPER_S = {"tsc": 46, "hpet": 140}  # their time there, in seconds
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


class ClocksScript(Script):
    """A script whose guest also has PROGRAM."""


def scripts(size: Size) -> list[Script]:
    """Return one script: instruction counts need no second sample."""
    script = ClocksScript("clocks", size.seeds[0], weight=10)
    script.do("attach source=$source")
    for timer, names in (("kernel", KERNEL), ("apic_timer", OURS)):
        for name in names:
            script.do(f"echo {name} {size.operations} >$bench/clocks")
            script.take("$bench/samples", Key(f"clocks/{name}", timer))
    count = size.operations * 50
    for name in USER:
        script.take_output(f"{PROGRAM} {name} {count}", Key(f"clocks/{name}", "program"),
                           _each(count))  # fmt: skip
    script.do(f"was=$(cat {CLOCKSOURCE})")
    for clocksource in PAPER_S:
        script.do(f"echo {clocksource} >{CLOCKSOURCE}; sleep 1",
                  f'[ "$(cat {CLOCKSOURCE})" = {clocksource} ]')  # fmt: skip
        key = Key(paper(clocksource), "program", unit="ms_per_1e8")
        script.take_output(f"{{ cat $bench/tsc_khz; {PROGRAM} gettimeofday {count}; }}", key,
                           _all(count))  # fmt: skip
    script.do(f"echo $was >{CLOCKSOURCE}", "detach")
    return [script]


def paper(clocksource: str) -> str:
    """Return the name of the paper's benchmark for a clocksource."""
    return f"clocks/gettimeofday_by_{clocksource}"


def _each(count: int):
    def decode(data: bytes) -> Counter[int]:
        return Counter([round(int(data) / count)] if data.strip() else [])

    return decode


def _all(count: int):
    def decode(data: bytes) -> Counter[int]:
        words = data.split()
        if len(words) != 2:
            return Counter()
        khz, cycles = map(int, words)
        return Counter([round(cycles / count * CALLS / khz)])

    return decode
