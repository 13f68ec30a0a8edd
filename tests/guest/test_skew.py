"""Skew between the TSCs of CPUs, and handlers that start together on several CPUs."""

import re

import pytest
from clock_rows import keep
from lab.build import build
from lab.engines import bochs, virtual
from lab.kernels import kernels
from machines import some

SKEW = re.compile(
    r"^cpu (\d+): ([+-]\d+) cycles, within (-?\d+) to (-?\d+), in steps of (\d+), "
    r"by (\d+) round trips, \d+ ms ago$",
    re.M,
)
GROUP = re.compile(
    r"^group shots (\d+) complete (\d+) none (\d+) split (\d+) early (\d+) outside (\d+) "
    r"latest (-?\d+) error (\d+)(?: apart p50 (\d+) p99 (\d+) max (\d+))?$",
    re.M,
)
SINGLE = re.compile(
    r"^single shots (\d+) error (\d+) cost (\d+) apart (-?\d+) (-?\d+) (-?\d+) (-?\d+)$", re.M
)
STEPS = re.compile(r"^steps others wait p50 \d+ p99 (\d+) do not p50 \d+ p99 (\d+)$", re.M)
TRUTHS = (0, 1, 7, 50, 300, 1000, -1000, 100_000)
MOVED = (0, 1000, -1000)  # skews for the tests of handlers
FAR = 5_000_000  # a tenth of a second
DOUBTFUL = range(4, 25, 2)  # about as much skew as the bounds are wide

# While the kernel trusts the TSC, it tests CPUs that come online and restores TSC_ADJUST.
PARAMETERS = "tsc=unstable lapic=notscdeadline"
SETUP = """
    debug=/sys/kernel/debug
    insmod $MODULES/apic_timer.ko spin_budget_ns=200000 defer_ns=400000
    insmod $MODULES/apic_clock.ko
    insmod $MODULES/apic_clock_test.ko
    # It measures once by itself, a second later, which is not to fall on handlers that start.
    sleep 1.5
    test=$debug/apic_clock_test
    attempt() {
        echo write >$debug/apic_clock/skew 2>/dev/null && echo "attempt $1 done" ||
            echo "attempt $1 refused"
        grep ^adjusted $test/result
        grep "^cpu 1" $debug/apic_clock/skew
        grep ^skew $debug/apic_clock/verdict
    }
"""
INJECTED = f"""
    {SETUP}
    echo "steps 2" >$test/command
    grep ^steps $test/result
    for cycles in {" ".join(map(str, TRUTHS))}; do
        echo "adjust 1 0 $cycles" >$test/command
        echo measure >$debug/apic_clock/skew
        echo "truth $cycles"
        cat $debug/apic_clock/skew
    done
    for cycles in {" ".join(map(str, MOVED))}; do
        echo "adjust 1 0 $cycles" >$test/command
        echo measure >$debug/apic_clock/skew
        for flags in 1 3; do
            echo "group 2 $flags 300" >$test/command
            echo "apart $cycles flags $flags"
            grep ^group $test/result
        done
        echo "single 1 0 300" >$test/command
        grep ^single $test/result
    done
    cat $debug/apic_clock/verdict
    # CPU 1 is 1000 behind.
    echo "later 0 0 3600000" >$test/command
    attempt pending
    echo "cancel 0" >$test/command
    attempt behind
    attempt again
    echo "group 2 0 300" >$test/command
    echo "written"
    grep ^group $test/result
    for cycles in {" ".join(map(str, DOUBTFUL))} {FAR} -{FAR}; do
        echo "adjust 1 0 $cycles" >$test/command
        attempt $cycles
    done
    dmesg | grep TSC_ADJUST
    cat $debug/apic_clock/resync
    taskset 2 sleep 1
"""


def in_bochs(script: str, **options) -> str:
    """Run a script in Bochs with the tree's modules, and return its output."""
    kernel = kernels.ensure("6.1")
    modules = sorted(build.build(kernel).rglob("*.ko"))
    result = bochs.run(kernel, script, modules=modules, timeout=3600, **options)
    print(result.output)
    assert result.ok, result.verdict
    return result.output


@pytest.fixture(scope="module")
def injected() -> str:
    """Run with known skew in Bochs, where writing TSC_ADJUST moves the TSC; return the output."""
    return in_bochs(INJECTED, cpus=2, tsc_adjust=True, append=PARAMETERS)


def _expect_steps(output: str, cpus: int, latest: int) -> None:
    """Check that the loop alone makes a CPU as late as a group once other CPUs have left it."""
    wait, leave = map(int, STEPS.search(output).groups())
    keep(f"group/{cpus}/steps", others_wait=wait, others_leave=leave)
    assert wait <= 4 and latest <= leave


@pytest.mark.matrix
def test_injected(injected):
    """Bounds contain the injected offset, and groups start together in spite of it."""
    rows = SKEW.findall(injected.split("apart ")[0])
    assert len(rows) == len(TRUTHS)
    errors = [int(row[1]) - truth for truth, row in zip(TRUTHS, rows, strict=True)]
    keep("skew/injected", error=max(map(abs, errors)),
         width=max(int(high) - int(low) for _, _, low, high, *_ in rows))  # fmt: skip
    for truth, (_, offset, low, high, _, _) in zip(TRUTHS, rows, strict=True):
        assert int(low) <= truth <= int(high)
        assert int(high) - int(low) <= 25
        # Bochs runs its CPUs in turn, which makes all measurements of a boot 2 to 4 cycles too
        # low.
        assert abs(int(offset) - truth) <= 4
    groups = GROUP.findall(injected.split("attempt ")[0])
    assert len(groups) == 2 * len(MOVED)
    corrected = [tuple(map(int, row[-3:])) for row in groups[::2]]
    p50, p99, most = (max(numbers) for numbers in zip(*corrected, strict=True))
    keep("group/2", p50=p50, p99=p99, max=most)
    _expect_steps(injected, 2, p99)
    for number, row in enumerate(groups):
        shots, complete, none, split, early, outside, *_, p99, _most = map(int, row)
        assert (shots, complete + none, split, early, outside) == (300, 300, 0, 0, 0)
        assert complete >= 295
        # A handler's own wait loop has coarser steps than the core's.
        assert p99 <= (16 if number % 2 else 6)
    # This kernel was booted with a parameter that makes it distrust the TSC.
    assert "verdict untrusted\n" in injected


@pytest.mark.matrix
def test_converted(injected):
    """A timer on the other CPU starts when the reference CPU's TSC reads its moment."""
    rows = SINGLE.findall(injected)
    assert len(rows) == len(MOVED)
    off = [[int(number) - truth for number in row[3:]]
           for truth, row in zip(MOVED, rows, strict=True)]  # fmt: skip
    keep("skew/converted", p50=max(abs(p50) for _, p50, _, _ in off),
         p99=max(max(-least, p99) for least, _, p99, _ in off),
         max=max(most for *_, most in off))  # fmt: skip
    for truth, row in zip(MOVED, rows, strict=True):
        shots, error, _cost, least, p50, p99, _most = map(int, row)
        assert shots == 300
        assert error <= 25
        # By this CPU's TSC, which is ahead by the injected offset.
        assert abs(p50 - truth) <= 5
        assert -10 <= least - truth
        assert p99 - truth <= 10


@pytest.mark.matrix
def test_written(injected):
    """Skew is removed from the TSC if it is certain and no timer is pending; otherwise it stays."""
    attempts = re.findall(
        r"^attempt (\S+) (done|refused)\nadjusted 0 (-?\d+)\n"
        r"cpu 1: ([+-]\d+) cycles, within (-?\d+) to (-?\d+), .*\nskew .*; 0 is (\w+)$",
        injected,
        re.M,
    )
    found = {name: (what, *map(int, numbers), zero) for name, what, *numbers, zero in attempts}
    assert list(found) == ["pending", "behind", "again", *map(str, DOUBTFUL), str(FAR), str(-FAR)]
    what, adjusted, skew, _, _, zero = found["pending"]
    assert (what, adjusted, zero) == ("refused", -1000, "excluded")
    assert abs(skew + 1000) <= 3
    for name in ("behind", "again", str(FAR), str(-FAR)):
        what, adjusted, skew, _, _, zero = found[name]
        assert (what, zero) == ("done", "possible"), name
        # By the register's value, and by measurement.
        assert abs(adjusted) <= 3, name
        assert abs(skew) <= 3, name
    for truth in DOUBTFUL:
        what, adjusted, skew, low, high, zero = found[str(truth)]
        if what == "refused":
            # There is skew, but a write could leave more than there is now.
            assert (adjusted, zero) == (truth, "excluded")
            assert max(high - skew, skew - low) >= low > 0, truth
        else:
            # It was written, or there is no certain skew.
            assert abs(adjusted) <= 3 or adjusted == truth, truth
            assert low <= 0 <= high, truth
    assert len({found[str(truth)][0] for truth in DOUBTFUL}) == 2
    for words in ("timers pending on CPUs 1", "a write could increase the skew",
                  "no CPU's TSC is certain to differ"):  # fmt: skip
        assert words in injected
    # Groups without correction start together now.
    (row,) = GROUP.findall(injected.split("written\n")[1])
    shots, complete, _none, split, early, outside, *_, p50, _p99, _most = map(int, row)
    assert (shots, complete, split, early, outside) == (300, 300, 0, 0, 0)
    assert p50 <= 6


FOUR = f"""
    {SETUP}
    echo measure >$debug/apic_clock/skew
    cat $debug/apic_clock/skew
    # What each CPU subtracts for the call of a handler, and the steps that its TSC counts in.
    grep -o '^cpu .:\\|call .*' $debug/apic_timer/lead
    echo "steps 4" >$test/command
    grep ^steps $test/result
    for flags in 0 1 3; do
        echo "group 4 $flags 300" >$test/command
        grep ^group $test/result
    done
"""
# By flags: none, skew corrected, and the same with all-or-none.
APART = {0: 8, 1: 8, 3: 8}

RINGS = 12
RING = f"""
    debug=/sys/kernel/debug
    insmod $MODULES/apic_timer.ko
    insmod $MODULES/apic_clock.ko skew_period_s=0
    insmod $MODULES/apic_clock_test.ko
    # It measures once by itself, a second later.
    sleep 1.5
    # CPUs of virtual time run in turn, and now and then do not meet: that is no answer.
    measured() {{
        for attempt in 1 2 3 4 5 6 7 8; do
            answer=$(echo measure 2>&1 >$debug/apic_clock/skew) || true
            case $answer in *"timed out"*) ;; *) break ;; esac
        done
        echo "measured: $answer"
    }}
    measured
    for n in $(seq {RINGS}); do
        echo "ring 1" >$debug/apic_clock_test/command
        measured
    done
    grep ^rings $debug/apic_clock_test/result
    cat $debug/apic_clock/skew $debug/apic_clock/verdict
    echo closed
    measured
    cat $debug/apic_clock/skew $debug/apic_clock/verdict
    dmesg | grep apic_clock:
"""


@pytest.mark.long
def test_ring():
    """Distances that do not fit together give the caller an error, and the log a few lines."""
    kernel = kernels.ensure("6.1")
    modules = sorted(build.build(kernel).rglob("apic_*.ko"))
    output = virtual.run(kernel, RING, modules=modules, cpus=3, timeout=900).check().output
    print(output)
    answers = re.findall(r"^measured: (.*)$", output, re.M)
    assert answers[0] == answers[-1] == "" and len(answers) == RINGS + 2
    assert all("Stale file handle" in answer for answer in answers[1:-1])
    before, after = output.split("closed\n")
    # Each measurement found a ring that does not close; the first one found one that does.
    assert re.search(r"^rings \d+ left 0$", before, re.M)
    # The distance of the CPU that was measured second cannot be relied on.
    assert "cpu 2: not known (-116)\n" in before
    assert "unknown for 1 (1 contradictory)" in before
    assert "\nverdict untrusted\n" in before
    # At most ten an hour.
    assert len(re.findall(r"CPUs 0, 1 and 2: the measured differences of their TSCs "
                          r"contradict each other", after)) == 10  # fmt: skip
    rows = SKEW.findall(after)
    assert [row[0] for row in rows] == ["1", "2"]
    assert all(int(low) <= 0 <= int(high) for _, _, low, high, *_ in rows)
    assert "(0 contradictory)" in after


@pytest.mark.matrix
def test_four_together():
    """Handlers on four CPUs start within some cycles of each other."""
    output = in_bochs(FOUR, cpus=4, tsc_adjust=True, append=PARAMETERS)
    rows = SKEW.findall(output)
    assert len(rows) == 3
    for _, offset, low, high, _, _ in rows:
        assert int(low) <= 0 <= int(high)
        assert abs(int(offset)) <= 3
    groups = GROUP.findall(output)
    assert len(groups) == len(APART)
    latest = 0
    for (flags, limit), row in zip(APART.items(), groups, strict=True):
        shots, complete, none, split, early, outside, _, _, p50, p99, most = map(int, row)
        keep("group/4" if flags == 1 else f"group/4/{flags}", p50=p50, p99=p99, max=most)
        assert (shots, complete + none, split, early, outside) == (300, 300, 0, 0, 0)
        assert complete >= 295
        assert p50 <= limit
        # An interrupt of the kernel can delay a handler in any mode.
        assert not flags or p99 <= limit
        latest = max(latest, p99 if flags else 0)
    _expect_steps(output, 4, latest)


THREE = f"""
    {SETUP}
    # The kernel, which trusts the TSC, writes back what was there when a CPU becomes idle.
    measured() {{
        for attempt in 1 2 3 4 5; do
            for ahead in "1 0 1000" "2 0 -700"; do echo "adjust $ahead" >$test/command; done
            [ -z "$1" ] || echo "$1" >$test/command
            answer=$(echo measure 2>&1 >$debug/apic_clock/skew) || true
            cat $debug/apic_clock/skew $debug/apic_clock/verdict >/tmp/found
            grep -q "^adjusted 0 1000 $2" $test/result && break
        done
        echo "measured: $answer"
        grep ^adjusted $test/result
        cat /tmp/found
    }}
    measured "" -700
    measured "move 2 5000" 4300
    measured "" -700
"""


@pytest.mark.matrix
def test_ring_of_three():
    """Truly different TSCs of three CPUs fit together until one of them moves."""
    output = in_bochs(THREE, cpus=3, tsc_adjust=True, append="lapic=notscdeadline")
    parts = output.split("measured: ")[1:]
    assert len(parts) == 3
    for part, last in zip(parts, (-700, 4300, -700), strict=True):
        assert f"\nadjusted 0 1000 {last}\n" in part
    for part in parts[::2]:
        assert part.startswith("\n")
        rows = SKEW.findall(part)
        assert [row[0] for row in rows] == ["1", "2"]
        for truth, (_, offset, low, high, _, _) in zip((1000, -700), rows, strict=True):
            assert int(low) <= truth <= int(high)
            assert abs(int(offset) - truth) <= 3
        assert "(0 contradictory); 0 is excluded\n" in part
        assert "\nverdict corrected: " in part
    moved = parts[1]
    assert "Stale file handle" in moved
    assert "\ncpu 2: not known (-116)\n" in moved
    assert "\nreason TSCs moved while their skew was measured\nverdict untrusted\n" in moved


TRUSTED = f"""
    {SETUP}
    for cycles in 0 1000; do
        echo "adjust 1 0 $cycles" >$test/command
        echo measure >$debug/apic_clock/skew
        echo "truth $cycles"
        sed -n '/^TSC/p; /^kernel/p; /^host/p; /^reason/p; /^verdict/p' $debug/apic_clock/verdict
    done
    attempt trusted
    sleep 3
    taskset 2 sleep 1
    grep ^adjusted $test/result
    dmesg | grep -e 'TSC.ADJUST' -e 'apic_clock: TSC: '
"""


@pytest.fixture(scope="module")
def trusted() -> str:
    """Run a machine whose kernel trusts the TSC, and whose CPUs no hypervisor can move."""
    return in_bochs(TRUSTED, cpus=2, tsc_adjust=True, append="lapic=notscdeadline")


@pytest.mark.matrix
def test_verdicts_of_a_good_machine(trusted):
    """The verdict is exact until a TSC is moved, then corrected."""
    first, moved = trusted.split("attempt ")[0].split("truth ")[1:]
    for part in (first, moved):
        assert "\nTSC constant, never stops; " in part
        assert "\nkernel trusts the TSC; " in part
        assert "\nhost none\n" in part
    within = r"\nverdict (\w+): moments on two CPUs are the same within (\d+) cycles\n"
    found = [re.search(within, part).groups() for part in (first, moved)]
    assert [verdict for verdict, _ in found] == ["exact", "corrected"]
    # Each of the two CPUs may be off by its bounds.
    assert int(found[0][1]) <= 50
    assert 2000 <= int(found[1][1]) <= 2050
    assert "\nreason the CPUs' TSCs are known to differ\n" in moved
    assert "apic_clock: TSC: corrected, was exact: " in trusted


@pytest.mark.matrix
def test_written_while_trusted(trusted):
    """A write is refused while the kernel trusts the TSC, because the kernel would undo it."""
    assert "attempt trusted refused\n" in trusted
    assert "the kernel trusts the TSC" in trusted
    assert re.findall(r"^adjusted .*", trusted, re.M)[-1] == "adjusted 0 0"
    assert re.search(r"TSC ADJUST differs: CPU1 .*Restoring", trusted)


STOPPED = """
    debug=/sys/kernel/debug
    insmod $MODULES/apic_timer.ko source=hrtimer
    insmod $MODULES/apic_clock.ko follow_idle=1 resync_ms=100
    insmod $MODULES/apic_clock_test.ko
    sleep 12
    for naps in 100 1000; do
        echo "stop $naps" >$debug/apic_clock_test/command
        grep ^stops $debug/apic_clock_test/result
    done
    cat $debug/apic_clock/resync
    grep "^stops .* certain" $debug/apic_clock/verdict
"""


@pytest.mark.matrix
def test_stops():
    """1,000 stops of a TSC, one in each idle state, are followed, and their errors do not add up.

    Setting the TSC back takes some cycles, always the same number, which are lost as well.
    """
    output = in_bochs(STOPPED, append="tsc=unstable clocksource=hpet lapic=notscdeadline")
    rows = re.findall(
        r"^stops (\d+) found (\d+) lost (\d+) each (-?\d+) off (\d+) back (\d+) ahead (\d+)$",
        output,
        re.M,
    )
    assert len(rows) == 2
    for naps, row in zip((100, 1000), rows, strict=True):
        stops, found, lost, each, off, back, ahead = map(int, row)
        if naps == 1000:
            keep("resync/stops", stops=stops, off=off, back=back)
        assert naps <= stops == found
        assert lost > stops * 30_000
        assert 0 <= each <= 40_000  # 1/1000 of a cycle
        assert off <= 30
        assert (back, ahead) == (0, 0)
    assert "moved 0 times" in output
    # Each stop is longer than a read of the HPET, so no reading explains it.
    certain = re.search(r"^stops (\d+) found, ahead 0 times; (\d+) of these", output, re.M)
    assert certain and int(certain[1]) >= int(certain[2]) >= 1000


EVIDENCE = re.compile(
    r"^TSC .+; counts in steps of \d+ cycles; its frequency (is|was) .+\n"
    r"kernel .+; its watchdog (is not known to watch|does not watch|has not compared|watches) "
    r"the TSC.*\n"
    r"host (none|[ -~]+: a hypervisor, which may move CPUs)\n"
    r"TSC_ADJUST .+\nskew .+\nrate .+\nraw (?:[+-]\d+ ppb|not compared with) .+\n"
    r"stops \d+ found, ahead \d+ times; \d+ of these are certain; "
    r"0 sleeps of the machine that it has not counted through\n"
    r"((?:cpu \d+: (?:no TSC_ADJUST|TSC_ADJUST -?\d+)"
    r"(?:, residue \d+ of \d+)?(?:, stops \d+, lost \d+ cycles, ahead \d+)?\n)+)"
    r"reason (.+)\nverdict (\w+)",
    re.M,
)


@pytest.mark.guest(
    some(engine=("smp", "virtual"), cpus=(2, 4), source="proxy"),
    """
    load apic_timer
    load apic_clock
    echo measure >$DEBUG/apic_clock/skew || echo failed
    cat $DEBUG/apic_clock/skew $DEBUG/apic_clock/verdict
    echo 0 >/sys/devices/system/cpu/cpu1/online
    grep 'cpu 1:' $DEBUG/apic_clock/skew
    echo 1 >/sys/devices/system/cpu/cpu1/online
    # A second after it came
    patiently sh -c '! grep "cpu 1:.*(-61)" '$DEBUG/apic_clock/skew >/dev/null
    echo writes
    for word in nonsense "" measuremeasuremeasure; do
        echo "$word" >$DEBUG/apic_clock/skew 2>/dev/null && echo accepted
    done
    # QEMU's CPUs have no TSC_ADJUST.
    echo write >$DEBUG/apic_clock/skew 2>/dev/null && echo accepted
    log | grep TSC_ADJUST
    rmmod apic_clock
    """,
    brief=True,
)
def test_bounds(guest):
    """QEMU's CPUs share one TSC: the bounds contain 0. At times threads cannot run together."""
    output = guest.ok()
    print(output)
    assert "accepted" not in output
    assert "TSC_ADJUST: not written: the CPUs do not have this register" in output
    assert "; its frequency was measured by the kernel\n" in output
    assert "(0 contradictory)" in output
    assert "cpu 1: not known (-61)\n" in output
    rows = SKEW.findall(output.split("verdict")[0])
    assert rows or guest.machine.real_time
    for _, _, low, high, _, _ in rows:
        assert int(low) <= 0 <= int(high)
    *_, cpus, reason, verdict = EVIDENCE.search(output).groups()
    assert len(cpus.splitlines()) == guest.machine.cpus
    assert verdict in ("untrusted", "bounded") and len(reason) > 10


TRACED = re.compile(
    r"apic_clock_skew: cpu=(\d+) reference=0 offset=(-?\d+) low=(-?\d+) high=(-?\d+) "
    r"quantum=\d+ residue=\d+ rounds=(\d+) ret=(-?\d+)"
)


@pytest.mark.guest(
    some(engine="virtual", cpus=2, source="proxy"),
    """
    unload
    load apic_timer
    load apic_clock reference=hpet
    load apic_clock_test
    echo trust >$DEBUG/apic_clock_test/command
    # A second after it was loaded all CPUs are measured.
    patiently grep -q "^trust calls 1 " $DEBUG/apic_clock_test/result
    echo >$TRACING/trace
    echo 1 >$TRACING/events/apic_clock/enable
    # CPUs of virtual time run in turn, and now and then do not meet: that is no answer.
    measured() {
        for attempt in 1 2 3 4 5 6 7 8; do
            answer=$(echo measure 2>&1 >$DEBUG/apic_clock/skew) || true
            case $answer in *"timed out"*) ;; *) break ;; esac
        done
        echo "measured: $answer"
    }
    insmod $MODULES/apic_timer_fail.ko symbol=apic_clock_bounds_contradict value=1 \\
        caller=apic_clock times=1000
    measured
    measured
    rmmod apic_timer_fail
    cat $DEBUG/apic_clock/skew $DEBUG/apic_clock/verdict
    measured
    echo "group 2 0 5" >$DEBUG/apic_clock_test/command
    echo compare >$DEBUG/apic_clock/resync
    echo 0 >$TRACING/events/apic_clock/enable
    sleep 0.2
    grep ^trust $DEBUG/apic_clock_test/result
    grep ' apic_clock_' $TRACING/trace
    rmmod apic_clock_test
    rmmod apic_clock
    log | grep apic_clock:
    """,
    brief=True,
)
def test_contradiction(guest):
    """A contradiction gives no offset, but a log line each time; the verdict is reported once."""
    output = guest.ok()
    print(output)
    answers = re.findall(r"^measured: (.*)$", output, re.M)
    assert ["Stale file handle" in answer for answer in answers] == [True, True, False]
    assert answers[-1] == ""
    assert "cpu 1: not known (-116)\n" in output
    assert "skew known for 1 CPUs, unknown for 1 (1 contradictory)" in output
    assert "\nverdict untrusted\n" in output
    # Wrong uses of the notifiers fail; the first verdict is one call, an unchanged one none.
    assert "trust calls 1 worth 0 differs 0 answers -2 -22 -22 -22 0 -17\n" in output
    assert output.count("CPU 1: TSC moved against that of CPU 0 during the measurement") == 2
    assert len(re.findall(r"apic_clock: TSC: untrusted: [a-z ]+; skew of CPUs: ", output)) == 1
    traced = [tuple(map(int, row)) for row in TRACED.findall(output)]
    rets = {cpu: [ret for number, *_, ret in traced if number == cpu] for cpu in (0, 1)}
    # Measurements that timed out precede the one that did not.
    assert [ret for ret in rets[1] if ret != -110] == [-116, -116, 0]
    assert rets[0] == [0] * len(rets[1])
    _, offset, low, high, rounds, _ = traced[-1]
    assert low <= offset <= high and rounds >= 16
    groups = re.findall(r"apic_clock_group: function=.+ when=\d+ cpus=2 called=2 "
                        r"first=-?\d+ last=-?\d+ error=\d+ ret=0", output)  # fmt: skip
    # Groups whose shots are counted, and others.
    assert len(groups) >= 5
    resync = re.findall(r"apic_clock_resync: cpu=(\d) offset=-?\d+ error=(\d+) stops=0 lost=0 "
                        r"ahead=0 rejected=0 rate_ppb=-?\d+$", output, re.M)  # fmt: skip
    assert resync and all(cpu == "0" and 0 < int(error) < 1000 for cpu, error in resync)


@pytest.mark.guest(
    some(engine="virtual", cpus=2, source="proxy"),
    """
    unload
    load apic_timer
    insmod $MODULES/apic_clock.ko skew_period_s=86401 2>/dev/null && echo accepted
    log | grep skew_period_s
    for period in 2 0; do
        load apic_clock skew_period_s=$period
        for n in 1 2; do
            sleep 4
            # Deferrable work waits for a CPU that is awake.
            usleep 100000
            echo "period $period" $(grep 'cpu 1:' $DEBUG/apic_clock/skew)
        done
        rmmod apic_clock
    done
    load apic_clock skew_period_s=1
    patiently grep -q "cpu 1:.* ago" $DEBUG/apic_clock/skew
    age() { echo "$1" $(grep 'cpu 1:' $DEBUG/apic_clock/skew); }
    taskset 2 sh -c 'while :; do :; done' &
    # CPU 0 is awake now and then.
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do usleep 100000; done
    age busy
    for n in 1 2 3 4 5 6 7 8; do usleep 100000; done
    age patient
    kill $!
    """,
    brief=True,
)
def test_period(guest):
    """Skew is measured every skew_period_s, or never; a period out of range is refused.

    A CPU that is not idle is measured after twice the period.
    """
    output = guest.ok()
    print(output)
    assert "accepted" not in output
    assert "skew_period_s=86401 is out of range: 0 to 86400 s" in output
    ages = re.findall(r"^period (\d) cpu 1: .* (\d+) ms ago$", output, re.M)
    assert [period for period, _ in ages] == ["2", "2", "0", "0"]
    often = [int(age) for _, age in ages[:2]]
    assert max(often) <= 3000
    once = [int(age) for _, age in ages[2:]]
    assert once[0] >= 2000
    assert once[1] - once[0] >= 4000
    busy, patient = (int(re.search(rf"^{what} cpu 1: .* (\d+) ms ago$", output, re.M)[1])
                     for what in ("busy", "patient"))  # fmt: skip
    assert 1600 <= busy < 2500
    assert patient <= 1200


@pytest.mark.guest(
    some(engine="virtual", cpus=2, source="proxy"),
    """
    load apic_timer
    load apic_clock
    load apic_clock_test
    echo "patience 200" >$DEBUG/apic_clock_test/command
    echo "late 200" >$DEBUG/apic_clock_test/command
    echo "answered 200" >$DEBUG/apic_clock_test/command
    grep -e ^patience -e ^late -e ^answered $DEBUG/apic_clock_test/result
    rmmod apic_clock_test
    rmmod apic_clock
    """,
    brief=True,
)
def test_patience(guest):
    """A CPU whose partner does not respond gives up; in virtual time CPUs run in turn."""
    rows = re.findall(r"^(\w+) held (\d+) took (\d+) ret ", guest.ok(), re.M)
    print(guest.output)
    assert [row[0] for row in rows] == ["patience", "late", "answered"]
    assert all(int(held) >= 200_000_000 for _, held, _ in rows)
    took = {name: int(took) for name, _, took in rows}
    assert 0 < took["patience"] < 50_000_000
    # It does not wait for a partner that has given up: that would take 500 us.
    assert 0 < took["late"] < 250_000
    assert 0 < took["answered"] < 250_000


@pytest.mark.guest(
    some(engine="virtual", kernel=("6.1", "7.2"), cpus=1, source="proxy"),
    """
    load apic_timer
    load apic_clock
    load apic_clock_test
    # As if the core had cancelled it at once.
    insmod $MODULES/apic_timer_fail.ko symbol=add_apic_timer_on value=0 caller=apic_clock
    echo "later 0 0 100" >$DEBUG/apic_clock_test/command
    echo calls $(cat /sys/module/apic_timer_fail/parameters/calls)
    rmmod apic_timer_fail
    sleep 0.5
    echo "cancel 0" >$DEBUG/apic_clock_test/command
    grep ^later $DEBUG/apic_clock_test/result
    echo "again 0 100" >$DEBUG/apic_clock_test/command
    sleep 0.5
    grep ^later $DEBUG/apic_clock_test/result
    rmmod apic_clock_test
    rmmod apic_clock
    """,
)
def test_member_that_the_core_has_cancelled(guest):
    """A group with a member that the core has cancelled can be cancelled, and armed again."""
    calls, cancelled, again = guest.ok().splitlines()
    assert calls == "calls 1"
    assert cancelled == "later 0 ret -125 called 0 first 0 last 0"
    assert again.startswith("later 0 ret 0 called 1 first ")


@pytest.mark.guest(
    some(engine=("smp", "virtual"), cpus=2, source="proxy"),
    """
    load apic_timer
    load apic_clock
    load apic_clock_test
    # As if the CPU had been held up for longer than the group is armed ahead.
    insmod $MODULES/apic_timer_fail.ko symbol=apic_clock_group_fire value=-62 times=3 nth=30 \
        caller=apic_clock_test
    for flags in 0 1 2 3; do
        if ! echo "group 2 $flags 50" >$DEBUG/apic_clock_test/command; then
            dmesg | tail -n 3
            exit 1
        fi
        tail -n 1 $DEBUG/apic_clock_test/result
    done
    echo calls $(cat /sys/module/apic_timer_fail/parameters/calls)
    rmmod apic_timer_fail
    for bad in "group 0 0 1" "group 2 4 1"; do
        echo "$bad" >$DEBUG/apic_clock_test/command 2>/dev/null && echo accepted
    done
    rmmod apic_clock_test
    rmmod apic_clock
    """,
    brief=True,
)
def test_group(guest):
    """Each expiry has one receipt with its outcome; with all-or-none it is never partial."""
    print(guest.ok())
    assert "accepted" not in guest.output
    groups = GROUP.findall(guest.output)
    assert len(groups) == 4
    for flags, row in enumerate(groups):
        shots, complete, none, split, early, outside = map(int, row[:6])
        assert (shots, split, outside) == (50, 0, 0)
        assert complete + none == 50
        assert none == 0 or flags & 2
        if not flags & 1:
            assert early == 0
