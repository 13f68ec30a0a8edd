"""The accuracy modes on real kernels: their parameters, receipts and latency requests."""

import re

import pytest
from machines import Machine, some

RECEIPT = re.compile(r"apic_timer_receipt: .* error=(-?\d+) spin=(-?\d+) .* mode=(\w+) ")

# A hundred shots in each mode, with a receipt for each.
SHOTS = """
    load apic_timer {parameters}
    load apic_timer_bench
    load apic_timer_bench_ours
    echo 4096 >$TRACING/buffer_size_kb
    echo >$TRACING/trace
    echo 1 >$TRACING/events/apic_timer/apic_timer_receipt/enable
    for mode in raw mean exact; do
        echo "apic_timer_$mode uniform 100 20000 200000 1" >$DEBUG/apic_timer_bench/run
    done
    echo 0 >$TRACING/events/apic_timer/apic_timer_receipt/enable
    grep -v '^#' $TRACING/trace
    unload
"""


@pytest.mark.guest(some(source="proxy"), SHOTS.replace("{parameters}", ""), brief=True)
def test_receipts(guest):
    """Each shot has one, with its mode; neither exact nor raw shots are early."""
    found = [(m[3], int(m[1]), int(m[2])) for m in RECEIPT.finditer(guest.ok())]
    for mode in ("raw", "mean", "exact"):
        errors = sorted(error for name, error, _ in found if name == mode)
        assert len(errors) == 100
        if mode != "mean":
            assert errors[0] >= 0
        if guest.machine.engine == "virtual" and mode == "exact":
            assert errors[98] <= 3
        if guest.machine.engine == "virtual" and mode == "mean":
            assert -100 < errors[50] < 100


@pytest.mark.guest(
    some(kernel="6.1", engine="virtual", cpus=1, source="proxy"),
    """
    unload
    load apic_timer mode=raw
    grep mode $DEBUG/apic_timer/info
    load apic_timer_selftest
    echo 1 >$TRACING/events/apic_timer/apic_timer_receipt/enable
    echo one_shot >$DEBUG/apic_timer_selftest/run
    echo 0 >$TRACING/events/apic_timer/apic_timer_receipt/enable
    grep apic_timer_receipt: $TRACING/trace
    unload
    """,
)
def test_default_mode(guest):
    """A timer without flags has the mode set by the parameter."""
    output = guest.ok()
    assert "default mode: raw" in output
    assert " mode=raw " in output


@pytest.mark.guest(
    [Machine("6.1", 2, engine="virtual", append="nohz_full=1", matrix=True)],
    """
    unload
    load apic_timer
    load apic_timer_bench
    load apic_timer_bench_ours
    shots() {
        echo "$1"
        echo >$TRACING/trace
        echo 1 >$TRACING/events/apic_timer/apic_timer_receipt/enable
        echo "echo apic_timer_mean uniform 200 20000000 20000000 1 \
            >$DEBUG/apic_timer_bench/run" | taskset -c 1 sh
        echo 0 >$TRACING/events/apic_timer/apic_timer_receipt/enable
        grep apic_timer_receipt: $TRACING/trace
    }
    shots idle
    taskset -c 1 sh -c 'while :; do :; done' & busy=$!
    sleep 1
    shots busy
    kill $busy
    wait $busy || true
    unload
    """,
)
def test_mean_without_tick(guest):
    """Errors centre on 0 both on an idle CPU, whose tick is stopped, and under a lone thread."""
    idle, _, busy = guest.ok().partition("busy\n")
    for part, state in ((idle, "stopped"), (busy, "busy")):
        found = re.findall(r" error=(-?\d+) .* cpu_state=(\w+)", part)
        errors = sorted(int(error) for error, seen in found[50:] if seen == state)
        print(state, len(errors), errors[:3], errors[len(errors) // 2 :][:1], errors[-3:])
        assert len(errors) > 100
        assert -50 < errors[len(errors) // 2] < 50


BAD = {
    "mode": ("mode=sloppy", 'unknown mode "sloppy"'),
    "empty_mode": ("mode=", 'unknown mode ""'),
}


@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    "\n".join(f"unload; load apic_timer {text} || echo refused {name}; tick_devices"
              for name, (text, _) in BAD.items()) + "\nlog\n",
)  # fmt: skip
def test_bad_parameters(guest):
    """Rejected with a line that gives the reason, and the tick device is as before."""
    output = guest.ok()
    for name, (_, message) in BAD.items():
        assert f"refused {name}\nlapic\n" in output
        assert f"apic_timer: {message}\n" in output


# Current latency requests to the kernel, per CPU and, for all, by /dev/cpu_dma_latency.
LATENCY = """
    latency() {
        echo "$1" $(od -A n -t d4 -N 4 /dev/cpu_dma_latency) \
            $(sed -n 's/latency requests: //p' $DEBUG/apic_timer/info)
    }
    unload
    load apic_timer {parameters}
    load apic_timer_bench
    load apic_timer_bench_ours
    latency before
    (sleep 0.5; latency far; sleep 2.47; latency near; sleep 0.4; latency gone) &
    echo "apic_timer_exact uniform 1 3000000000 3000000000 1" >$DEBUG/apic_timer_bench/run
    wait
    echo "apic_timer_exact uniform 1 40000000 40000000 1" >$DEBUG/apic_timer_bench/run &
    sleep 0.02
    latency near_again
    wait
    echo "apic_timer_raw uniform 1 80000000 80000000 1" >$DEBUG/apic_timer_bench/run &
    sleep 0.5
    wait
    latency raw
    unload
"""
FREE = "2000000000 "  # us: no request for all CPUs


def requests(output: str) -> dict[str, str]:
    """Read rows of a name and the requests at that time, none of them for all CPUs."""
    rows = dict(row.split(maxsplit=1) for row in output.splitlines())
    assert all(row.startswith(FREE) for row in rows.values())
    return {name: row.removeprefix(FREE) for name, row in rows.items()}


def judge_requests(output: str, request: str) -> None:
    rows = requests(output)
    assert len(rows) == 6
    for name, row in rows.items():
        assert row == (request if name in ("near", "near_again") else "none"), name


@pytest.mark.guest(
    some(engine="virtual", cpus=1, source="proxy"), LATENCY.replace("{parameters}", "")
)
def test_latency_request(guest):
    """Made while an exact shot is near, for the latency that 5 us of spin permit, and withdrawn."""
    judge_requests(guest.ok(), "cpu 0 4 us")


PARAMETERS = {
    "defer_ns=0": "cpu 0 4 us",  # independent of deferring the kernel's events
    "latency_qos_us=7": "cpu 0 7 us",
    "spin_budget_ns=30000": "cpu 0 29 us",
    "latency_qos_us=0": "cpu 0 0 us",
    "latency_qos=N": "none",
}


@pytest.mark.long
@pytest.mark.guest(
    some(kernel="6.1", engine="virtual", cpus=1, source="proxy"),
    "\n".join(f"echo '{text}'\n{LATENCY.replace('{parameters}', text)}" for text in PARAMETERS),
)
def test_latency_request_as_asked_for(guest):
    output = guest.ok()
    for text, request in PARAMETERS.items():
        before, _, output = output.partition(f"{text}\n")
        assert not before
        part = "".join(output.splitlines(keepends=True)[:6])
        output = output.removeprefix(part)
        judge_requests(part, request)


@pytest.mark.guest(
    some(engine="virtual", cpus=1, source="proxy"),
    """
    unload
    load apic_timer mode=raw
    # Most of the time one of these is the head.
    load apic_timer_busy rate=1000
    load apic_timer_bench
    load apic_timer_bench_ours
    power=$TRACING/events/power
    echo >$TRACING/trace
    echo 1 >$power/dev_pm_qos_add_request/enable
    echo 1 >$power/dev_pm_qos_remove_request/enable
    echo "apic_timer_exact uniform 60 20000000 20000000 1" >$DEBUG/apic_timer_bench/run
    sleep 0.3
    echo 0 >$power/dev_pm_qos_add_request/enable
    echo 0 >$power/dev_pm_qos_remove_request/enable
    grep -o 'dev_pm_qos.*_request: .*' $TRACING/trace
    unload
    """,
)
def test_latency_request_stands(guest):
    """Exact timers behind others: one request lasts from before the first to after the last."""
    asked, taken_back = guest.ok().splitlines()
    what = "device=cpu0 type=DEV_PM_QOS_RESUME_LATENCY new_value="
    assert asked == f"dev_pm_qos_add_request: {what}4"
    assert taken_back.startswith(f"dev_pm_qos_remove_request: {what}")


# One exact shot every half second, on the last CPU.
IDLE = """
    unload
    load apic_timer {parameters}
    # One CPU shows what waking costs, several which states they are in.
    load apic_timer_idle exit_us=$((CPUS == 1 ? 133 : 0))
    load apic_timer_busy rate=2 only=$((CPUS - 1))
    states() {
        for cpu in $(seq 0 $((CPUS - 1))); do
            echo $cpu $(cat /sys/devices/system/cpu/cpu$cpu/cpuidle/state?/time)
        done
    }
    sleep 0.5
    echo reset >$DEBUG/apic_timer/errors
    states
    sleep 1.5
    states
    cat $DEBUG/apic_timer/errors
    unload
"""


def idle(output: str, cpus: int) -> tuple[list[list[float]], list[int]]:
    """Read the shares of 1.5 s in polling, a shallow and a deep state, by CPU; and the errors."""
    rows = [row.split() for row in output.splitlines()]
    before, after = rows[:cpus], rows[cpus : 2 * cpus]
    shares = [[(int(b) - int(a)) / 1.5e6 for a, b in zip(x[1:], y[1:], strict=True)]
              for x, y in zip(before, after, strict=True)]  # fmt: skip
    errors = [int(error.partition("..")[0]) for error, number in rows[2 * cpus + 1 :]
              for _ in range(int(number))]  # fmt: skip
    return shares, errors


@pytest.mark.long
@pytest.mark.guest(some(engine="virtual", source="proxy"), IDLE.replace("{parameters}", ""))
def test_idle_states(guest):
    """Only the shot's CPU is kept awake, only near the shot; none must poll; the shot is exact."""
    shares, errors = idle(guest.ok(), guest.machine.cpus)
    for cpu, (polling, shallow, deep) in enumerate(shares):
        assert polling < 0.01
        assert deep > 0.7
        if cpu == guest.machine.cpus - 1:
            assert 0.05 < shallow < 0.25
    if guest.machine.cpus == 1:
        assert max(errors) < 100


@pytest.mark.long
@pytest.mark.guest(
    some(kernel="6.1", engine="virtual", cpus=1, source="proxy"),
    IDLE.replace("{parameters}", "latency_qos=N"),
)
def test_idle_states_without_request(guest):
    """Shots find their CPU in the deep state, or leaving it, and are late by that.

    An event of the kernel may have begun to wake it: for all of them, if it comes as regularly.
    """
    shares, errors = idle(guest.ok(), guest.machine.cpus)
    assert shares[0][2] > 0.95
    assert len(errors) >= 3 and sorted(errors)[1] >= 8192
    assert max(errors) >= 32768


@pytest.mark.guest(
    some(kernel="6.1", cpus=2, source="proxy"),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=100 only=1
    requests() { echo "$1" $(sed -n 's/latency requests: //p' $DEBUG/apic_timer/info); }
    # It is the kernel's worker that makes them.
    only_by() { requests of | grep -q "^of cpu $1 [0-9]* us$"; }
    online=/sys/devices/system/cpu/cpu1/online
    for i in 1 2 3; do
        patiently only_by 1 || true
        requests on
        echo 0 >$online
        patiently only_by 0 || true
        requests off
        echo 1 >$online
        rmmod apic_timer_busy
        load apic_timer_busy rate=100 only=1
    done
    unload
    log | grep -e 'unknown object' -e WARNING: || echo no warnings
    """,
    brief=True,
)
def test_latency_request_and_hotplug(guest):
    """The request of a CPU ends when it goes offline; the migrated timer makes another.

    A request is for the spin budget, 5 us, minus the CPU's lead, rounded down.
    """
    *rows, warnings = guest.ok().splitlines()
    assert warnings == "no warnings"
    found = [re.fullmatch(r"(on|off) cpu (\d) (\d+) us", row) for row in rows]
    assert all(found), rows
    assert [match.group(1, 2) for match in found] == [("on", "1"), ("off", "0")] * 3
    assert all(int(match[3]) <= 4 for match in found)


@pytest.mark.guest(
    some(engine="virtual", cpus=1, source="proxy"),
    """
    unload
    for ns in 0 20000; do
        load apic_timer defer_ns=$ns
        load apic_timer_bench
        load apic_timer_bench_ours
        echo "timers 1" >$DEBUG/apic_timer_bench/load
        echo "apic_timer_exact uniform 1000 20000 120000 1" >$DEBUG/apic_timer_bench/run
        echo $ns $(awk '$1 == "deferred" { print $2 }' $DEBUG/apic_timer/stats) \\
            $(awk '$1 == "kernel_events" { print $2 }' $DEBUG/apic_timer/stats)
        unload
    done
    """,
    brief=True,
)
def test_kernel_events_are_deferred(guest):
    """Some are, if exact shots are close together; none if deferring is switched off."""
    never, sometimes = (list(map(int, row.split())) for row in guest.ok().splitlines())
    assert never[1] == 0 < sometimes[1]
    assert min(never[2], sometimes[2]) > 100


# Mode 3 is exact. Leaving the interrupt and entering the next one takes about 2.5 us, plus the
# lead. Shots at 2 us would be throttled, because they leave the CPU no time, and then not waited
# for.
@pytest.mark.guest(
    some(engine="virtual", cpus=1, source="proxy"),
    """
    count() {
        awk '$1 == "expired" || $1 == "interrupts" { print $2 }' $DEBUG/apic_timer/stats
    }
    unload
    for ns in 0 20000; do
        load apic_timer defer_ns=$ns
        load apic_timer_bench
        load apic_timer_bench_ours
        set -- $(count)
        echo "3 2800 20" >$DEBUG/apic_timer_bench/period
        set -- $1 $2 $(count)
        echo $(($3 - $1)) $(($4 - $2))
        unload
    done
    """,
)
def test_close_shots_share_an_interrupt(guest):
    """A shot nearer than leaving and re-entering the interrupt is waited for, deferred or not."""
    print(guest.ok())
    for row in guest.ok().splitlines():
        expired, interrupts = map(int, row.split())
        assert expired > 4000
        assert interrupts < expired // 2, row


# Mode 3 is exact. The first run trains the estimate; then the lead is more than half a period.
@pytest.mark.long
@pytest.mark.guest(
    some(kernel="6.1", engine="virtual", cpus=1, source="proxy"),
    """
    unload
    load apic_timer
    load apic_timer_bench
    load apic_timer_bench_ours
    throttled() { awk '$1 == "throttled" { print $2 }' $DEBUG/apic_timer/stats; }
    for period in 10000 5000 2500; do
        # The kernel may keep interrupts off for so long that catching up looks like overload.
        for i in 1 2 3; do
            before=$(throttled)
            echo reset >$DEBUG/apic_timer/errors
            echo "3 $period 50" >$DEBUG/apic_timer_bench/period
            now=$(throttled)
            [ $now -gt $before ] || break
        done
        echo $period $((now - before)) \\
            $(awk 'NR > 1 { all += $2 } NR > 1 && $1 + 0 >= 16 { late += $2 }
                   END { print late + 0, all }' $DEBUG/apic_timer/errors)
    done
    unload
    """,
)
def test_close_periods_keep_their_beat(guest):
    """Handlers that leave time for others are not throttled, and only the tick makes them late."""
    for row in guest.ok().splitlines():
        period, throttled, late, expired = map(int, row.split())
        assert throttled == 0, row
        assert expired > 50_000_000 // period - 10, row
        assert late < expired / 50, row
