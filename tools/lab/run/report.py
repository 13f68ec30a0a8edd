"""The report: instruments of `apic-timer` in virtual time and on this machine, as one page.

The program is the same in both places, and makes the page: see user/tool/report.c.
"""

import subprocess
import sys
import time
from pathlib import Path

from ..base.progress import say
from ..build import build, tool
from ..engines import virtual
from ..kernels import kernels

SERIES = "6.1"
MODULES = ("apic_timer", "apic_measure")
GUEST, HOST = "virtual-time", "this-machine"  # folders of rows
BENCH = build.TREE / "docs/results/bench.json"
TIMEOUT = 1500  # s

SCRIPT = f"""
insmod $MODULES/apic_timer.ko
insmod $MODULES/apic_measure.ko
# A thread in real time is to wait for the chain's interrupts only.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
/apic-timer report {{size}} --name {GUEST} /tmp/report
for file in /tmp/report/rows/{GUEST}/*.json; do
    put $(basename $file) <$file
done
"""


def main(output: Path, *, brief: bool = True) -> int:
    """Make OUTPUT/index.html. Return an exit code; may raise LabError.

    brief: some minutes of it
    """
    started = time.monotonic()
    kernel = kernels.ensure(SERIES)
    built = build.build(kernel)
    say("report", "measuring in virtual time")
    result = virtual.run(
        kernel, SCRIPT.format(size="--brief" * brief), timeout=TIMEOUT,
        modules=[build.find_ko(built, name) for name in MODULES],
        files={"apic-timer": tool.tool()},
    )  # fmt: skip
    if not result.ok:
        print(f"report: {result.verdict}\n{result.output}\n{result.kernel_log}", file=sys.stderr)
        return 1
    rows = output / "rows" / GUEST
    rows.mkdir(parents=True, exist_ok=True)
    for file in rows.glob("*.json"):
        file.unlink()
    for name, text in result.files.items():
        (rows / name).write_bytes(text)
    say("report", "measuring on this machine what needs no module")
    done = subprocess.run([tool.tool(), "report", *["--brief"] * brief, "--name", HOST,
                           "--bench", BENCH, output]).returncode  # fmt: skip
    say("report", f"done in {time.monotonic() - started:.0f} s")
    return done
