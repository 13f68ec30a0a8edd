"""Run tests/modules/torture/*.c in one SMP guest, for any length of time."""

import re
import shlex
import sys
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Torture:
    """What to torture, and how."""

    series: str  # of the kernel
    cpus: int
    seconds: int  # of the guest's time, which is wall time
    source: str = "auto"
    onoff: int = 0  # ms between one CPU's going offline and the next one's, 0 for never
    seed: int = 1
    parameters: tuple[str, ...] = ()  # further ones of the module; `modinfo` lists them

    def words(self) -> list[str]:
        """List the parameters of the module."""
        onoff = self.onoff if self.cpus > 1 else 0
        return [f"duration={self.seconds}", f"report={REPORTS}", f"onoff={onoff}",
                f"seed={self.seed}", *self.parameters]  # fmt: skip


def main(torture: Torture) -> int:
    """Torture a kernel; print the summary line, and progress to standard error.

    Return 0 on success, 1 if a shot's fate or the kernel log was bad; LabError otherwise.
    """
    result = run(torture)
    if result.ok:
        checked = fates(result)
        say("torture", f"{checked:,} fates checked, {checked / torture.seconds:,.0f} per second")
        sys.stdout.write(result.output)
        return 0
    sys.stdout.write(f"{result.output}--- end of the kernel log ---\n{result.kernel_log[-4000:]}")
    say("torture", result.verdict)
    return 1


def run(torture: Torture) -> Result:
    """Torture a kernel."""
    kernel = patched.find(torture.series)
    say("torture", f"building the modules for {kernel.release}")
    modules = sorted(build.build(kernel).rglob("*.ko"))
    words = torture.words()
    say("torture", f"{torture.cpus} CPUs, {' '.join(words)}")
    script = SCRIPT.format(source=shlex.quote(torture.source), parameters=shlex.join(words))
    return smp.run(kernel, script, modules=modules, cpus=torture.cpus,
                   timeout=torture.seconds + BOOT, follow=_progress)  # fmt: skip


def fates(result: Result) -> int:
    """Return the number of expiries whose fate a run has checked."""
    return int(re.search(r"\bfates=(\d+)", result.output)[1])


def _progress(line: str) -> None:
    """Print the torture's lines of the console."""
    if found := re.search(r"apic_timer_torture: (.*)", line):
        say("torture", found[1])
