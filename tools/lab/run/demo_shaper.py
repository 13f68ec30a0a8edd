"""The shaper's demo: a burst shaped to 50 Mbit/s by ours and by the kernel's qdiscs.

The paper of 2001 did this with 667-byte packets on 100 Mbit/s Ethernet, its figure 5. The demo does
it in virtual time, in one boot of a stock kernel, with the real tc. Every figure is from the run
just made.
"""

import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ..base.progress import say
from ..bench import figures, shaper
from ..bench.rows import Key, Samples
from ..build import build
from ..kernels import kernels
from . import shaper as bench

SERIES = "6.1"
PACKETS = 1000  # per qdisc
RIVALS = ("fq", "tbf", "tbf_5k", "htb")
AUTO = shaper.Way("apic", "auto", rate=lambda rate, size: f"apic rate {rate // 10**6}mbit")
WAYS = (shaper.HARD, AUTO, *shaper.named(*RIVALS))
PLOT = build.TREE / "build/demo-shaper"
MARK = "@demo@ "
WHERE_TO_GO_ON = """\
Where to go on:
  docs/tutorial/pace-a-udp-stream.md   the same on your machine, by hand
  docs/reference/tc-apic.md            the options of "apic"
  docs/explanation/shaper.md           how it works, and what software can't do
  make figures                         all figures of the paper, and more"""


class Found(NamedTuple):
    """Results of one boot."""

    release: str
    samples: Samples
    commands: list[str]  # tc commands, as typed
    statistics: str  # tc's statistics of our qdisc


def main() -> int:
    """Run the demo. Return 0 only if all of it worked. May raise LabError."""
    started = time.monotonic()
    found = measure()
    if found is None:
        return 1
    print(text(found, _plot(found)), end="")
    say("demo", f"done in {time.monotonic() - started:.0f} s")
    return 0


def measure() -> Found | None:
    """Boot the guest; None, with the reason on standard error, if it fails."""
    say("demo", f"kernel: Debian's {SERIES} (downloaded once)")
    kernel = kernels.ensure(SERIES)
    say("demo", f"building the modules for {kernel.release}")
    script = shaper.new_script("demo", 1, 20)
    for way in WAYS:
        command = f"echo; echo '{MARK}statistics'; tc -s qdisc show dev sink0; echo '{MARK}end'"
        shaper.spacing(script, "fig5", way, PACKETS, command if way is shaper.HARD else "")
    guest, _ = bench.guest(kernel)
    say("demo", "booting it in virtual time: 1 instruction = 1 TSC cycle = 1 ns")
    result = guest(script)
    if not result.ok:
        print(f"demo: {result.verdict}\n{result.output}\n{result.kernel_log}", file=sys.stderr)
        return None
    statistics = re.search(rf"{MARK}statistics\n(.*?)\n{MARK}end", result.output, re.S)
    commands = [line for way in WAYS for line in _commands(way)]
    return Found(kernel.release, script.samples(result.files), commands, statistics[1])


def _commands(way: shaper.Way) -> list[str]:
    rate, size = shaper.FIGURES["fig5"]
    lines = [f"tc qdisc add dev sink0 root {way.rate(rate, size)}"]
    if way.inner:
        lines[0] = lines[0].replace("root", "root handle 1:")
        lines.append(f"tc class add dev sink0 parent 1: classid 1:1 {way.inner(rate, size)}")
    return lines


def _plot(found: Found) -> Path | None:
    """Draw figure 5; None if this Python has no plotting library."""
    try:
        from ..bench import shaper_plots
    except ImportError:
        return None
    (drawn,) = shaper_plots.draw(PLOT, found.samples)
    return drawn


def text(found: Found, plot: Path | None) -> str:
    """Return the demo's text, the table first."""
    rate, size = shaper.FIGURES["fig5"]
    nominal = shaper.nominal_ns("fig5")
    parts = [
        f"The traffic shaper on Debian's unpatched {found.release}, in virtual time (1 cycle = 1 "
        f"ns).\n\n{PACKETS:,} UDP packets of {size} bytes are sent in one burst; tc shapes them to "
        f"{rate // 10**6} Mbit/s, so\nthat one leaves each {nominal:,.0f} ns. By how much the "
        "spacing at the driver differs, in ns:",
        table(found.samples),
        "\n".join(f"  {command}" for command in found.commands),
        f"`tc -s qdisc show` of the first:\n\n{found.statistics.rstrip()}",
    ]
    if plot:
        parts.append(f"Figure 5: {plot.relative_to(build.TREE)}")
    return "\n\n".join([*parts, WHERE_TO_GO_ON]) + "\n"


def table(samples: Samples) -> str:
    """Return the table of spacings, in the order of WAYS."""
    heads = {"n": "spacings", "min": "min", "p50": "p50", "p99": "p99", "p999": "p99.9",
             "max": "max"}  # fmt: skip
    lines = [f"{'qdisc':<12}" + "".join(f"{h:>10}" for h in heads.values()) + f"{'rate':>12}"]
    for way in WAYS:
        key = Key("shaper/fig5", way.timer, mode=way.mode)
        row = figures.summary(samples[key])
        (ppm,) = samples[key._replace(unit="ppm")]
        name = way.timer if way.mode == "-" else f"{way.timer} {way.mode}"
        lines.append(f"{name:<12}" + "".join(f"{row[field]:>10,}" for field in heads)
                     + f"{100 + ppm / 10_000:>10.4f} %")  # fmt: skip
    return "\n".join(lines)
