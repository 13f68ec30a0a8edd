"""The shaper's benchmark: when packets reach the driver, ours next to the kernel's qdiscs.

Every script boots a guest in virtual time with apic_timer_sink, a network device that records the
TSC at the first instruction of its ndo_start_xmit. All qdiscs of a script share the boot. The
sender's socket is connected, like that of the kernel's own test of SO_TXTIME. Otherwise Linux
generates random numbers for the packets' identifiers, with interrupts disabled for longer than
most leads, or any.
"""

import bisect
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .rows import NONE, Key
from .script import Script

MODULES = ("apic_timer", "sch_apic", "apic_timer_sink", "apic_timer_paper", "apic_timer_bench",
           "apic_timer_bench_ours", "apic_timer_busy")  # fmt: skip
# Network cards of QEMU whose drivers are measured up to their doorbells: driver -> QEMU's name, and
# the value of `doorbell`, ns. The value is a bit below the minimum measured without it, so that no
# card is started early when a compiler or a kernel has changed the path.
# QEMU's threads do not run in time with the guest's, so virtio_net's card sends by a timer; until
# it expires, the card wants no other doorbell.
CARDS = {"e1000e": ("e1000e", 425), "igb": ("igb", 368),
         "virtio_net": ("virtio-net-pci,tx=timer,x-txtimer=1000", 590)}  # fmt: skip
DOORBELLS = "doorbells"  # QEMU plug-in that records them
OWN_MODULES = ("sch_fq", "sch_etf", "sch_tbf", "sch_htb", "sch_cake")  # the kernel's
LOADS = ("idle", "user", "syscall", "net")
# Distances of planned departures, ns; the benchmark of timers uses the same.
IDLE_GAP, LOADED_GAP = "20000-1020000", "20000-120000"
WARM_UP = 2000  # packets before the counted ones, for the qdisc to learn from

PRELUDE = """
sink=/sys/kernel/debug/apic_timer_sink
# Not busybox's.
ip() { /usr/bin/ip -c=never "$@"; }
tc() { /usr/sbin/tc -c=never "$@"; }
insmod $MODULES/apic_timer.ko
# No packets but the sender's. This is for devices that are not there yet.
[ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
for module in $OWN sch_apic apic_timer_paper apic_timer_sink; do
	[ ! -e $MODULES/$module.ko ] || insmod $MODULES/$module.ko
done
ip link set sink0 up
ip address add 10.9.9.1/24 dev sink0
# shape WORDS: put a qdisc onto the device, or with "; class ...", its class too
shape() {
	tc qdisc add dev sink0 root handle 1: $1
	[ -z "$2" ] || tc class add dev sink0 parent 1: classid 1:1 $2
	[ -z "$2" ] || tc qdisc add dev sink0 parent 1:1 pfifo limit 200000
}
# Another's packet takes its part of the rate, and of the CPU's time.
unshape() {
	tc qdisc del dev sink0 root
	grep -q ' foreign 0$' $sink/packets || { cat $sink/packets; false; }
}
detach() {
	ip link set sink0 down
	rmmod apic_timer_sink apic_timer_paper sch_apic apic_timer
}
# sent WORDS: forget what was sent before, and send
sent() { echo >$sink/reset; udpsend "$@" >$work/sent || { cat $work/sent; false; }; }
"""


@dataclass(frozen=True)
class Way:
    """A qdisc and its options, by which packets leave.

    plan:  words of tc if each packet has its time; empty if the qdisc cannot do that
    rate:  words of tc for a rate in bit/s and a frame's size in bytes; None if it has no rate
    inner: words of a classful qdisc's class, for a rate and a size
    clock: the clock that udpsend uses
    """

    timer: str
    mode: str = NONE
    plan: str = ""
    rate: Callable[[int, int], str] | None = None
    inner: Callable[[int, int], str] | None = None
    clock: str = "mono"


def _mbit(rate: int) -> str:
    """Return a rate in bit/s as people type it."""
    return f"{rate // 10**6}mbit"


def _apic(mode: str) -> Way:
    return Way("apic", mode, f"apic mode {mode} limit 200000",
               lambda rate, size: f"apic mode {mode} limit 200000 rate {_mbit(rate)}")  # fmt: skip


FQ = "fq limit 200000 flow_limit 200000"
PACKETWISE = "low_rate_threshold 10gbit"  # otherwise fq sends two packets of 1,514 bytes at a time
HARD, SOFT, THREAD = (_apic(mode) for mode in ("hard", "soft", "thread"))
WAYS = (
    HARD, SOFT, THREAD,
    Way("fq", plan=FQ, rate=lambda rate, size: f"{FQ} {PACKETWISE} maxrate {_mbit(rate)}"),
    Way("fq_slack1", plan=f"{FQ} timer_slack 1ns",
        rate=lambda rate, size: f"{FQ} {PACKETWISE} timer_slack 1ns maxrate {_mbit(rate)}"),
    Way("etf_5us", plan="etf clockid CLOCK_TAI delta 5000", clock="tai"),
    Way("tbf", rate=lambda rate, size: f"tbf rate {_mbit(rate)} burst {size}b limit 200mb"),
    Way("tbf_5k", rate=lambda rate, size: f"tbf rate {_mbit(rate)} burst 5k limit 200mb"),
    Way("htb", rate=lambda rate, size: "htb default 1",
        inner=lambda rate, size: f"htb rate {_mbit(rate)} ceil {_mbit(rate)} burst {size}b "
                                 f"cburst {size}b quantum 1500"),
    Way("cake", rate=lambda rate, size: f"cake bandwidth {_mbit(rate)} raw besteffort flowblind "
                                        "memlimit 256mb rtt 1000s"),
    # The two timers that the paper of 2001 compared with.
    Way("jiffies", "paper", "apic_paper", lambda rate, size: "apic_paper"),
    Way("tick_5khz", "paper", "apic_paper", lambda rate, size: "apic_paper"),
)  # fmt: skip


def named(*timers: str) -> list[Way]:
    """List the ways of these timers, in the order of WAYS."""
    return [way for way in WAYS if way.timer in timers]


@dataclass(frozen=True)
class Size:
    """How much is measured; counts are per seed, and a row sums up all seeds."""

    seeds: tuple[int, ...]
    packets: int  # of each way under each load
    idle: int  # likewise, of mode hard alone, on any kernel
    jiffy_packets: int  # likewise, of the paper's timers, at random distances up to 20 ms
    spaced: int  # of figure 5
    bursts: int  # of BURST packets, of mode hard alone: five take ten seconds
    slow: int  # of figure 4
    stress: int
    cost: int
    doorbells: int  # of each driver


FULL = Size(seeds=(1, 2, 3, 4, 5), packets=20_000, idle=10_000, jiffy_packets=1000, spaced=20_000,
            bursts=5, slow=200, stress=2_000, cost=1000, doorbells=10_000)  # fmt: skip
SHORT = Size(seeds=(1,), packets=10_000, idle=10_000, jiffy_packets=200, spaced=2_000,
             bursts=5, slow=200, stress=2_000, cost=1000, doorbells=1000)  # fmt: skip


def scripts(size: Size, parts: tuple[str, ...] = ()) -> list[Script]:
    """List the scripts of all parts, or of the named ones."""
    return [script for name, part in PARTS.items() if not parts or name in parts
            for script in part(size)]  # fmt: skip


def new_script(name: str, seed: int, weight: float) -> Script:
    """Return a script that begins with the device up, without a qdisc of ours."""
    script = Script(f"shaper-{name}", seed, weight=weight, network=True)
    script.do(PRELUDE)
    return script


class _Shaped:
    """Put a qdisc on the device while steps are added to a script."""

    def __init__(self, script: Script, way: Way, rate: int = 0, size: int = 0):
        self.script, self.way, self.rate, self.size = script, way, rate, size

    def __enter__(self) -> "_Shaped":
        way, words = self.way, self.way.plan
        inner = ""
        if way.mode == "paper":
            tick = int(way.timer == "tick_5khz")
            self.script.do(
                f"echo {tick} >/sys/module/apic_timer_paper/parameters/tick",
                f"echo {self.rate} >/sys/module/apic_timer_paper/parameters/rate",
            )
        if self.rate:
            assert way.rate is not None
            words = way.rate(self.rate, self.size)
            inner = way.inner(self.rate, self.size) if way.inner else ""
        self.script.do(f"shape '{words}' '{inner}'")
        return self

    def __exit__(self, *exc) -> None:
        self.script.do("unshape")

    def send(self, **words: object) -> None:
        """Send packets with their times, or all at once if there is a rate."""
        words = {"clock": self.way.clock, "connect": 1, **words}
        text = " ".join(f"{name}={value}" for name, value in words.items())
        self.script.do(f"sent {text}")


def _error(size: Size) -> Iterator[Script]:
    """Measure errors of packets with times, at random distances, under loads."""
    for seed in size.seeds:
        for load in LOADS:
            script = new_script(f"error-{load}", seed, size.packets / 50)
            script.do(f"load {load} {seed}")
            gap = IDLE_GAP if load == "idle" else LOADED_GAP
            for n, way in enumerate(named("apic", "fq", "fq_slack1", "etf_5us")):
                with _Shaped(script, way) as shaped:
                    if way.timer == "apic":
                        shaped.send(count=WARM_UP, gap=gap, seed=seed * 100 + n + 50)
                    shaped.send(count=size.packets, gap=gap, seed=seed * 100 + n)
                    script.take("$sink/errors", Key("shaper/error", way.timer, mode=way.mode,
                                                    load=load))  # fmt: skip
            script.do("unload")
            yield script


def _idle(size: Size) -> Iterator[Script]:
    """Measure errors in mode hard on an idle CPU, to compare kernels."""
    script = new_script("idle", 1, size.idle / 100)
    with _Shaped(script, HARD) as shaped:
        shaped.send(count=WARM_UP, gap=IDLE_GAP, seed=50)
        shaped.send(count=size.idle, gap=IDLE_GAP, seed=1)
        script.take("$sink/errors", Key("shaper/idle", HARD.timer, mode=HARD.mode))
    yield script


def decode_spacing(nominal: float) -> Callable[[bytes], Counter[int]]:
    """Return a function that counts spacings minus the nominal one, rounded to whole ns."""
    return lambda data: Counter(round(s - nominal) for s in spacings(departures(data)))


def departures(data: bytes) -> list[float]:
    """Return departures after the first, in ns, from the TSC's kHz and apic_timer_sink's file."""
    head, _, records = data.partition(b"\n")
    moments = [tsc for tsc, _ in struct.iter_unpack("<QQ", records)]
    return [(moment - moments[0]) * 1e6 / int(head) for moment in moments]


def spacings(moments: list[float]) -> list[float]:
    """Return the distances of neighbours."""
    return [b - a for a, b in zip(moments, moments[1:], strict=False)]


def decode_moments(data: bytes) -> Counter[int]:
    """Return the departures as samples in whole ns; their order is that of their values."""
    return Counter(round(moment) for moment in departures(data))


def decode_ppm(nominal: float) -> Callable[[bytes], Counter[int]]:
    """Return a function that counts how much the rate exceeds the nominal one, in ppm."""

    def decode(data: bytes) -> Counter[int]:
        moments = departures(data)
        if len(moments) < 2:
            return Counter()
        mean = (moments[-1] - moments[0]) / (len(moments) - 1)
        return Counter([round((nominal / mean - 1) * 1_000_000)])

    return decode


# The paper's figures: 1,292-byte packets at 1 Mbit/s, 667-byte packets at 50 Mbit/s.
FIGURES = {"fig4": (1_000_000, 1292), "fig5": (50_000_000, 667)}


def nominal_ns(figure: str) -> float:
    """Return the spacing that a figure's rate demands."""
    rate, size = FIGURES[figure]
    return size * 8e9 / rate


def spacing(script: Script, figure: str, way: Way, count: int, then: str = "") -> None:
    """Add the measurement of a burst spaced by a rate.

    then: a shell command to run when all packets have left
    """
    rate, size = FIGURES[figure]
    nominal = nominal_ns(figure)
    key = Key(f"shaper/{figure}", way.timer, mode=way.mode)
    with _Shaped(script, way, rate, size) as shaped:
        words = {"how": "burst", "size": size, "gap": round(nominal)}
        if way.timer == "apic" and figure == "fig5":
            shaped.send(count=min(count, WARM_UP), **words)
        shaped.send(count=count, **words)
        script.do("cat $bench/tsc_khz $sink/departures >$work/departures")
        script.take("$work/departures", key, decode_spacing(nominal))
        script.take("$work/departures", key._replace(unit="moment"), decode_moments)
        script.take("$work/departures", key._replace(unit="ppm"), decode_ppm(nominal))
        if then:
            script.do(then)


def _spacing(size: Size) -> Iterator[Script]:
    """Measure the spacing of a burst: the paper's figures 4 and 5."""
    for seed in size.seeds[:1]:
        for figure, count in (("fig5", size.spaced), ("fig4", size.slow)):
            script = new_script(figure, seed, count / 200)
            for way in WAYS:
                if way.rate:
                    # A cloud is visible with fewer packets.
                    spacing(script, figure, way, count if way.mode != "paper" else min(count, 2000))
            yield script
        yield _lasting(seed, size.bursts)


# Packets that take more than two seconds at figure 5's rate. Linux 6.1 disables interrupts for
# milliseconds when that many more packets have been queued at once and leave.
BURST = 20_000


def _lasting(seed: int, bursts: int) -> Script:
    """Measure figure 5 for several bursts, each of which begins before the previous one ends."""
    script = new_script("lasting", seed, bursts * 20)
    rate, size = FIGURES["fig5"]
    with _Shaped(script, HARD, rate, size) as shaped:
        gap = round(nominal_ns("fig5"))
        # A burst like the counted ones: when its sender allocates memory, the kernel disables
        # interrupts for longer than for a few packets.
        shaped.send(count=BURST, how="burst", size=size, gap=gap)
        # The last burst ends later than its sender expects, because each one was queued too early.
        words = (f"count={BURST} how=burst size={size} gap={gap} connect=1 "
                 f"wait={bursts * 200_000_000}")  # fmt: skip
        script.do(f"""
            for n in $(seq 0 2 {2 * bursts - 2}); do
                (sleep $n; udpsend {words} >$work/sent.$n) &
            done
            echo >$sink/reset
            wait
            cat $bench/tsc_khz $sink/departures >$work/departures""")
        nominal = nominal_ns("fig5")
        key = Key("shaper/lasting", HARD.timer, mode=HARD.mode)
        script.take("$work/departures", key, decode_spacing(nominal))
        script.take("$work/departures", key._replace(unit="ppm"), decode_ppm(nominal))
    return script


STRESS_NS = (17_000, 10_000, 5_000, 3_000, 2_000)


def _stress(size: Size) -> Iterator[Script]:
    """Measure errors at small fixed distances, with packets queued before or while they leave."""
    for seed in size.seeds[:1]:
        script = new_script("stress", seed, 60)
        for gap in STRESS_NS:
            for way in named("apic", "fq_slack1", "etf_5us"):
                for running in (False, True) if gap >= 10_000 else (False,):
                    with _Shaped(script, way) as shaped:
                        words = {"count": size.stress, "gap": gap, "size": 100}
                        ahead = {"ahead": 500_000, "batch": 8} if running else {
                            "ahead": 60_000_000, "batch": size.stress}  # fmt: skip
                        if way.timer == "apic":
                            shaped.send(**words, **ahead)
                        shaped.send(**words, **ahead)
                        name = f"shaper/{'sender' if running else 'stress'}/{gap}"
                        script.take("$sink/errors", Key(name, way.timer, mode=way.mode))
        yield script


COST_NS = (100_000, 17_000)


def decode_cost(data: bytes) -> Counter[int]:
    """Return the cycles per packet that udpsend prints."""
    words = data.split()
    return Counter([int(words[words.index(b"cycles") + 1])] if b"cycles" in words else [])


def _cost(size: Size) -> Iterator[Script]:
    """Measure the CPU time that a packet takes from other programs; all are queued before."""
    for seed in size.seeds[:1]:
        script = new_script("cost", seed, 20)
        for gap in COST_NS:
            for way in named("apic", "fq", "fq_slack1", "etf_5us"):
                with _Shaped(script, way) as shaped:
                    words = {"count": size.cost, "gap": gap, "size": 100, "batch": size.cost,
                             "ahead": 60_000_000}  # fmt: skip
                    key = Key(f"shaper/cost/{gap}", way.timer, mode=way.mode)
                    if way.timer == "apic":
                        shaped.send(**words)
                    shaped.send(**words, burn=1, seed=1)
                    # From the previous command, whose output is part of the script's.
                    script.take("$sink/errors", key)
                    script.take_output("cat $work/sent", key._replace(unit="packet_cycles"),
                                       decode_cost)  # fmt: skip
        yield script


def _delays(size: Size) -> Iterator[Script]:
    """Measure errors at random distances of 0.02 to 20 ms: the paper's figures 2 and 3."""
    for seed in size.seeds[:1]:
        script = new_script("delays", seed, 60)
        for way in named("jiffies", "tick_5khz", "fq", "fq_slack1", "etf_5us", "apic"):
            with _Shaped(script, way) as shaped:
                words = {"gap": "20000-20000000", "ahead": 30_000_000}
                if way.timer == "apic":
                    shaped.send(count=WARM_UP, gap=LOADED_GAP)
                shaped.send(count=size.jiffy_packets, seed=seed, **words)
                script.take("$sink/errors", Key("shaper/delays", way.timer, mode=way.mode))
        yield script


# Card N, whose driver is $1, sends packets to 10.8.N.2, an address without a host.
CARD = """
card_of() {
	for card in $(ls /sys/class/net); do
		driver=$(readlink -f /sys/class/net/$card/device/driver)
		[ "$(basename "$driver")" != "$1" ] || echo $card
	done
}
carrier() {
	for i in $(seq 100); do
		[ "$(cat /sys/class/net/$1/carrier)" != 1 ] || return 0
		sleep 0.1
	done
	return 1
}
sends=/sys/kernel/tracing/events/sch_apic/sch_apic_send/enable
trace=/sys/kernel/tracing/trace
"""


def decode_doorbells(window: str, doorbell: int = 0) -> Callable[[bytes], Counter[int]]:
    """Return a function that counts how much later than their packets' moments doorbells are.

    It decodes the lines of a window that the plug-in wrote. Between "begin" and "end" each line is
    a write to a register; the first write after a packet is in the driver is its doorbell. Then
    follow the packets as the qdisc traced them, with the time of handover: `doorbell` cycles
    before the moment.
    """

    def decode(data: bytes) -> Counter[int]:
        writes: list[int] = []
        found: Counter[int] = Counter()
        now, on = "", False
        for line in data.decode().splitlines():
            match line.split():
                case [":", "begin", now]:
                    on = True
                case [":", "end"]:
                    on = False
                case [":", "sent", at, error] if now == window:
                    left = int(at) + int(error)
                    n = bisect.bisect_left(writes, left)
                    if n < len(writes):
                        found[writes[n] - int(at) - doorbell] += 1
                case [tsc, _, _] if on and now == window:
                    writes.append(int(tsc))
        return found

    return decode


def _doorbell(size: Size) -> Iterator[Script]:
    """Measure the delay from a packet's moment to its doorbell, the driver's start of the card."""
    for seed in size.seeds[:1]:
        script = new_script("doorbell", seed, size.doorbells / 50)
        script.devices = tuple(word for card, _ in CARDS.values() for word in ("-device", card))
        script.plugins = (DOORBELLS,)
        script.do(CARD, "for module in $DRIVERS; do insmod $MODULES/$module.ko; done")
        for n, (driver, (_, ns)) in enumerate(CARDS.items()):
            words = f"to=10.8.{n}.2 connect=1 gap={LOADED_GAP}"
            key = Key(f"shaper/doorbell/{driver}", "apic", mode="hard")
            script.do(
                f"card=$(card_of {driver})",
                f"ip address add 10.8.{n}.1/24 dev $card; ip link set $card up; carrier $card",
                f"ip neigh add 10.8.{n}.2 lladdr 02:00:00:00:00:02 dev $card nud permanent",
                f"tc qdisc replace dev $card root handle 1: {HARD.plan}",
                f"udpsend count={WARM_UP} seed={seed * 100 + 50} {words} >/dev/null",
            )
            for window, doorbell in ((driver, 0), (f"{driver}/set", ns)):
                script.do(
                    f"tc qdisc change dev $card root apic doorbell {doorbell}ns",
                    f"echo >$trace; echo 1 >$sends; tell begin {window}",
                    f"udpsend count={size.doorbells} seed={seed * 100 + n} {words} >/dev/null",
                    "tell end; echo 0 >$sends",
                    "sed -n 's/.* at=\\([0-9]*\\) error=\\(-*[0-9]*\\) .* mode=hard rc=0$/"
                    "\\1 \\2/p' $trace | while read -r at error; do tell sent $at $error; done",
                )  # fmt: skip
                script.take_written(DOORBELLS, key._replace(bench=f"shaper/doorbell/{window}"),
                                    decode_doorbells(window, doorbell))  # fmt: skip
            script.do("tc qdisc del dev $card root; ip link set $card down")
        yield script


PARTS: dict[str, Callable[[Size], Iterator[Script]]] = {
    "error": _error,
    "idle": _idle,
    "spacing": _spacing,
    "stress": _stress,
    "cost": _cost,
    "delays": _delays,
    "doorbell": _doorbell,
}
