"""Run tests/modules/torture/*.c in one SMP guest, for any length of time."""

import re
import shlex
import sys
from collections.abc import Iterable

from ..base.progress import say
from ..build import build
from ..engines import smp
from ..engines.result import Result
from ..kernels import patched

BOOT = 900  # further seconds that a guest may take, on a busy machine
REPORTS = 60  # seconds from one line of progress to the next

SCRIPT = """
insmod $MODULES/apic_timer.ko source={source}
insmod $MODULES/apic_timer_torture.ko {parameters}
result=/sys/kernel/debug/apic_timer_torture/result
while grep -q ^running $result; do
    sleep 5
done
cat $result
verdict=$(cut -d ' ' -f 1 $result)
rmmod apic_timer_torture
rmmod apic_timer
[ "$verdict" = ok ]
"""


def main(
    series: str,
    cpus: int,
    hours: float,
    *,
    source: str = "auto",
    onoff: int = 0,
    seed: int = 1,
    parameters: Iterable[str] = (),
) -> int:
    """Torture a kernel; print the summary line, and progress to standard error.

    hours:      duration, in the guest's time, which is wall time
    onoff:      ms between one CPU's going offline and the next one's, 0 for never
    parameters: further ones of the module; `modinfo` lists them

    Return 0 on success, 1 if a shot's fate or the kernel log was bad; LabError otherwise.
    """
    seconds = max(1, round(hours * 3600))
    result = run(series, cpus, seconds, source=source, onoff=onoff, seed=seed,
                 parameters=parameters)  # fmt: skip
    if result.ok:
        checked = fates(result)
        say("torture", f"{checked:,} fates checked, {checked / seconds:,.0f} per second")
        sys.stdout.write(result.output)
        return 0
    sys.stdout.write(f"{result.output}--- end of the kernel log ---\n{result.kernel_log[-4000:]}")
    say("torture", result.verdict)
    return 1


def run(
    series: str,
    cpus: int,
    seconds: int,
    *,
    source: str = "auto",
    onoff: int = 0,
    seed: int = 1,
    parameters: Iterable[str] = (),
) -> Result:
    """Run it, for seconds of the guest's time; the other arguments are those of main()."""
    kernel = patched.find(series)
    say("torture", f"building the modules for {kernel.release}")
    modules = sorted(build.build(kernel).rglob("*.ko"))
    every = [f"duration={seconds}", f"report={REPORTS}", f"onoff={onoff if cpus > 1 else 0}",
             f"seed={seed}", *parameters]  # fmt: skip
    say("torture", f"{cpus} CPUs, {' '.join(every)}")
    script = SCRIPT.format(source=shlex.quote(source), parameters=shlex.join(every))
    return smp.run(kernel, script, modules=modules, cpus=cpus, timeout=seconds + BOOT,
                   follow=_progress)  # fmt: skip


def fates(result: Result) -> int:
    """Return the number of expiries whose fate a run has checked."""
    return int(re.search(r"\bfates=(\d+)", result.output)[1])


def _progress(line: str) -> None:
    """Print the torture's lines of the console."""
    if found := re.search(r"apic_timer_torture: (.*)", line):
        say("torture", found[1])
