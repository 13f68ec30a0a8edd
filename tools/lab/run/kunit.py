"""Run the KUnit suites of a target and report the outcome of each case.

`um` runs the suites of tests/kunit, in simulated time under UML; `x86_64` those of tests/accuracy,
on a LAPIC timer, in QEMU's virtual time. The kernel is Debian's linux-source-6.1, unpacked once
into the cache. The tree's module/, include/ and suites are copied to drivers/apic-timer there, and
kunit.py configures, builds and runs it. First builds take some minutes, later ones seconds.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..base.cache import cache_dir, fresh_dir, is_complete, locked
from ..base.errors import BuildError, LabError
from ..engines import qemu, splats
from ..kernels import sources

TREE = Path(__file__).resolve().parents[3]
SOURCES = ["Kbuild", "Kconfig", "module", "include", "tests/kunit", "tests/accuracy"]
KINDS = {".c", ".h", ".S"}  # as well as files named Kbuild, Kconfig and .kunitconfig
SERIES = "6.1"
OVERLAY = "drivers/apic-timer"
COMPILER = "built-by"  # in a build directory: what the compiler says of itself
# A warning that a case provokes and has announced.
EXPECTED = re.compile(r"splat expected\n.*?---\[ end trace .*?\n", re.DOTALL)


@dataclass(frozen=True)
class Target:
    """A kernel, and the suites that run on it."""

    name: str
    arch: str  # kunit.py's name for it
    tests: str  # directory of the suites and of their .kunitconfig
    parameters: tuple[str, ...] = ()  # for the kernel; {seed} is filled in
    virtual_time: bool = False  # in QEMU

    def declared(self) -> list[str]:
        """List SUITE.CASE for each KUNIT_CASE() in the sources; each source has one suite."""
        found = []
        for source in sorted((TREE / self.tests).glob("*_test.c")):
            text = source.read_text()
            (suite,) = re.findall(r'^\t\.name = "(\w+)",$', text, re.MULTILINE)
            cases = re.findall(r"^\tKUNIT_CASE\w*\((\w+)", text, re.MULTILINE)
            if not cases:
                raise LabError(f"{source.name} has no KUNIT_CASE()")
            found += [f"{suite}.{case}" for case in cases]
        return found


ACCURACY = (
    "apic_timer_accuracy.virtual_time=1",
    "apic_timer_accuracy.source=proxy",
    "apic_timer_accuracy.seed={seed}",
    *splats.PARAMETERS.split(),
)
TARGETS = {
    target.name: target
    for target in (
        Target("um", "um", "tests/kunit"),
        Target("x86_64", "x86_64", "tests/accuracy", ACCURACY, virtual_time=True),
    )
}


@dataclass(frozen=True)
class Case:
    """Outcome of one KUnit case."""

    suite: str
    name: str
    status: str  # "PASS", "FAIL", "SKIP" or "ERROR"
    log: str  # the kernel's output while it ran


@dataclass(frozen=True)
class Run:
    """A completed run; `problems` has those that belong to no case."""

    cases: list[Case]
    problems: list[str]
    console: str
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        """Whether every case passed and nothing else was wrong."""
        return not self.problems and all(c.status == "PASS" for c in self.cases)

    def case(self, name: str) -> Case | None:
        """Return the outcome of SUITE.CASE; None if it gave no verdict."""
        found = [c for c in self.cases if f"{c.suite}.{c.name}" == name]
        return found[0] if found else None


def run(name: str, pattern: str = "", timeout: int = 300, seed: int = 42) -> Run:
    """Build the tree into the kernel of a target and run the cases that match `pattern`, or all.

    timeout: seconds of wall time for all of the cases
    seed:    in virtual time, a different one gives an independent sample

    BuildError if it does not build; LabError if the sources are not available or the run gave no
    verdict: no case at all, a crash, the time limit.
    """
    target = TARGETS[name]
    began = time.monotonic()
    source = ensure_source()
    with locked("kunit"):
        fetched = time.monotonic()
        _overlay(source / OVERLAY)
        renew_for_compiler(_build_dir(source, target))
        _kunit(source, target, "build", [
            f"--jobs={_jobs()}",
            f"--kunitconfig={source / OVERLAY / target.tests / '.kunitconfig'}",
        ])  # fmt: skip
        built = time.monotonic()
        result = _build_dir(source, target) / "result.json"
        result.unlink(missing_ok=True)
        log = _build_dir(source, target) / "test.log"
        log.unlink(missing_ok=True)
        output = _kunit(source, target, "exec", [
            f"--timeout={timeout}",
            f"--json={result}",
            *(f"--kernel_args={p.format(seed=seed)}" for p in target.parameters),
            *(f"--qemu_args={o}" for o in qemu.virtual_time(seed) if target.virtual_time),
            *([pattern] if pattern else []),
        ], check=False)  # fmt: skip
        ended = time.monotonic()
        console = log.read_text(errors="replace") if log.exists() else ""
        if not result.exists():
            raise LabError(f"no result from KUnit:\n{output[-2000:]}\n{console[-4000:]}")
        tree = json.loads(result.read_text())
    return _judge(tree, console, {
        "sources": fetched - began, "build": built - fetched, "run": ended - built,
    })  # fmt: skip


def ensure_source() -> Path:
    """Return the tree of the locked kernel source in the cache, unpacking it if there is none."""
    packed = sources.ensure(SERIES)
    final = cache_dir("kunit") / f"{packed.package}_{packed.version}"
    with locked("kunit-source"):
        if not is_complete(final):
            with fresh_dir(final) as root:
                sources.unpack(packed, root, sources.SMALL)
                _add_line(root / "drivers/Kconfig", f'source "{OVERLAY}/Kconfig"\n', "endmenu\n")
                _add_line(root / "drivers/Makefile", "obj-y += apic-timer/\n")
    return final


def _add_line(path: Path, line: str, before: str = "") -> None:
    """Add a line to a file of the kernel, at its end or before its last line `before`."""
    text = path.read_text()
    if not text.endswith(before):
        raise LabError(f"{path.name} of Linux {SERIES} does not end as expected")
    path.write_text(text.removesuffix(before) + line + before if before else text + line)


def _overlay(target: Path) -> None:
    """Make `target` a copy of our sources, writing only files whose contents have changed."""
    wanted = {}
    for name in SOURCES:
        path = TREE / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            named = file.name in ("Kbuild", "Kconfig", ".kunitconfig") or file.suffix in KINDS
            if file.is_file() and named and not file.name.endswith(".mod.c"):
                wanted[file.relative_to(TREE)] = file.read_bytes()
    wanted[Path("Kbuild")] += b"subdir-ccflags-y += -Werror\n"
    for file in sorted(target.rglob("*")) if target.exists() else []:
        if file.is_file() and file.relative_to(target) not in wanted:
            file.unlink()
    for relative, data in wanted.items():
        file = target / relative
        if not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def _build_dir(source: Path, target: Target) -> Path:
    return source.with_name(f"build-{target.arch}-{source.name}")


def renew_for_compiler(directory: Path) -> None:
    """Empty a directory in which another compiler has built, or an unknown one.

    What make has noted of the headers of a compiler cannot be made if that one is gone, as after
    the host's upgrade to another release.
    """
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True,
                              check=True).stdout  # fmt: skip
    stamp = directory / COMPILER
    if directory.exists() and not (stamp.exists() and stamp.read_text() == compiler):
        shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)
    stamp.write_text(compiler)


def _jobs() -> int:
    return len(os.sched_getaffinity(0))


def _kunit(source: Path, target: Target, command: str, arguments: list[str],
           check: bool = True) -> str:  # fmt: skip
    """Run a command of the kernel's kunit.py; return its output."""
    path = os.environ["PATH"]
    if target.virtual_time:  # kunit.py runs the QEMU that it finds in the path
        path = f"{qemu.binary().parent}:{path}"
    done = subprocess.run(
        [sys.executable, "tools/testing/kunit/kunit.py", command, f"--arch={target.arch}",
         f"--build_dir={_build_dir(source, target)}", *arguments],
        cwd=source, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        check=False,
    )  # fmt: skip
    if check and done.returncode:
        raise BuildError(f"kunit.py {command} failed:\n{done.stdout[-6000:]}")
    return done.stdout


def _judge(tree: dict, console: str, seconds: dict[str, float]) -> Run:
    """Combine kunit.py's verdicts with the console's logs."""
    logs, outside = _split(console)
    problems = [f"in the kernel log, outside any case: {line}" for line in splats.find(outside)]
    cases = []
    for suite in tree["sub_groups"]:
        if not suite["test_cases"] and not suite["sub_groups"]:
            problems.append(f"suite {suite['name']} has no case")
        for case in [*suite["test_cases"], *_parametrised(suite)]:
            log = logs.get((suite["name"], case["name"]))
            status = case["status"]
            if status == "PASS" and (log is None or splats.find(EXPECTED.sub("", log))):
                status = "FAIL" if log else "ERROR"
            cases.append(Case(suite["name"], case["name"], status, log or ""))
    if not cases:
        raise LabError(f"no KUnit case ran:\n{console[-4000:]}")
    return Run(cases, problems, console, seconds)


def _parametrised(suite: dict) -> list[dict]:
    """Return the cases that kunit.py shows as groups because they ran once per parameter."""
    worst = ["ERROR", "FAIL", "PASS", "SKIP"]
    found = []
    for group in suite["sub_groups"]:
        states = [c["status"] for c in group["test_cases"]] or ["ERROR"]
        found.append({"name": group["name"], "status": min(states, key=worst.index)})
    return found


def _split(console: str) -> tuple[dict[tuple[str, str], str], str]:
    """Split the console into the log of each case and the rest."""
    logs, rest, lines, suite = {}, [], [], None
    for line in console.splitlines():
        lines.append(line)
        if found := re.match(r"    # Subtest: (\w+)", line):
            suite = found[1]
            rest += lines
            lines = []
        elif (found := re.match(r"    (?:not )?ok \d+(?: -)? (\w+)", line)) and suite:
            logs[suite, found[1]] = "\n".join(lines)
            lines = []
        elif re.match(r"(not )?ok \d+", line):
            rest += lines
            lines = []
            suite = None
    return logs, "\n".join(rest + lines)


def main(argv: list[str] | None = None) -> int:
    """Run the suites and print one line per case; exit status 0 if all passed."""
    parser = argparse.ArgumentParser(prog="python3 -m lab kunit", description=main.__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="SUITE or SUITE.CASE, with * and ?")
    parser.add_argument("--arch", choices=TARGETS, default="um", help="target, and thereby kernel")
    parser.add_argument("--seed", type=int, default=42, help="seed of a guest in virtual time")
    parser.add_argument("--timeout", type=int, default=300, help="time limit of all cases, in s")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole log")
    options = parser.parse_args(argv)
    try:
        result = run(options.arch, options.pattern, options.timeout, options.seed)
    except LabError as error:
        print(f"kunit: {error}", file=sys.stderr)
        return 2
    for case in result.cases:
        print(f"{case.status:5} {case.suite}.{case.name}")
        if options.verbose or case.status != "PASS":
            print("\n".join(f"      {line}" for line in case.log.splitlines()))
    for problem in result.problems:
        print(f"ERROR {problem}")
    failed = sum(c.status != "PASS" for c in result.cases)
    times = ", ".join(f"{name} {value:.1f} s" for name, value in result.seconds.items())
    print(f"{len(result.cases)} cases, {failed} not passed, {len(result.problems)} other problems; "
          f"{times}")  # fmt: skip
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
