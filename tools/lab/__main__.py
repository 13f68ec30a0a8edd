"""Use the lab by hand: ``PYTHONPATH=tools python3 -m lab --help``."""

import argparse
import signal
import sys
from pathlib import Path

from .base.background import heed_signals
from .base.errors import LabError
from .bench import bochs as bench_bochs
from .bench import host
from .bench import main as bench
from .build import build
from .engines import qemu
from .engines.engines import ENGINES, run
from .engines.options import Guest
from .kernels import deb, kernels, patched
from .run import (
    demo,
    demo_calendar,
    demo_shaper,
    kunit,
    package,
    profile,
    renew,
    report,
    shaper,
    torture,
)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab", description="stock kernels in virtual machines")
    sub = parser.add_subparsers(dest="command", required=True)
    show = sub.add_parser("demo", help="show apic_timer's timers at work, next to the kernel's")
    show.add_argument("--verbose", action="store_true", help="also print log, trace and counters")
    sub.add_parser("demo-calendar", help="run threads and a function from a table")
    sub.add_parser("demo-shaper", help="shape a burst by our qdisc and by the kernel's")
    shaping = sub.add_parser("shaper", help="run the shaper's benchmark, draw the paper's figures")
    shaping.add_argument("--short", action="store_true", help="only a few minutes of it")
    shaping.add_argument("--only", nargs="*", default=[], help="parts to run")
    shaping.add_argument("--kernel", default=shaper.SERIES, help='such as "7.2"')
    shaping.add_argument("--jobs", type=int, default=2, help="number of guests to run at once")
    shaping.add_argument("--output", type=Path, default=build.TREE / "build")
    shaping.add_argument("--no-plots", action="store_true")
    shaping.add_argument("--again", action="store_true",
                         help="repeat what an earlier run has measured")  # fmt: skip
    reporting = sub.add_parser("report", help="measure with apic-timer, and make a page of it")
    reporting.add_argument("--full", action="store_true", help="as many shots as the papers")
    reporting.add_argument("--output", type=Path, default=build.TREE / "build/report")
    benchmark = sub.add_parser("bench", help="measure our timers next to the kernel's")
    benchmark.add_argument("--short", action="store_true", help="only a few minutes of it")
    benchmark.add_argument("--engine", choices=("virtual", "bochs"), default="virtual")
    benchmark.add_argument("--host", action="store_true", help="run on this machine, as root")
    benchmark.add_argument("--modules", type=Path, help="with --host: directory of the .ko files")
    benchmark.add_argument("--output", type=Path, default=build.TREE / "build")
    benchmark.add_argument("--no-plots", action="store_true")
    benchmark.add_argument("--only", nargs="*", default=[], help="benchmarks to run")
    benchmark.add_argument("--kernel", default=bench.SERIES, help='such as "6.1-patched"')
    benchmark.add_argument("--source", default="proxy", help='"hook" on a patched kernel')
    benchmark.add_argument("--append", default="", help='such as "nolapic_timer"')
    benchmark.add_argument("--jobs", type=int, default=2, help="number of guests to run at once")
    benchmark.add_argument("--again", action="store_true",
                           help="repeat what an earlier run has measured")  # fmt: skip
    profiling = sub.add_parser("profile", help="count the instructions of each function")
    profiling.add_argument("parts", nargs="*",
                           help=f"default: {' '.join(profile.PARTS)}")  # fmt: skip
    profiling.add_argument("--script", type=Path, help="script of your own, see run/profile.py")
    profiling.add_argument("--kernel", default=profile.SERIES, help='such as "7.2"')
    profiling.add_argument("--top", type=int, default=profile.TOP, help="functions to print")
    tormentor = sub.add_parser("torture", help="run random operations, check every expiry")
    tormentor.add_argument("--kernel", default="6.1", help='such as "7.2" or "6.1-patched"')
    tormentor.add_argument("--cpus", type=int, default=2)
    tormentor.add_argument("--hours", type=float, default=1, help="duration, such as 0.1")
    tormentor.add_argument("--source", default="auto", help='such as "hrtimer"')
    tormentor.add_argument("--onoff", type=int, default=1000, metavar="MS",
                           help="interval at which a CPU is taken offline; 0: never")  # fmt: skip
    tormentor.add_argument("--seed", type=int, default=1)
    tormentor.add_argument("parameters", nargs="*", help="module parameters, such as rate=1000")
    listing = sub.add_parser("kernels", help="fetch or build kernels into the cache and list them")
    listing.add_argument("series", nargs="*", default=list(kernels.SUPPORTED),
                         help=f"stock: 6.1; built here: {', '.join(patched.names())}")  # fmt: skip
    sub.add_parser("lock", help="renew packages.lock from Debian's archive")
    patched_deb = sub.add_parser("deb", help="build Debian packages of a patched kernel")
    patched_deb.add_argument("series")
    patched_deb.add_argument("--config", type=Path, help="default: Debian's")
    patched_deb.add_argument("--output", type=Path, default=build.TREE / "build")
    packages = sub.add_parser("package", help="build the Debian packages of this tree")
    packages.add_argument("suites", nargs="*", help=f"default: {' '.join(package.SUITES)}")
    # Has its own options: see main().
    sub.add_parser("kunit", add_help=False, help="run KUnit suites (lab kunit --help)")
    building = sub.add_parser("build", help="build this tree's modules for a kernel")
    building.add_argument("series")
    for name, engine in ENGINES.items():
        guest = sub.add_parser(name, help=f"build, then run a shell script in a guest "
                                          f"{engine.guests}")  # fmt: skip
        guest.add_argument("series")
        guest.add_argument("script", help="script file, or - for standard input")
        guest.add_argument("--cpus", type=int)
        guest.add_argument("--append", default="", help="kernel parameters")
        guest.add_argument("--timeout", type=float, default=300, help="wall time in seconds")
        guest.add_argument("--no-modules", action="store_true", help="do not build modules")
        guest.add_argument("--files", type=Path, help="directory for files that the guest `put`s")
        guest.add_argument("--console", action="store_true", help="also print the console")
        if "x2apic" in engine.options:
            guest.add_argument("--x2apic", action="store_true", default=None)
        if "seed" in engine.options:
            guest.add_argument("--seed", type=int)
        if "then" in engine.options:
            guest.add_argument("--then", type=Path, required=True,
                               help="script for the kernel that takes over")  # fmt: skip
        if "certificates" in engine.options:
            guest.add_argument("--certificate", type=Path, action="append", dest="certificates",
                               help="X.509, for the firmware's db; may be repeated")  # fmt: skip
    return parser.parse_args()


def _guest(args: argparse.Namespace) -> int:
    kernel = patched.find(args.series)
    script = sys.stdin.read() if args.script == "-" else Path(args.script).read_text()
    modules = [] if args.no_modules else sorted(build.build(kernel).rglob("*.ko"))
    asked = {name: getattr(args, name, None)
             for name in ("cpus", "append", "timeout", "x2apic", "seed", "certificates")
             }  # fmt: skip
    if getattr(args, "then", None):
        asked["then"] = args.then.read_text()
    result = run(args.command, kernel, script, Guest(modules=modules, **asked))
    if args.console:
        sys.stdout.write(result.console)
    sys.stdout.write(result.before + result.output)
    if args.files:
        for name, data in result.files.items():
            (args.files / name).parent.mkdir(parents=True, exist_ok=True)
            (args.files / name).write_bytes(data)
    if not result.ok:
        print(f"lab: {result.verdict}", file=sys.stderr)
    return 0 if result.ok else 1


def _bench(args: argparse.Namespace) -> int:
    common = {"short": args.short, "only": args.only, "output": args.output}
    if args.engine == "bochs":
        return bench_bochs.main(jobs=args.jobs, **common)
    common["plots"] = not args.no_plots
    if args.host:
        return host.main(args.modules, **common)
    return bench.main(jobs=args.jobs, series=args.kernel, source=args.source, append=args.append,
                      again=args.again, **common)  # fmt: skip


def main() -> int:
    """Run the command line; return 0 on success, 1 for a guest's bad verdict, 2 if nothing ran."""
    heed_signals()
    if sys.argv[1:2] == ["kunit"]:
        return kunit.main(sys.argv[2:])
    args = _arguments()
    try:
        if args.command == "demo":
            return demo.main(verbose=args.verbose)
        if args.command == "demo-calendar":
            return demo_calendar.main()
        if args.command == "demo-shaper":
            return demo_shaper.main()
        if args.command == "shaper":
            return shaper.main(short=args.short, only=args.only, jobs=args.jobs,
                               output=args.output, series=args.kernel, again=args.again,
                               plots=not args.no_plots)  # fmt: skip
        if args.command == "report":
            return report.main(args.output, brief=not args.full)
        if args.command == "bench":
            return _bench(args)
        if args.command == "profile":
            script = args.script.read_text() if args.script else None
            return profile.main(args.parts, args.kernel, script, args.top)
        if args.command == "torture":
            return torture.main(torture.Torture(
                args.kernel, args.cpus, max(1, round(args.hours * 3600)), args.source, args.onoff,
                args.seed, tuple(args.parameters)))  # fmt: skip
        if args.command == "kernels":
            for series in args.series:
                kernel = patched.find(series)
                print(f"{series:12} {kernel.release:28} {kernel.root}")
            print(qemu.version())
            return 0
        if args.command == "lock":
            return renew.main()
        if args.command == "deb":
            print(*deb.build(args.series, args.config, args.output), sep="\n")
            return 0
        if args.command == "package":
            return package.main(args.suites)
        if args.command == "build":
            print(build.build(patched.find(args.series)))
            return 0
        return _guest(args)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


sys.exit(main())
