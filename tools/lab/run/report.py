"""The report: `apic-timer`'s instruments in virtual time and on this machine, as one page.

The program is the same in both places, and makes the page: see user/tool/report.c. QEMU plug-ins
observe the caches and the accesses to ports that it shows.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from ..base.background import Background
from ..base.progress import say
from ..build import build, plugins, tool
from ..engines import virtual
from ..engines.result import Result
from ..kernels import kernels
from . import modelled, ports

SERIES = "6.1"
MODULES = ("apic_timer", "apic_measure", "apic_timer_dev")
GUEST, HOST, MODEL = "virtual-time", "this-machine", "modelled"  # folders of rows
BENCH = build.TREE / "docs/results/bench.json"
TIMEOUT = 1500  # s
JOBS = 2  # guests at a time

PREPARE = "".join(f"insmod $MODULES/{name}.ko\n" for name in MODULES)
MEASURE = f"""
# A thread in real time is to wait for the chain's interrupts only.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
/apic-timer report {{options}} --name {GUEST} /tmp/report
for file in /tmp/report/rows/{GUEST}/*.json; do
    put {GUEST}.$(basename $file) <$file
done
"""


def instruments(kernel: kernels.Kernel, options: str) -> Result:
    """Run the instruments in virtual time, without plug-ins; the result's files are for keep().

    options: of `apic-timer report`
    """
    built = build.build(kernel)
    say("report", "measuring in virtual time")
    started = time.monotonic()
    result = virtual.run(
        kernel, PREPARE + MEASURE.format(options=options), timeout=TIMEOUT,
        modules=[build.find_ko(built, name) for name in MODULES],
        files={"apic-timer": tool.tool()},
    )  # fmt: skip
    say("report", f"virtual time: done in {time.monotonic() - started:.0f} s")
    return result


def main(output: Path, *, brief: bool = True) -> int:
    """Make OUTPUT/index.html. Return an exit code; may raise LabError.

    brief: a short run, of some minutes
    """
    started = time.monotonic()
    kernel = kernels.ensure(SERIES)
    # Built here, because the guests below would build them at the same time.
    build.build(kernel)
    for name in ("caches", "ports"):
        plugins.plugin(name)
    with Background(max_workers=JOBS) as pool:
        guest = pool.submit(instruments, kernel, "--brief" * brief)
        model = [pool.submit(modelled.measure, kernel, loops, timers, **modelled.size(brief))
                 for loops, timers in modelled.PARTS]  # fmt: skip
        log = pool.submit(ports.measure, kernel)
        result = guest.result()
        found = {name: row for part in model for name, row in part.result().items()}
        accesses = ports.rows(*log.result())
    if not result.ok:
        print(f"report: {result.verdict}\n{result.output}\n{result.kernel_log}", file=sys.stderr)
        return 1
    keep(output, result.files, found, accesses)
    say("report", "measuring on this machine, without modules")
    done = subprocess.run([tool.tool(), "report", *["--brief"] * brief, "--name", HOST,
                           "--bench", BENCH, output]).returncode  # fmt: skip
    say("report", f"done in {time.monotonic() - started:.0f} s")
    return done


def keep(output: Path, files: Mapping[str, bytes], found: dict, accesses: dict) -> None:
    """Write the guests' results where the program reads them, replacing those already there.

    files: from instruments(); found: modelled results; accesses: to ports
    """
    rows = output / "rows" / GUEST
    rows.mkdir(parents=True, exist_ok=True)
    for file in rows.glob("*.json"):
        file.unlink()
    for name, text in files.items():
        if name.startswith(f"{GUEST}."):
            (rows / name.removeprefix(f"{GUEST}.")).write_bytes(text)
    (rows / "ports.json").write_text(json.dumps(accesses))
    modelled.write(found, output / "rows" / MODEL)
