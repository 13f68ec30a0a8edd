"""Loading and unloading: bad parameters are rejected, no trace is left, and repetition works."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from lab.base.errors import BuildError
from lab.build import build
from lab.engines import virtual
from lab.kernels import kernels
from machines import TABLE, some


@pytest.mark.guest(
    TABLE,
    """
    unload
    if insmod $MODULES/apic_timer.ko source=bogus; then
        exit 1
    fi
    log
    [ ! -d /sys/module/apic_timer ]
    """,
)
def test_unknown_source_is_refused(guest):
    assert 'apic_timer: unknown source "bogus"' in guest.ok()


# name: default, smallest, largest, unit
PARAMETERS = {
    "busy_us": (500, 10, 100_000, "us"),
    "watchdog_ms": (100, 0, 10_000, "ms"),
    "defer_ns": (20_000, 0, 1_000_000, "ns"),
    "late_ns": (1000, 0, 1_000_000_000, "ns"),
    "lead_quantile": (10_000, 5000, 10_000, "1/10000"),
    "spin_budget_ns": (5000, 0, 1_000_000, "ns"),
}
WRONG = [
    *(f"{name}={value}" for name, (_, least, most, _) in PARAMETERS.items()
      for value in (least - 1, most + 1)),
    "busy_us=0", "lead_quantile=0", "watchdog_ms=4294967295", "defer_ns=x",
]  # fmt: skip
RIGHT = [f"{name}={value}" for name, (_, least, most, _) in PARAMETERS.items()
         for value in (least, most)]  # fmt: skip


@pytest.mark.long
@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    f"""
    unload
    parameters=/sys/module/apic_timer/parameters
    insmod $MODULES/apic_timer.ko source=proxy
    for name in {" ".join(PARAMETERS)}; do
        echo default $name $(cat $parameters/$name)
    done
    unload
    for setting in {" ".join(WRONG)}; do
        insmod $MODULES/apic_timer.ko source=proxy $setting 2>/dev/null && echo loaded $setting
        [ ! -d /sys/module/apic_timer ]
    done
    insmod $MODULES/apic_timer.ko latency_qos_us=-2 2>/dev/null && echo loaded latency_qos_us
    for setting in {" ".join(RIGHT)}; do
        insmod $MODULES/apic_timer.ko source=proxy $setting
        [ "$(cat $parameters/${{setting%=*}})" = "${{setting#*=}}" ]
        unload
    done
    log
    """,
)
def test_parameters_out_of_range(guest):
    """Rejected, with one line that names parameter, value and range; the limits are accepted."""
    output = guest.ok()
    found = dict(re.findall(r"^default (\w+) (\d+)$", output, re.M))
    assert found == {name: str(default) for name, (default, *_) in PARAMETERS.items()}
    assert "loaded" not in re.findall(r"^\w+", output, re.M)
    for setting in WRONG:
        name, _, value = setting.partition("=")
        _, least, most, unit = PARAMETERS[name]
        line = f"apic_timer: {setting}: not a number from {least} to {most} ({unit})\n"
        # insmod tries both system calls, and the kernel prints its own line each time.
        refused = output.count(f"apic_timer: `{value}' invalid for parameter `{name}'\n")
        assert output.count(line) == refused > 0, setting
    assert f"apic_timer: latency_qos_us=-2 is out of range: -1 to {2**31 - 1} us\n" in output


@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    """
    unload
    load apic_timer source=proxy
    refined() {
        log | grep "refined the rate"
    }
    seen=0
    for what in "insmod $MODULES/apic_timer_refine.ko" "rmmod apic_timer_refine"; do
        $what
        patiently eval '[ $(refined | wc -l) -gt $seen ]'
        seen=1
        grep -o "TSC [0-9]* kHz" $DEBUG/apic_timer/info
    done
    refined
    unload
    """,
    brief=True,
)
def test_refined_rate(guest):
    """A refined TSC rate of the kernel's is noticed within seconds, and used."""
    output = guest.ok()
    rates = re.findall(r"^TSC (\d+) kHz$", output, re.M)
    refined = re.findall(r"apic_timer: the kernel has refined the rate of the TSC: (\S+) MHz$",
                         output, re.M)  # fmt: skip
    assert len(rates) == 2 and int(rates[0]) - int(rates[1]) == 1000
    assert refined == [f"{int(khz) // 1000}.{int(khz) % 1000:03}" for khz in rates]


@pytest.mark.parametrize("series", ["6.1", "7.2"])
def test_what_modinfo_says(series):
    """modinfo agrees: name, default, range and unit are written in one place."""
    module = build.find_ko(build.build(kernels.ensure(series)), "apic_timer")
    info = subprocess.run(["modinfo", "-F", "parm", module], check=True, text=True,
                          stdout=subprocess.PIPE).stdout  # fmt: skip
    for name, (default, least, most, unit) in PARAMETERS.items():
        text = rf"^{name}:.*, in {unit} \({least} to {most}, default {default}\)( \(uint\))?$"
        assert re.search(text, info, re.M), info


CONSUMER = """
#include <linux/apic_timer.h>
#include <linux/module.h>

static struct apic_timer_list timer;

static int __init consumer_init(void)
{
	init_apic_timer(&timer);
	return del_apic_timer_sync(&timer) == -ENOENT ? 0 : -EIO;
}

static void __exit consumer_exit(void)
{
}

module_init(consumer_init);
module_exit(consumer_exit);
MODULE_LICENSE("GPL");
"""
HEADER = build.TREE / "include/linux/apic_timer.h"
NUMBER, SIZE = (int(re.search(rf"^#define {name}\s+(\d+)", HEADER.read_text(), re.M)[1])
                for name in ("APIC_TIMER_API", "APIC_TIMER_SIZE"))  # fmt: skip


def consumer(kernel: kernels.Kernel, directory: Path, name: str, *changes: tuple[str, str]) -> Path:
    """Build a module that uses timers, after some changes to the header."""
    text = HEADER.read_text()
    for old, new in changes:
        text, times = re.subn(old, new, text, flags=re.M)
        assert times == 1, old
    (directory / name / "include/linux").mkdir(parents=True)
    (directory / name / "include/linux/apic_timer.h").write_text(text)
    (directory / name / f"{name}.c").write_text(CONSUMER)
    (directory / name / "Kbuild").write_text(f"obj-m := {name}.o\nccflags-y := -I$(src)/include\n")
    # As if built on a machine with the other apic_timer: missing exports are no error.
    built = build.build_external(kernel, directory / name, build.build(kernel),
                                 {"KBUILD_MODPOST_WARN": "1"})  # fmt: skip
    shutil.copy(build.find_ko(built, name), directory / f"{name}.ko")
    return directory / f"{name}.ko"


@pytest.mark.parametrize("series", ["6.1", "7.2"])
def test_consumer_of_another_interface(series, tmp_path):
    """No kernel loads it, and one line says what it was built for."""
    kernel = kernels.ensure(series)
    another = (r"^(#define APIC_TIMER_API\s+)\d+", rf"\g<1>{NUMBER + 1}")
    larger = (r"^(#define APIC_TIMER_SIZE\s+)\d+", rf"\g<1>{SIZE + 8}")
    member = (r"^\tunsigned int flags;$", "\tunsigned int flags, more[2];")
    with pytest.raises(BuildError, match="static assertion failed"):
        consumer(kernel, tmp_path, "careless", member)
    modules = [
        build.find_ko(build.build(kernel), "apic_timer"),
        consumer(kernel, tmp_path, "fits"),
        consumer(kernel, tmp_path, "another", another),
        consumer(kernel, tmp_path, "larger", larger, member),
    ]
    script = """
    insmod $MODULES/apic_timer.ko
    insmod $MODULES/fits.ko
    rmmod fits
    for name in another larger; do
        insmod $MODULES/$name.ko 2>&1 && echo loaded $name
    done
    dmesg | grep -E ' (fits|another|larger): '
    rmmod apic_timer
    """
    result = virtual.run(kernel, script, modules=modules)
    assert result.ok, result.output
    assert "loaded" not in result.output
    lines = re.findall(r"\b((?:another|larger|fits): .*built_for.*)$", result.output, re.M)
    # insmod tries both system calls.
    assert list(dict.fromkeys(lines)) == [
        f"another: Unknown symbol built_for_apic_timer_api_{NUMBER + 1}_size_{SIZE} (err -2)",
        f"larger: Unknown symbol built_for_apic_timer_api_{NUMBER}_size_{SIZE + 8} (err -2)",
    ]


@pytest.mark.parametrize("header", ["timer", "timer_estimate", "clock", "calendar"])
def test_any_header_names_the_interface(header, tmp_path):
    """A consumer of one of the headers only is not loaded by another interface either."""
    kernel = kernels.ensure("6.1")
    (tmp_path / "only.c").write_text(f"""
#include <linux/apic_{header}.h>
#include <linux/module.h>
MODULE_LICENSE("GPL");
""")
    (tmp_path / "Kbuild").write_text("obj-m := only.o\nccflags-y := -I$(APIC_TIMER)/include\n")
    built = build.build_external(kernel, tmp_path, build.build(kernel))
    wanted = f"built_for_apic_timer_api_{NUMBER}_size_{SIZE}"
    assert wanted.encode() in build.find_ko(built, "only").read_bytes()


@pytest.mark.guest(
    TABLE,
    """
    load apic_timer
    load apic_timer_selftest
    if rmmod apic_timer; then
        exit 1
    fi
    unload
    [ ! -d /sys/module/apic_timer ]
    """,
    brief=True,
)
def test_not_unloaded_while_used(guest):
    guest.ok()


LEFT_AS_BEFORE = """
    unload
    echo before $(tick_devices)
    load apic_timer
    echo during $(tick_devices)
    load apic_timer_busy rate=500 waiting=10
    sleep 1
    unload
    echo after $(tick_devices)
    before=$(ticks)
    echo ticks $before
    ticked() {
        [ $(ticks | cut -d ' ' -f $1) -ge $(($(echo $before | cut -d ' ' -f $1) + 20)) ]
    }
    # A tick on every CPU: each has work meanwhile.
    for cpu in $(seq $CPUS); do
        taskset $((1 << (cpu - 1))) sh -c 'while :; do :; done' &
        work=$!
        patiently ticked $cpu || true
        kill $work
        wait $work || true
    done
    echo ticks $(ticks)
    """


@pytest.mark.guest(TABLE, LEFT_AS_BEFORE, brief=True)
def test_left_as_before(guest):
    """The tick continues on every CPU, on the same device as before."""
    rows = [row.split() for row in guest.ok().splitlines()]
    devices = {row[0]: row[1:] for row in rows if row and row[0] in ("before", "during", "after")}
    cpus = guest.machine.cpus
    # The last one is the broadcast device.
    free = guest.machine.tick_device
    taken = "apic_timer" if guest.machine.source == "proxy" else free
    assert devices["before"][:cpus] == [free] * cpus
    assert devices["during"][:cpus] == [taken] * cpus
    assert devices["after"] == devices["before"]
    first, second = ([int(n) for n in row[1:]] for row in rows if row and row[0] == "ticks")
    assert len(first) == cpus
    for before, after in zip(first, second, strict=True):
        assert after - before >= 20


@pytest.mark.guest(
    TABLE,
    """
    unload
    load apic_timer
    load apic_timer_busy rate=1000 waiting=1000 leave=1
    sleep 1
    cat /sys/module/apic_timer_busy/parameters/ran
    rmmod apic_timer_busy
    cat $DEBUG/apic_timer/pending
    log
    unload
    """,
    brief=True,
)
def test_consumer_leaves_timers_pending(guest):
    """Its timers are cancelled, and reported by handler; none of its code runs any more."""
    ran, *rows = guest.ok().splitlines()
    assert int(ran) > 0
    assert not [row for row in rows if row.startswith("cpu ")]
    found = re.findall(r"cancelled (\d+) pending timer\(s\) of handler (\w+)", "\n".join(rows))
    counts = {handler: int(count) for count, handler in found}
    assert counts["waiting_handler"] == 1000
    assert 1 <= counts["periodic_handler"] <= guest.machine.cpus


@pytest.mark.guest(
    some(kernel=("6.1", "6.1-debug"), engine="smp", cpus=2),
    """
    unload
    load apic_timer
    for i in $(seq 100); do
        load apic_timer_busy rate=50000 work=5 only=$((CPUS - 1)) leave=1
        rmmod apic_timer_busy
        cat $DEBUG/apic_timer/pending
    done
    log | grep cancelled
    sed 's/^/stat /' $DEBUG/apic_timer/stats
    unload
    """,
    brief=True,
)
def test_consumer_leaves_handlers_running(guest):
    """A timer that its handler arms at that moment is cancelled, and counted if it was armed."""
    rows = guest.ok().splitlines()
    stats = {row.split()[1]: sum(map(int, row.split()[2:]))
             for row in rows if re.match(r"stat \w+( +\d+)+$", row)}  # fmt: skip
    ways = ("expired", "skipped", "deleted", "cancelled")
    assert stats["added"] == sum(stats[way] for way in ways), stats
    assert not [row for row in rows if row.startswith("cpu ")]
    found = [
        int(count)
        for row in rows
        for count in re.findall(r"cancelled (\d+) pending timer\(s\) of handler periodic_", row)
    ]
    assert found == [1] * 100


@pytest.mark.guest(
    some(kernel=("6.1", "6.1-debug"), engine="smp", cpus=2),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=0 waiting=2000
    for i in $(seq 50); do
        load apic_timer_leave
        rmmod apic_timer_leave
        ! grep apic_timer_leave $DEBUG/apic_timer/pending
    done
    sleep 0.1
    log | grep -e cancelled -e notifier
    unload
    """,
    brief=True,
)
def test_consumer_leaves_a_timer_that_is_changed(guest):
    """Moved ahead of or behind the position of the search, it is still found; so is a notifier."""
    rows = guest.ok().splitlines()
    found = [row for row in rows if "of handler changed_handler" in row]
    assert len(found) == 50
    found = [row for row in rows if "notifier notified [apic_timer_leave] has not been" in row]
    assert len(found) == 50


@pytest.mark.guest(
    some(source="proxy"),
    """
    unload
    load apic_timer
    load apic_timer_busy rate=1000
    unbind=/sys/devices/system/clockevents/clockevent$((CPUS - 1))/unbind_device
    taken_back() {
        [ $(log | grep -c 'device was unbound by sysfs') -ge $1 ] &&
            [ $(tick_devices | grep -c apic_timer) -ge $CPUS ]
    }
    for i in 1 2 3; do
        echo apic_timer >$unbind
        patiently taken_back $i || true
    done
    echo device $(tick_devices)
    ran=/sys/module/apic_timer_busy/parameters/ran
    before=$(cat $ran)
    more() { [ $(cat $ran) -ge $((before + 100)) ]; }
    patiently more || true
    echo $before
    cat $ran
    unload
    echo device $(tick_devices)
    log
    """,
)
def test_unbound_by_somebody(guest):
    """It is noticed, reported and registered again; neither our timers nor the kernel's stop."""
    during, before, after, unloaded, *log = guest.ok().splitlines()
    cpus = guest.machine.cpus
    assert during.split()[1 : 1 + cpus] == ["apic_timer"] * cpus
    assert int(after) - int(before) >= 100
    assert unloaded.split()[1 : 1 + cpus] == [guest.machine.tick_device] * cpus
    assert "\n".join(log).count("clock event device was unbound by sysfs") == 3


LOAD_AGAIN_AND_AGAIN = """
    unload
    sh -c 'while :; do :; done' &
    load=$!
    for i in $(seq {times}); do
        load apic_timer
        load apic_timer_busy rate=2000 waiting=20 leave=$((i % 2))
        rmmod apic_timer_busy
        rmmod apic_timer
        [ $((i % 10)) -ne 0 ] || echo loaded $i times
    done
    kill $load
    echo after $(tick_devices)
    dmesg | grep -c 'cancelled .* of handler waiting_handler'
    dmesg | grep -c 'cancelled .* of handler periodic_handler'
    """


def judge(guest, times: int) -> None:
    """Check that every other time timers were left pending, of each handler."""
    devices, waiting, periodic = guest.ok().splitlines()[-3:]
    machine = guest.machine
    assert devices.split()[1 : 1 + machine.cpus] == [machine.tick_device] * machine.cpus
    # The log also has those of other tests.
    assert int(waiting) >= times // 2
    assert int(periodic) >= times // 2


@pytest.mark.guest(
    some(kernel=("6.1", "6.12", "7.2"), cpus=2, engine="smp"),
    LOAD_AGAIN_AND_AGAIN.format(times=20),
)
def test_load_20_times_under_load(guest):
    """Loading works with timers firing and a CPU busy."""
    judge(guest, 20)


@pytest.mark.guest(
    # The log must hold everything.
    [replace(machine, matrix=True, timeout=7200, append="log_buf_len=16M")
     for machine in some(kernel="6.1", cpus=2, engine="smp")],
    LOAD_AGAIN_AND_AGAIN.format(times=2000),
)  # fmt: skip
def test_load_2000_times_under_load(guest):
    judge(guest, 2000)


@pytest.mark.guest(
    some(cpus=1, engine="virtual", source="proxy"),
    """
    load apic_timer
    for name in modes timeout period; do
        load apic_timer_sample_$name
    done
    sleep 1
    for name in modes timeout period; do
        rmmod apic_timer_sample_$name
    done
    log | grep apic_timer_sample_
    cat $DEBUG/apic_timer/pending
    """,
)
def test_samples(guest):
    """Each sample does what it demonstrates."""
    output = guest.ok()
    said = re.findall(r"apic_timer_sample_(\w+: .*)$", output, re.M)
    assert [line.split(":")[0] for line in said if line.endswith(": done")] == [
        "modes", "timeout", "period",
    ]  # fmt: skip
    (exact,) = re.findall(r"^modes: exact: error (-?\d+) cycles$", "\n".join(said), re.M)
    assert 0 <= int(exact) <= 60
    assert "modes: skipped: not run" in said
    assert "timeout: alive: no timeout" in said
    assert "timeout: silent: timeout" in said
    assert [line for line in said if line.endswith(", in turn")]
    runs = re.findall(r"^period: by \w+: (\d+) runs, (\d+) missed$", "\n".join(said), re.M)
    assert len(runs) == 2 and all(90 <= int(n) + int(missed) <= 130 for n, missed in runs)
    assert not re.search(r"^cpu ", output, re.M)
