"""The machines that these tests run in, and how one boot serves many tests.

Each test has a shell script, its section. The sections for a machine are concatenated into one
script, the machine is booted once, and each test then judges the output and exit status of its own
section. Where that one boot would outlast all others, the sections are spread over several: see
`Machine.boots`.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, get_native_id

from lab.base.background import Background
from lab.base.errors import LabError, LostVM
from lab.build import build, linuxptp, network, tool, user
from lab.engines.engines import ENGINES, run
from lab.engines.options import Guest
from lab.engines.result import Result
from lab.kernels import patched
from lab.kernels.kernels import Kernel

HERE = Path(__file__).resolve().parent
# Programs that guests find in $SHARED.
PROGRAMS = ("timerfd.py", "device.py", "uring.py", "measure.py", "calendar_rules.py", "rules.py")
# Sections that take less than twice this in total, in the seconds of share_out(), are not worth a
# second boot. It is also the default for a section of unknown length.
MINIMUM = 15
USUAL = 0.25
# The kernel's filter modules, and that of clsact, for sections that load them.
FILTERS = ("cls_u32", "cls_fw", "cls_flower", "cls_bpf", "cls_matchall", "sch_ingress")
# And the qdisc that shares LaunchTime with the qdisc `apic`.
RIVALS = ("sch_etf",)


@dataclass(frozen=True)
class Machine:
    """One virtual machine: a line of the table."""

    kernel: str
    cpus: int
    source: str = "proxy"
    # "smp": CPUs are threads, times mean nothing; "virtual": in virtual time, cycles may be
    # asserted; "bochs": TSC deadline, its own time too; "sleeper": as "smp", can suspend to RAM
    engine: str = "smp"
    x2apic: bool = False
    append: str = ""  # further kernel parameters
    compiler: str = "gcc"  # of the modules
    vendor: str = ""  # of the CPUs, as CPUID reports it; "smp" only
    matrix: bool = False  # with --matrix only
    brief: bool = False  # without --matrix, only for tests marked as brief
    boots: int = 1  # maximum number, over which its sections are spread
    # s, without the time that a niced guest waits for a CPU: lab/engines/limit.py. Bochs gets four
    # times as much.
    timeout: float = 1800

    @property
    def id(self) -> str:
        """Name of the machine, with which its tests' ids begin."""
        engine = "" if self.engine == "smp" else f"-{self.engine}"
        more = f"{'-x2apic' * self.x2apic}{'-' * bool(self.append)}{self.append}"
        compiler = "" if self.compiler == "gcc" else f"-{self.compiler}"
        return f"{self.kernel}-{self.cpus}cpu-{self.source}{engine}{more}{compiler}"

    @property
    def real_time(self) -> bool:
        """Whether its CPUs are threads of this machine, which may delay one for any time."""
        return ENGINES[self.engine].real_time

    @property
    def broadcast(self) -> bool:
        """Whether the kernel's tick comes from the HPET and is sent on to the other CPUs."""
        return self.append == "nolapic_timer"

    @property
    def tick_device(self) -> str:
        """Name of the kernel's tick device while the module is not loaded."""
        if self.broadcast:
            return "lapic" if self.cpus > 1 else "hpet"
        return "lapic-deadline" if self.engine == "bochs" else "lapic"


# One CPU has no races, so it runs in virtual time, where more can be asserted.
# An interface that differs between two kernels is met by some brief test, and on each kernel the
# compiler checks which one a module is built for. Therefore only 6.1 takes all tests without
# --matrix. The newest kernel is most likely to run where the LAPIC is an x2APIC.
TABLE = [
    Machine("6.1", 4),
    Machine("6.12", 4, matrix=True),
    Machine("7.2", 4, matrix=True),
    Machine("6.1", 2),
    Machine("6.12", 2, brief=True),
    Machine("7.2", 2, matrix=True),
    Machine("6.12", 2, source="hrtimer", brief=True),
    Machine("7.2", 2, x2apic=True, brief=True),
    # It takes most tests; in one boot they would occupy one CPU long after all others have ended.
    Machine("6.1", 1, engine="virtual", boots=2),
    Machine("6.12", 1, engine="virtual", brief=True),
    Machine("7.2", 1, engine="virtual", brief=True),
    Machine("6.1", 1, engine="virtual", compiler="clang", matrix=True),
    Machine("6.1", 1, source="hrtimer", engine="virtual"),
    Machine("6.1", 2, engine="virtual", brief=True),
    Machine("6.1", 1, engine="bochs", brief=True),
    Machine("7.2", 2, engine="bochs", x2apic=True, matrix=True),
    Machine("6.1-patched", 2, source="hook"),
    Machine("6.1-patched", 1, source="hook", engine="virtual"),
    Machine("6.1-patched", 2, source="hook", append="nolapic_timer", matrix=True),
    Machine("6.1-patched", 2, source="hook", engine="virtual", append="nolapic_timer", matrix=True),
    Machine("6.12-patched", 2, source="hook", matrix=True),
    Machine("6.12-patched", 2, source="hook", append="nolapic_timer", matrix=True),
    Machine("7.2-patched", 2, source="hook", matrix=True),
    Machine("7.2-patched", 2, source="hook", append="nolapic_timer", matrix=True),
    # Code under a run-time checker takes several times as long.
    Machine("6.1-debug", 2, matrix=True, timeout=3600),
    Machine("6.1-debug", 2, source="hook", matrix=True, timeout=3600),
    Machine("6.1-kcsan", 2, matrix=True, timeout=3600),
    Machine("6.1-rt", 2, matrix=True),
    Machine("7.2-rt", 2, matrix=True),
    Machine("7.3", 2, matrix=True),
    Machine("6.1-cloud", 1, engine="virtual", matrix=True),
    Machine("6.12", 2, engine="bochs", matrix=True),
    Machine("6.12", 1, engine="bochs", x2apic=True, matrix=True),
    Machine("6.1-patched", 2, source="hook", engine="bochs", matrix=True),
    Machine("6.1-patched", 1, source="hook", engine="bochs", append="nolapic_timer", matrix=True),
    Machine("6.1-patched", 2, source="hook", engine="bochs", append="nolapic_timer", matrix=True),
]


def some(**wanted) -> list[Machine]:
    """List the machines whose fields have these values (or one of them, for a tuple)."""

    def fits(machine: Machine) -> bool:
        for name, value in wanted.items():
            values = value if isinstance(value, tuple) else (value,)
            if getattr(machine, name) not in values:
                return False
        return True

    return [m for m in TABLE if fits(m)]


@dataclass(frozen=True)
class Section:
    """A part of a machine's script, for one test."""

    machine: Machine
    name: str
    script: str
    brief: bool = False
    late: bool = False  # with --matrix only


@dataclass(frozen=True)
class Share:
    """The sections that one boot of a machine runs, in order."""

    machine: Machine
    sections: tuple[Section, ...]


def share_out(
    machine: Machine, sections: Sequence[Section], seconds: Mapping[str, float]
) -> list[Share]:
    """Spread the sections of a machine over its boots: at least one, of about equal length.

    seconds: last duration of sections, by name; an unknown one counts as an average one. If all of
             them together take no longer than MINIMUM there is one boot.
    """
    usual = sum(seconds.values()) / len(seconds) if seconds else USUAL
    took = {section: seconds.get(section.name, usual) for section in sections}
    boots = max(1, min(machine.boots, int(sum(took.values()) / MINIMUM)))
    parts: list[list[Section]] = [[] for _ in range(boots)]
    length = [0.0] * boots
    for section in sorted(sections, key=took.get, reverse=True):
        shortest = length.index(min(length))
        parts[shortest].append(section)
        length[shortest] += took[section]
    return [Share(machine, tuple(s for s in sections if s in part)) for part in parts]


@dataclass(frozen=True)
class Outcome:
    """The results of a section."""

    output: str
    status: int
    machine: Machine

    def ok(self) -> str:
        """Return the output of a section that must have ended with status 0."""
        assert self.status == 0, f"exit status {self.status}\n{self.output}"
        return self.output


def needed_by(item) -> Machine | None:
    """Return the table's machine for a test, pytest's item, or None."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    machine = params["guest"].machine if "guest" in params else params.get("machine")
    return machine if isinstance(machine, Machine) else None


def is_long(item) -> bool:
    """Tell whether a test or a case is marked as long: --quick leaves it out."""
    marker = item.get_closest_marker("long")
    if marker is None:
        return False
    section = item.callspec.params.get("guest") if hasattr(item, "callspec") else None
    case = section.name.partition(":")[2] if section else ""
    return case not in marker.kwargs.get("but", ())


class Boot:
    """A machine that has run: with a result, or lost."""

    def __init__(self, seconds: float, result: Result | None, lost: LostVM | None):
        self.seconds = seconds  # wall time
        self._result, self.lost = result, lost
        self._judged = False
        self._text = result.output if result else lost.console

    @property
    def kernel_log(self) -> str:
        """The kernel's log; for a lost machine, all that was on its console."""
        return self._result.kernel_log if self._result else self.lost.console

    def result(self) -> Result:
        """Return the result of the machine as a whole; LostVM if it was lost."""
        if self.lost:
            raise self.lost
        return self._result

    def judge(self) -> None:
        """Check the machine as a whole, for a test whose section it ran, but only once.

        What is wrong with it need not be that section's fault: one failed test is enough.
        """
        if not self._judged:
            self._judged = True
            self.result().check()

    def outcome(self, section: Section) -> Outcome:
        """Return the outcome of a section; LostVM if the machine was lost before its end."""
        machine, name = section.machine, re.escape(section.name)
        found = re.search(
            rf"^@begin@ {name}\n(.*?)^@end@ {name} (\d+)$", self._text, re.DOTALL | re.MULTILINE
        )
        if found:
            return Outcome(found[1], int(found[2]), machine)
        if self.lost:
            raise self.lost
        raise LostVM("the section was not run to its end", self._text)


def boot(machine: Machine, sections: Sequence[Section], seed: int | None = None) -> Boot:
    """Run a machine with these sections, to its end.

    seed: for an engine that has one, instead of its default
    """
    kernel = patched.find(machine.kernel)
    modules = sorted(build.build(kernel, machine.compiler).rglob("*.ko"))
    files: dict[str, bytes | Path] = {name: (HERE / name).read_bytes() for name in PROGRAMS}
    for name in ("apic_timer.py", "apic_calendar.py"):
        files[name] = (build.TREE / "user" / name).read_bytes()
    files |= _taken(kernel, sections)
    script = _compose(machine, sections)
    slow = 4 if machine.engine == "bochs" else 1
    # crowd.c never frees its millions of timers.
    memory = 1024 if machine.engine == "virtual" else None
    guest = Guest(modules=modules, files=files, cpus=machine.cpus, memory=memory,
                  append=machine.append, timeout=machine.timeout * slow,
                  x2apic=machine.x2apic or None, vendor=machine.vendor or None,
                  seed=seed if "seed" in ENGINES[machine.engine].options else None)  # fmt: skip
    start = time.monotonic()
    try:
        result = run(machine.engine, kernel, script, guest)
    except LostVM as lost:
        return Boot(time.monotonic() - start, None, lost)
    return Boot(time.monotonic() - start, result, None)


def _taken(kernel: Kernel, sections: Iterable[Section]) -> dict[str, bytes | Path]:
    """Return the programs and kernel modules that sections use, building missing ones."""
    scripts = "\n".join(section.script for section in sections)
    files: dict[str, bytes | Path] = {}
    if "sch_apic" in scripts:
        files |= network.files(kernel)
    if "modules/cls_" in scripts:
        files |= network.own_modules(kernel, FILTERS)
    if "modules/sch_etf" in scripts:
        files |= network.own_modules(kernel, RIVALS)
    if programs := [name for name in linuxptp.PROGRAMS if name in scripts]:
        files |= linuxptp.files(programs)
    if "$TOOL" in scripts:
        files["apic-timer"] = tool.tool()
    if "/asleep " in scripts:
        files["asleep"] = user.program(kernel, "asleep")
    return files


def guarded(section: Section) -> str:
    """Return a section's commands so that the next section begins when all of them have ended."""
    return f"(set -e\ncd /\n{section.script}\nwait\n) 2>&1\n"


def _compose(machine: Machine, sections: Sequence[Section]) -> str:
    parts = [f"set +e\nSOURCE={machine.source} CPUS={machine.cpus}\n"]
    parts.append((HERE / "guest.sh").read_text())
    for section in sections:
        parts.append(
            f"\necho '@begin@ {section.name}'\n"
            f"mark '@begin@ {section.name}'\n"
            f"{guarded(section)}"
            f"echo '@end@ {section.name}' $?\n"
        )
    parts.append("mark '@over@'\nunload\n")
    return "".join(parts)


def prepare(scripts: Mapping[Machine, Iterable[Section]]) -> None:
    """Build the kernels, modules and programs that machines need with their sections.

    boot() reports failures for its machine.
    """
    wanted: dict[tuple[str, str], list[Section]] = {}
    for machine, sections in scripts.items():
        wanted.setdefault((machine.kernel, machine.compiler), []).extend(sections)
    for name, compiler in sorted(wanted):
        with suppress(LabError):
            kernel = patched.find(name)
            build.build(kernel, compiler)
            _taken(kernel, wanted[name, compiler])


NICE = 19  # of machines that use only CPU time that others leave


def _be_nice() -> None:
    """Restrict this thread, and what it starts, to CPU time that others leave."""
    os.setpriority(os.PRIO_PROCESS, get_native_id(), NICE)


class Pool:
    """Boots machines in the background, as many at once as it has workers.

    One fewer until a test waits for them: before, the tests boot machines of their own.

    Machines in real time idle half of the time, and must not wait for a CPU. Therefore those in
    virtual time have an equal number of workers of their own, which are niced and take the
    remaining CPU time.

    boot:    function that runs a machine with a list of sections
    prepare: function that builds everything that boots of some machines need
    workers: of each kind; by default, as many as this machine has CPUs
    expected: expected seconds of machines, by id: the longest boots begin first, so that the last
              to end is short; unknown ones come before them, in the order of the table
    """

    def __init__(
        self,
        boot: Callable[[Machine, Sequence[Section]], Boot] = boot,
        workers: int | None = None,
        expected: Mapping[str, float] | None = None,
        prepare: Callable[[Mapping[Machine, Sequence[Section]]], None] = prepare,
        took: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self._run, self._prepare, self._workers = boot, prepare, workers or os.cpu_count()
        self._expected, self._took = expected or {}, took or {}
        self.boots: list[tuple[Machine, Boot]] = []  # all that have ended, including second boots
        self._executors = {
            True: Background(max_workers=self._workers),
            False: Background(max_workers=self._workers, initializer=_be_nice),
        }  # keyed by whether they are for machines in real time
        self._waited_for = Event()
        self._shares: dict[Machine, list[Share]] = {}
        self._boots: dict[Share, Future[Boot]] = {}
        self._again: dict[Share, Boot] = {}  # second boots of lost machines

    def plan(self, sections: Iterable[Section], others: Iterable[Machine]) -> None:
        """Plan the needed machines; each gets its sections in the order given.

        Outcomes are found by name: ValueError if a machine gets two sections with the same name.
        """
        scripts: dict[Machine, list[Section]] = {machine: [] for machine in others}
        for section in sections:
            script = scripts.setdefault(section.machine, [])
            if any(other.name == section.name for other in script):
                raise ValueError(f"{section.machine.id}: two sections named {section.name}")
            script.append(section)
        self._shares = {
            machine: share_out(machine, script, self._took.get(machine.id, {}))
            for machine, script in scripts.items()
        }

    def shares(self, machine: Machine) -> list[Share]:
        """List the shares that a machine's boots run."""
        return self._shares[machine]

    def share(self, section: Section) -> Share:
        """Return the share that contains a section."""
        return next(s for s in self._shares[section.machine] if section in s.sections)

    def start(self) -> None:
        """Start the machines, unless they have been started.

        Everything is built first, by a thread that is not niced: next to a build a machine may run
        out of time, and tests that need the same modules or programs wait for the builder.
        """
        if self._boots or not self._shares:
            return
        wanted = {machine: [section for share in shares for section in share.sections]
                  for machine, shares in self._shares.items()}  # fmt: skip
        ready = self._executors[True].submit(self._prepare, wanted)
        if self._workers > 1:
            for executor in self._executors.values():
                executor.submit(self._waited_for.wait)

        def once_built(share: Share) -> Boot:
            wait([ready])
            return self._boot(share.machine, share.sections)

        order = {machine: number for number, machine in enumerate(TABLE)}

        def rank(share: Share) -> tuple[float, int]:
            machine = share.machine
            seconds = self._expected.get(machine.id, float("inf")) / len(self._shares[machine])
            return -seconds, order.get(machine, len(order))

        every = [share for shares in self._shares.values() for share in shares]
        for share in sorted(every, key=rank):
            executor = self._executors[share.machine.real_time]
            self._boots[share] = executor.submit(once_built, share)

    def _boot(self, machine: Machine, sections: Sequence[Section]) -> Boot:
        found = self._run(machine, sections)
        self.boots.append((machine, found))
        return found

    def get(self, share: Share) -> Boot:
        """Wait for a machine."""
        self._waited_for.set()
        return self._again.get(share) or self._boots[share].result()

    def again(self, share: Share, section: Section | None = None) -> Boot:
        """Boot a machine once more for one section; if it was lost, for all, and only once."""
        if not self.get(share).lost:
            return self._boot(share.machine, [section] if section else share.sections)
        if share not in self._again:
            self._again[share] = self._boot(share.machine, share.sections)
        return self._again[share]

    def ended(self) -> dict[Machine, list[Boot]]:
        """Return each completed boot of each machine, for all its shares, each once."""
        found = {}
        for machine, shares in self._shares.items():
            boots = [self._boots[share] for share in shares if share in self._boots]
            if len(boots) == len(shares) and all(
                b.done() and not b.cancelled() and not b.exception() for b in boots
            ):
                found[machine] = [b.result() for b in boots]
        return found

    def close(self) -> None:
        """End the running machines, and start no more."""
        self._waited_for.set()
        for executor in self._executors.values():
            executor.end()
