"""A measuring script, which runs in one boot of a guest, or once on this machine.

It is composed of commands and of files to return, each with the key of its samples and the function
that decodes it.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..base.errors import LabError
from . import figures
from .rows import Key, Samples

# The source of timers on the LAPIC timer; in_virtual_time() may choose another such source.
LAPIC = "proxy"
Decode = Callable[[bytes], Mapping[int, int]]

# Common to all scripts. MODULES is the modules' directory, SOURCE the source that attaches the
# LAPIC timer, put NAME returns its standard input, and WORK is a directory for temporary files.
PRELUDE = """
bench=/sys/kernel/debug/apic_timer_bench
us=/sys/kernel/debug/apic_timer
work=${WORK:-/tmp}
source=${SOURCE:-proxy}
pids= lo_was_down= status=0

attach() { insmod "$MODULES/apic_timer.ko" "$@"; insmod "$MODULES/apic_timer_bench_ours.ko"; }
detach() {
	for name in busy bench_ours; do
		[ ! -d /sys/module/apic_timer_$name ] || rmmod apic_timer_$name
	done
	[ ! -d /sys/module/apic_timer ] || rmmod apic_timer
}
start() { setsid sh -c "$1" >/dev/null 2>&1 & pids="$pids $!"; }
# Priority by so much above that of the loads: below them, this script would take ages to go on.
above() { busybox renice -n $((-$1)) -p $$ >/dev/null; }
load() {
	case $1 in
	user) start 'while :; do :; done' ;;
	syscall) start 'exec hackbench -l 1000000000 -g 1 -f 5' ;;
	net)
		start 'exec busybox nc -l -p 5801 </dev/zero'
		sleep 0.2
		start 'exec busybox nc 127.0.0.1 5801 </dev/zero'
		;;
	timers | irqoff) echo "$1 $2" >$bench/load ;;
	esac
	above 10
	[ "$1" = idle ] || sleep 0.5
}
unload() {
	for pid in $pids; do
		kill -9 "-$pid" || { echo "load $pid ended by itself"; status=1; }
	done
	pids=
	above -10
	echo none 0 >$bench/load
	sleep 0.3
	return $status
}
leave() {
	status=$?
	[ ! -d $bench ] || unload || :
	detach
	[ ! -d /sys/module/apic_timer_bench ] || rmmod apic_timer_bench
	[ -z "$lo_was_down" ] || ip link set lo down
	exit $status
}
trap leave EXIT

[ -d /dev/shm ] || { mkdir /dev/shm; mount -t tmpfs shm /dev/shm; }
if [ "$(cat /sys/class/net/lo/operstate)" = down ]; then
	lo_was_down=1
	ip link set lo up
fi
insmod "$MODULES/apic_timer_bench.ko"
"""


@dataclass(frozen=True)
class Take:
    """A file to return as the samples of a key.

    plugin: the file is not the guest's, but the output of this QEMU plug-in
    """

    file: str
    key: Key
    decode: Decode
    plugin: str = ""


@dataclass
class Script:
    """The measurements of one boot. `weight`: approximate seconds; `cpus`: CPUs of the guest.

    network: the guest has the files of lab.build.network
    devices: QEMU's options for further devices of the machine
    plugins: QEMU plug-ins that observe it
    """

    name: str
    seed: int
    weight: float
    steps: list[str | Take] = field(default_factory=list)
    cpus: int = 1
    network: bool = False
    devices: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()

    def do(self, *commands: str) -> None:
        """Add shell commands."""
        self.steps += commands

    def take(self, file: str, key: Key, decode: Decode = figures.decode) -> None:
        """Return a file."""
        self.steps.append(Take(file, key, decode))

    def take_written(self, plugin: str, key: Key, decode: Decode) -> None:
        """Return what a QEMU plug-in has written by the guest's end."""
        self.steps.append(Take("", key, decode, plugin))

    def take_output(self, command: str, key: Key, decode: Decode) -> None:
        """Return the output of a command."""
        self.do(f"{command} >$work/bench.out")
        self.take("$work/bench.out", key, decode)

    def text(self) -> str:
        """Return the whole script. Each returned file is named by its number."""
        lines, takes = [PRELUDE], 0
        for step in self.steps:
            if isinstance(step, str):
                lines.append(step)
            else:
                if not step.plugin:
                    lines.append(f"put {takes} <{step.file}")
                takes += 1
        return "\n".join(lines) + "\n"

    def samples(self, handed_back: Mapping[str, bytes]) -> Samples:
        """Decode the returned files. LabError if something is missing or empty."""
        found: Samples = {}
        for n, take in enumerate(step for step in self.steps if isinstance(step, Take)):
            counts = take.decode(handed_back.get(take.plugin or f"{n}", b""))
            if not sum(counts.values()):
                raise LabError(f"bench {self.name}: no measurements of {take.key}")
            found.setdefault(take.key, Counter()).update(counts)
        return found

    # Used by several benchmarks.

    def shots(self, timer: str, key: Key, shots: int, distance: tuple[int, int], *,
              spin_ns: int = 0, warm_up: int = 0, seed: int = 0) -> None:  # fmt: skip
        """Measure the errors of shots at random distances (ns), after some that do not count."""
        spread = f"uniform {{}} {distance[0]} {distance[1]} {{}} {spin_ns}"
        seed += self.seed * 1000
        if warm_up:
            self.do(f"echo {timer} {spread.format(warm_up, seed + 1)} >$bench/run")
        self.do(f"echo {timer} {spread.format(shots, seed + 2)} >$bench/run")
        self.take("$bench/samples", key)

    def cyclictest(self, key: Key, shots: int, interval_us: int) -> None:
        """Measure the latencies of cyclictest."""
        self.do(
            f"cyclictest -q -m -p 95 --policy=fifo -t 1 -i {interval_us} -l {shots} -N "
            "-h 1000000 --json=$work/bench.json >/dev/null"
        )
        self.take_output("cat $bench/tsc_khz $work/bench.json", key, decode_cyclictest)


def join(scripts: list[Script]) -> Script:
    """Return one script that combines several of a kind in one boot, with the first's seed."""
    return type(scripts[0])(
        name="+".join(script.name for script in scripts),
        seed=scripts[0].seed,
        weight=sum(script.weight for script in scripts),
        steps=[step for script in scripts for step in script.steps],
        cpus=max(script.cpus for script in scripts),
    )


def ours(bench: str, mode: str, *, source: str = LAPIC, load: str = "idle",
         unit: str = "cycles") -> Key:  # fmt: skip
    """Return the key of apic_timer in a mode; the test module calls it apic_timer_MODE."""
    return Key(bench, "apic_timer", source, mode, load, unit)


def decode_number(data: bytes) -> Counter[int]:
    """Decode one number; no sample where there is none."""
    return Counter([int(data)] if data.strip() else [])


def decode_cyclictest(data: bytes) -> Counter[int]:
    """Decode the TSC's kHz and cyclictest's JSON: latencies in ns, as cycles."""
    head, _, text = data.partition(b"\n")
    if not text:
        return Counter()
    khz = int(head)
    (thread,) = json.loads(text)["thread"].values()
    counts: Counter[int] = Counter()
    for latency, times in thread["histogram"].items():
        counts[int(latency) * khz // 1_000_000] += times
    # Of samples beyond the histogram only the number is reported: none is later than max.
    beyond = thread["cycles"] - sum(counts.values())
    if beyond:
        counts[thread["max"] * khz // 1_000_000] += beyond
    return counts
