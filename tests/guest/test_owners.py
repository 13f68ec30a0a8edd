"""Timers survive other users of the LAPIC timer, of its interrupt, and of the module's code.

Each part of the script is one such user. The timers of every CPU must go on firing, and the
kernel must tick, without a warning; afterwards everything is as before.
"""

import re
import tempfile
from functools import cache
from pathlib import Path

import pytest
from lab.build import build
from lab.engines import smp
from lab.engines.result import Result
from lab.kernels import kernels

HERE = Path(__file__).resolve().parent
CPUS = 2
# Common to all parts: `firing` fails unless timers fire on every CPU.
PRELUDE = (
    (HERE.parent / "harness/guest.sh").read_text()
    + """
expired() { awk '$1 == "expired" { print $2, $3 }' $DEBUG/apic_timer/stats; }
# A CPU may be held up for all of the half second, in which each fires 250 times.
more() {
    set -- $before $(expired)
    [ $(($3 - $1)) -gt 100 ] && [ $(($4 - $2)) -gt 100 ]
}
firing() {
    before=$(expired)
    sleep 0.5
    patiently more || true
    set -- $before $(expired)
    echo without $(($3 - $1)) $(($4 - $2))
    more
}
begin() { load apic_timer; load apic_timer_busy rate=500; firing; }
[ -d $TRACING/events ] || mount -t tracefs tracefs $TRACING
"""
)
PARTS = {
    "function_tracer": """
        begin
        # All functions at once are more than an emulated machine can bear.
        echo ':mod:apic_timer' >$TRACING/set_ftrace_filter
        echo ':mod:apic_timer_busy' >>$TRACING/set_ftrace_filter
        echo function >$TRACING/current_tracer
        firing
        echo 0 >$TRACING/tracing_on
        echo traced $(head -n 2000 $TRACING/trace | grep -c periodic_handler)
        echo 1 >$TRACING/tracing_on
        # What is measured when a CPU is attached is measured under the tracer then.
        unload
        load apic_timer
        echo nop >$TRACING/current_tracer
        echo 1 >$TRACING/events/apic_timer/apic_timer_receipt/enable
        load apic_timer_busy rate=500
        firing
        echo 0 >$TRACING/events/apic_timer/apic_timer_receipt/enable
        grep 'apic_timer_receipt:' $TRACING/trace >/tmp/shots
        echo shots $(wc -l </tmp/shots)
        echo early $(grep -c 'error=-' /tmp/shots || :)
        echo >$TRACING/set_ftrace_filter
        echo >$TRACING/trace
    """,
    "kprobes": """
        begin
        for name in add_apic_timer apic_timer_dispatch apic_timer_expire_due \
                apic_timer_mux_end; do
            echo "p:ours/$name apic_timer:$name" >>$TRACING/kprobe_events
            echo "r:ours/${name}_return apic_timer:$name" >>$TRACING/kprobe_events
        done
        echo 1 >$TRACING/events/ours/enable
        firing
        echo 0 >$TRACING/events/ours/enable
        awk '{ print "hits", $1, $2 }' $TRACING/kprobe_profile
        echo >$TRACING/kprobe_events
        echo >$TRACING/trace
    """,
    "perf": """
        begin
        perf record -q -a -e cpu-clock -F 2000 -o /tmp/perf.data sleep 1
        firing
        perf report -i /tmp/perf.data --stdio 2>/dev/null | sed -n 's/^# Samples: */samples /p'
        perf stat -a -e cpu-clock,context-switches sleep 0.5 2>&1 | grep -c 'time elapsed'
    """,
    "nmi": """
        begin
        insmod $MODULES/apic_timer_nmi.ko
        echo handled $(cat /sys/module/apic_timer_nmi/parameters/handled)
        firing
        rmmod apic_timer_nmi
        grep '^refused' $DEBUG/apic_timer/stats
    """,
    "kvm": """
        begin
        for module in $STOCK; do
            insmod $MODULES/$module.ko
        done
        [ -c /dev/kvm ]
        firing
        for module in $(echo $STOCK | tr ' ' '\\n' | tac); do
            rmmod $(echo $module | tr - _)
        done
        firing
    """,
    "livepatch": """
        begin
        state=/sys/kernel/livepatch/apic_timer_livepatch
        insmod $MODULES/apic_timer_livepatch.ko
        while [ "$(cat $state/transition)" = 1 ]; do sleep 0.1; done
        firing
        echo patched $(cat /sys/module/apic_timer_livepatch/parameters/calls)
        # It doesn't keep us from going, and gets us again.
        unload
        begin
        echo 0 >$state/enabled
        while [ -d $state ]; do sleep 0.1; done
        rmmod apic_timer_livepatch
        firing
    """,
    "rival": """
        begin
        insmod $MODULES/apic_timer_rival.ko cpu=1
        echo rival $(tick_devices)
        served=$(cat /sys/module/apic_timer_rival/parameters/events)
        firing
        echo events $(($(cat /sys/module/apic_timer_rival/parameters/events) - served))
        rmmod apic_timer_rival
        echo back $(tick_devices)
        firing
    """,
    # It takes the CPU's tick when the CPU comes online, before our module does.
    "rival_online": """
        # Loaded before us, so that it is called before us.
        insmod $MODULES/apic_timer_rival.ko cpu=1 later=1
        begin
        online=/sys/devices/system/cpu/cpu1/online
        echo 0 >$online
        echo 1 >$online
        echo online $(cat $online) $(tick_devices)
        grep '^cpu 1' $DEBUG/apic_timer/info
        before=$(expired)
        sleep 0.5
        first_more() { set -- $before $(expired) && [ $(($3 - $1)) -gt 20 ]; }
        patiently first_more || true
        set -- $before $(expired)
        echo without $(($3 - $1)) $(($4 - $2))
        rmmod apic_timer_busy
        # It goes offline and online as it is.
        echo 0 >$online
        echo 1 >$online
        echo again $(cat $online) $(tick_devices)
        rmmod apic_timer_rival
        echo back $(tick_devices)
        # Without the rival, the next time is as ever.
        echo 0 >$online
        echo 1 >$online
        echo ours $(tick_devices)
        load apic_timer_busy rate=500
        firing
    """,
    # Present before our module. This is the last part: the kernel then broadcasts the tick by the
    # LAPIC's device, and has none to replace the rival's.
    "rival_first": """
        echo before $(tick_devices)
        insmod $MODULES/apic_timer_rival.ko cpu=1
        load apic_timer source=auto
        log | grep -o 'the kernel kept the tick device of CPU 1'
        log | grep -o 'source hrtimer .* serves CPUs 0-1'
        load apic_timer_busy rate=500
        firing
    """,
}


@cache
def boot(series: str) -> Result:
    """Run all parts in one guest."""
    kernel = kernels.ensure(series)
    built = build.build(kernel)
    others = build.build_external(kernel, HERE.parent / "owners", built)
    stock = kernel.own_module("kvm-amd")
    script = [f"SOURCE=proxy CPUS={CPUS} STOCK='{' '.join(Path(n).stem for n in stock)}'", PRELUDE]
    for name, part in PARTS.items():
        script.append(f"echo '@begin@ {name}'; echo '@begin@ {name}' >/dev/kmsg")
        script.append(f"(set -e\n{part}\nunload\n) 2>&1\necho '@end@ {name}' $?\nunload")
    modules = [*built.rglob("*.ko"), *others.rglob("*.ko")]
    with tempfile.TemporaryDirectory() as directory:
        for name, contents in stock.items():
            modules.append(Path(directory) / name)
            modules[-1].write_bytes(contents)
        return smp.run(kernel, "\n".join(script), modules=modules, cpus=CPUS, timeout=900)


def part(series: str, name: str) -> str:
    """Return the output of a part, which must have succeeded."""
    result = boot(series)
    found = re.search(rf"^@begin@ {name}\n(.*?)^@end@ {name} (\d+)$", result.output, re.S | re.M)
    assert found, f"{result.verdict}\n{result.output}\n{result.kernel_log[-5000:]}"
    assert found[2] == "0", found[1]
    return found[1]


def number(output: str, word: str) -> int:
    return int(re.search(rf"^{word} (\d+)", output, re.M)[1])


pytestmark = pytest.mark.matrix
series = pytest.mark.parametrize("series", ["6.1", "6.12", "7.2"])


@series
def test_all_is_as_before(series):
    result = boot(series)
    assert result.ok, f"{result.verdict}\n{result.output}\n{result.kernel_log[-5000:]}"
    devices = re.search(r"^before (.*)$", part(series, "rival_first"), re.M)[1].split()
    assert devices[:CPUS] == ["lapic"] * CPUS


@series
def test_function_tracer(series):
    """No exact shot is early after the tracer that slowed the measurement is off."""
    output = part(series, "function_tracer")
    assert number(output, "traced") > 0
    assert number(output, "shots") > 100
    assert number(output, "early") == 0


@series
def test_kprobes_on_our_functions(series):
    hits = dict(re.findall(r"^hits (\S+) (\d+)$", part(series, "kprobes"), re.M))
    assert len(hits) == 8
    assert all(int(n) > 50 for n in hits.values()), hits


@series
def test_perf(series):
    output = part(series, "perf")
    assert re.search(r"^samples [1-9]", output, re.M), output
    assert output.splitlines()[-1] == "1"


@series
def test_nmis(series):
    """Every call from an NMI handler is rejected."""
    output = part(series, "nmi")
    # While one is being served, further ones for the same CPU merge.
    assert number(output, "handled") > 500
    refused = re.search(r"^refused +(.*)$", output, re.M)[1].split()
    assert sum(map(int, refused)) == 5 * number(output, "handled")


@series
def test_kvm_module(series):
    part(series, "kvm")


@series
def test_livepatch_of_our_function(series):
    assert number(part(series, "livepatch"), "patched") > 50


@series
def test_better_clock_event_device(series):
    """The kernel uses it instead of ours, then ours again; our timers are not affected."""
    output = part(series, "rival")
    assert re.search(r"^rival apic_timer apic_timer_rival", output, re.M), output
    assert number(output, "events") > 10
    assert re.search(r"^back apic_timer apic_timer\b", output, re.M), output


@series
def test_cpu_that_cannot_be_served_comes_online(series):
    """It accepts no timers, but otherwise works: it goes offline, and is served next time."""
    output = part(series, "rival_online")
    assert re.search(r"^online 1 apic_timer apic_timer_rival\b", output, re.M), output
    # Before, both CPUs were served.
    refused = output.partition("cpu 1: does not accept timers")[2]
    fired = re.search(r"^without (\d+) (\d+)$", refused, re.M)
    assert fired, output
    assert int(fired[1]) > 20, output
    assert fired[2] == "0", output
    assert re.search(r"^again 1 apic_timer apic_timer_rival\b", output, re.M), output
    assert re.search(r"^back apic_timer lapic\b", output, re.M), output
    assert re.search(r"^ours apic_timer apic_timer\b", output, re.M), output


@series
def test_better_clock_event_device_before_us(series):
    """The module does not interpose, and reports it: hrtimers serve."""
    output = part(series, "rival_first")
    assert "the kernel kept the tick device of CPU 1" in output
    assert "source hrtimer (preferred sources unavailable)" in output
