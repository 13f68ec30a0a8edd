"""The demo: timers on a stock kernel in virtual time, ours next to the kernel's.

Every figure that it prints is from the run just made. Figures repeat to the byte, because the
guest's time consists of its instructions. Output that may differ (progress, wall time) goes to
standard error.
"""

import sys
import time
from collections import Counter
from typing import NamedTuple

from ..base.progress import say
from ..bench import figures
from ..build import build, user
from ..engines import virtual
from ..kernels import kernels

SERIES = "6.1"
SHOTS = 3000  # of each timer
WARM_UP = 2000  # sleeps of a thread from which the device learns, before those that count
MIN_NS, MAX_NS = 20_000, 2_000_000_000
TIMERS = {
    "apic_timer_exact": "the default: armed early, then waits on the TSC; never early",
    "apic_timer_raw": "the control: armed at its expiry, nothing corrected",
    "hrtimer_hard": "the kernel's hrtimer at its best: HRTIMER_MODE_ABS_PINNED_HARD",
    "timer_list": "the kernel's ordinary timer, one tick (4 ms) at best",
}
# Ways in which threads of tests/user/latency.c sleep until a TSC value, and its names for them.
THREADS = {
    "apic_timer_dev": "device",
    "clock_nanosleep": "nanosleep",
}
THREAD_MAX_NS = 1_020_000
WHERE_TO_GO_ON = """\
Where to go on:
  make demo VERBOSE=1             also the trace of one expiry, the log and the counters
  docs/tutorial/first-timer.md    write a module that uses such a timer
  docs/results/                   more timers, loads, periods and costs: what `make bench` found
  sudo make install               install it on this machine, by DKMS"""
MODULES = ("apic_timer", "apic_timer_sample", "apic_timer_bench", "apic_timer_bench_ours",
           "apic_timer_dev")  # fmt: skip

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

insmod $MODULES/apic_timer_dev.ko
for thread in {" ".join(f"{name}:{how}" for name, how in THREADS.items())}; do
	latency ${{thread#*:}} {SHOTS} {MIN_NS} {THREAD_MAX_NS} 1 {WARM_UP} >/tmp/errors
	put ${{thread%:*}} </tmp/errors
done

mark lead
cat /sys/kernel/debug/apic_timer/lead

mark stats
cat /sys/kernel/debug/apic_timer/stats
"""


class Found(NamedTuple):
    """Results of one boot of the demo."""

    release: str
    parts: dict[str, str]  # the script's output, by its marks
    samples: dict[str, Counter[int]]  # errors in TSC cycles, by timer


def main(*, verbose: bool = False) -> int:
    """Run the demo. Return an exit code: 0 only if all of it worked. May raise LabError.

    verbose: also print the log, the trace of an expiry and the counters
    """
    started = time.monotonic()
    found = measure()
    if found is None:
        return 1
    print(text(found, verbose=verbose), end="")
    say("demo", f"done in {time.monotonic() - started:.0f} s")
    return 0


def measure() -> Found | None:
    """Boot the guest; None, with the reason on standard error, if it fails."""
    say("demo", f"kernel: Debian's {SERIES} (downloaded once)")
    kernel = kernels.ensure(SERIES)
    say("demo", f"building the modules for {kernel.release}")
    built = build.build(kernel)
    say("demo", "booting it in virtual time: 1 instruction = 1 TSC cycle = 1 ns")
    modules = [build.find_ko(built, name) for name in MODULES]
    files = {"usr/bin/latency": user.program(kernel, "latency")}
    result = virtual.run(kernel, SCRIPT, modules=modules, files=files, timeout=1200)
    if not result.ok:
        print(f"demo: {result.verdict}\n{result.output}\n{result.kernel_log}", file=sys.stderr)
        return None
    parts = dict(part.split("\n", 1) for part in result.output.split("@demo@ ")[1:])
    samples = {name: figures.decode(result.files[name]) for name in (*TIMERS, *THREADS)}
    return Found(kernel.release, parts, samples)


def text(found: Found, *, verbose: bool = False) -> str:
    """Return the demo's text: the table, the histograms, and further reading."""
    head = (
        f"apic-timer on Debian's unpatched {found.release}, in virtual time (1 cycle = 1 ns).\n\n"
        "Error of each timer: when its handler started - when it should have, in TSC cycles.\n"
        f"{SHOTS:,} expiries each, {MIN_NS // 1000} us to {MAX_NS // 10**9} s ahead, all in the"
        " same boot:\n\n"
    )
    legend = "\n".join(f"  {name:<18}{what}" for name, what in TIMERS.items())
    # timer_list is too far off to show next to the others.
    near = {name: found.samples[name] for name in TIMERS if name != "timer_list"}
    timers = {name: found.samples[name] for name in TIMERS}
    threads = {name: found.samples[name] for name in THREADS}
    parts = [
        head + figures.table(timers) + "\n\n" + legend,
        f"{_conclusion(found)}\n\n"
        "How often each error occurred (bars by the logarithm):\n\n" + figures.histograms(near),
        "The same of programs up to 1 ms ahead: first instruction after a sleep, SCHED_FIFO:\n"
        + figures.table(threads),
    ]
    if verbose:
        parts += _details(found)
    else:
        parts.append(WHERE_TO_GO_ON)
    return "\n\n".join(parts) + "\n"


def _conclusion(found: Found) -> str:
    ours, theirs = (figures.summary(found.samples[n]) for n in ("apic_timer_exact", "hrtimer_hard"))
    return (f"Of 1,000 handlers 999 start within {ours['p999']:,} ns of their expiry; by hrtimer "
            f"within {theirs['p999']:,} ns.")  # fmt: skip


def _details(found: Found) -> list[str]:
    return [
        "Kernel log when the module is loaded:\n\n" + messages(found.parts["source"]),
        "The sample consumer, samples/apic_timer_sample.c:\n\n" + messages(found.parts["sample"]),
        "One expiry, 200 us ahead, as `trace-cmd report` shows it:\n\n"
        + found.parts["trace"].rstrip(),
        "/sys/kernel/debug/apic_timer/lead:\n\n" + found.parts["lead"].rstrip(),
        "/sys/kernel/debug/apic_timer/stats:\n\n" + found.parts["stats"].rstrip(),
    ]


def messages(lines: str) -> str:
    """Return kernel messages without their time stamps."""
    return "\n".join(f"    {line.split('] ', 1)[-1]}" for line in lines.splitlines())
