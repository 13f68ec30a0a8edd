"""Start windows of a calendar at the same TSC value on two CPUs, in Bochs.

Bochs runs its CPUs in turn; therefore some wake-ups take longer than any before them, and a thread
may start late. In Bochs a wake-up takes 80 us, and the kernel distrusts the TSC.
"""

import struct
from collections import Counter

from ..bench import rows
from ..bench.calendar_goals import TOGETHER
from ..build import build, user
from ..engines import bochs
from ..kernels import kernels
from . import demo_calendar

SERIES = "6.1"
# A thread and a function on each CPU.
CALENDAR = b"""unit left cpu 0 user
unit right cpu 1 user
unit one cpu 0 function step
unit other cpu 1 function step
table both major 2ms
at 500us run left for 300us
at 500us run right for 300us
at 1500us run one for 50us
at 1500us run other for 50us
"""
PAIRS = {"threads": (0, 1), "functions": (2, 3)}  # numbers of the units
PARAMETERS = {
    "apic_timer": "spin_budget_ns=200000 defer_ns=400000",
    "apic_calendar": "allow_unstable=1 lead_max_ns=100000",
    "apic_calendar_pulse": "",
}
CYCLES = 320


def measure() -> list[dict]:
    """Run it; return a row of each pair's distance, and one of its lateness; TSC cycles.

    RuntimeError when the guest fails.
    """
    kernel = kernels.ensure(SERIES)
    built = build.build(kernel)
    result = bochs.run(
        kernel,
        "".join(f"insmod $MODULES/{name}.ko {values}\n" for name, values in PARAMETERS.items())
        + f"calendar /both.calendar {CYCLES} >/tmp/r\nput receipts </tmp/r\n"
        + "".join(f"rmmod {name}\n" for name in reversed(PARAMETERS)),
        modules=[build.find_ko(built, name) for name in PARAMETERS], cpus=2,
        files={"usr/bin/calendar": user.program(kernel, "calendar"), "both.calendar": CALENDAR},
        timeout=1200,
    )  # fmt: skip
    if not result.ok:
        raise RuntimeError(f"{result.verdict}\n{result.output}\n{result.kernel_log[-2000:]}")
    late: dict[int, dict[int, int]] = {}
    for fields in struct.iter_unpack("7Q6I", result.files["receipts"]):
        receipt = demo_calendar.Receipt(*fields)
        began = receipt.began if receipt.unit in PAIRS["threads"] else receipt.resumed
        if began and receipt.cycle >= demo_calendar.WARM_UP:
            late.setdefault(receipt.cycle, {})[receipt.unit] = began - receipt.start
    samples = {}
    for what, (one, other) in PAIRS.items():
        pairs = [(of[one], of[other]) for of in late.values() if one in of and other in of]
        samples[rows.Key(f"{TOGETHER}/{what}/late", what)] = Counter(
            n for pair in pairs for n in pair
        )
        samples[rows.Key(f"{TOGETHER}/{what}/apart", what)] = Counter(abs(a - b) for a, b in pairs)
    return rows.rows(samples, kernel=kernel.release, engine="bochs", cpus=2)
