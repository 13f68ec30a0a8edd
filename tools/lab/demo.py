"""The demo: timers of a stock kernel in virtual time, ours beside the kernel's.

Every figure it prints is from the run it has just made. They repeat to the byte, for the guest's
time is made of its instructions; what may differ (progress, wall time) goes to standard error.
"""

import sys
import time

from . import build, figures, kernels, virtual
from .progress import say
from .result import Result

SERIES = "6.1"
SHOTS = 3000  # of each timer
MIN_NS, MAX_NS = 20_000, 2_000_000_000
TIMERS = ("apic_timer_exact", "apic_timer_raw", "hrtimer_hard", "timer_list")
MODULES = ("apic_timer", "apic_timer_sample", "apic_timer_bench", "apic_timer_bench_ours")

SCRIPT = f"""
mark() {{ echo "@demo@ $1"; }}
bench=/sys/kernel/debug/apic_timer_bench

insmod $MODULES/apic_timer.ko
mark source
dmesg | grep 'apic_timer: source'

insmod $MODULES/apic_timer_sample.ko
sleep 1
rmmod apic_timer_sample
mark sample
dmesg | grep 'apic_timer_sample:'

insmod $MODULES/apic_timer_bench.ko
insmod $MODULES/apic_timer_bench_ours.ko
for timer in {" ".join(TIMERS)}; do
	echo "$timer octaves {SHOTS} {MIN_NS} {MAX_NS} 1" > $bench/run
	put $timer < $bench/samples
done

mark trace
trace-cmd record -q -o /tmp/trace.dat -e apic_timer \\
	sh -c "echo apic_timer_exact uniform 1 200000 200000 1 > $bench/run" > /tmp/log 2>&1 ||
	cat /tmp/log
trace-cmd report -q -i /tmp/trace.dat 2>/dev/null

mark lead
cat /sys/kernel/debug/apic_timer/lead

mark stats
cat /sys/kernel/debug/apic_timer/stats
"""


def main() -> int:
    """Run the demo. Return an exit code: 0 only when all of it worked. May raise LabError."""
    started = time.monotonic()
    say("demo", f"kernel: Debian's {SERIES} (downloaded once)")
    kernel = kernels.ensure(SERIES)
    say("demo", f"building the modules for {kernel.release}")
    built = build.build(kernel)
    say("demo", "booting it in virtual time: 1 instruction = 1 TSC cycle = 1 ns")
    modules = [build.find_ko(built, name) for name in MODULES]
    result = virtual.run(kernel, SCRIPT, modules=modules, timeout=1200)
    if not result.ok:
        print(f"demo: {result.verdict}\n{result.output}\n{result.kernel_log}", file=sys.stderr)
        return 1

    _print(kernel.release, result)
    say("demo", f"done in {time.monotonic() - started:.0f} s")
    return 0


def _print(release: str, result: Result) -> None:
    parts = dict(part.split("\n", 1) for part in result.output.split("@demo@ ")[1:])
    samples = {name: figures.decode(result.files[name]) for name in TIMERS}
    print(f"apic-timer on a stock {release}, in virtual time\n")
    print(_messages(parts["source"]))
    print("A sample consumer (samples/):\n")
    print(_messages(parts["sample"]))
    print(
        f"Error: TSC at the handler's first instruction - moment wanted, in cycles (= ns here).\n"
        f"{SHOTS:,} shots of each timer at random distances from 20 us to 2 s, same boot.\n"
        f"Mode exact is armed early by what was learnt and waits on the TSC; raw is the control:\n"
        f"armed at its moment, nothing corrected.\n"
    )
    print(figures.histograms(samples) + "\n\n" + figures.table(samples) + "\n")
    print("One shot, 200 us away, as `trace-cmd report` shows it:\n")
    print(parts["trace"])
    print("/sys/kernel/debug/apic_timer/lead:\n")
    print(parts["lead"])
    print("/sys/kernel/debug/apic_timer/stats:\n")
    print(parts["stats"], end="")


def _messages(lines: str) -> str:
    """Kernel messages without their time stamps."""
    return "".join(f"    {line.split('] ', 1)[-1]}\n" for line in lines.splitlines())
