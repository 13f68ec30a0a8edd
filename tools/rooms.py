"""Rooms: which file may know which. `make check` runs these checks, as does this file itself.

A room is a folder. A file may use files of its own room and of lower rooms, never of a higher one,
and files must not use each other in a circle. For the kernel modules this applies both to a
source's includes and to its object's links, because an inline function can hide a call from the
one, and a header from the other; for the lab, to a file's imports.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

# From the bottom up; "." is the module's own folder.
CORE = ("compat", "trace", "tsc", "lib", "hw", "policy", "mux", "timers", "sources", ".")
LAB = ("base", "kernels", "build", "engines", "bench", "run", ".")
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')

Uses = dict[str, set[str]]  # a file, without .c, .h or .py: the files that it uses


def main() -> int:
    """Check the sources; `make check` checks objects, because it builds them."""
    found = [*includes(Path("module")), *imports(Path("tools/lab"))]
    print("\n".join(found) or "no file uses one of a room above its own, and there are no cycles")
    return 1 if found else 0


def includes(modules: Path) -> list[str]:
    """Check what the sources of the kernel modules include.

    Each include names its room: "mux/mux.h". Of other modules' headers a module includes only the
    public ones: see `_stranger`.
    """
    found = []
    for module in sorted(path for path in modules.iterdir() if path.is_dir()):
        uses: Uses = {}
        for file in sorted(module.rglob("*.[ch]")):
            name = str(file.relative_to(module).with_suffix(""))
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if not (match := INCLUDE.match(line)):
                    continue
                used = Path(match[1])
                if ".." not in used.parts and (module / used).is_file():
                    if str(used.with_suffix("")) != name:
                        uses.setdefault(name, set()).add(str(used.with_suffix("")))
                elif why := _stranger(module, used, quoted='"' in line):
                    found.append(f"{file}:{number}: {used} is {why}")
        order = CORE if module.name == "core" else (".",)
        found += _judge(f"module/{module.name}", uses, order)
    return found


def _stranger(module: Path, used: Path, quoted: bool) -> str:
    """Say why a module must not include a header from outside its folder; "" if it may.

    Headers in include/ for other modules and for programs are public. Trace events belong to their
    module; and the core, on which the others depend, knows none of their headers.
    """
    if quoted or ".." in used.parts:
        return f"not a file of module/{module.name}/"
    others = sorted(path for path in module.parent.iterdir() if path.is_dir() and path != module)
    if not (module.parents[1] / "include" / used).is_file():
        owners = [other.name for other in others if (other / used).is_file()]
        return f"a file of module/{owners[0]}/" if owners else ""
    private = used.parent == Path("trace/events") or module.name == "core"
    owners = [other.name for other in others if private and _makes(other, used.stem)]
    return f"of module/{owners[0]}/" if owners else ""


def _makes(module: Path, name: str) -> bool:
    """Tell whether a folder makes the module NAME.ko."""
    kbuild = module / "Kbuild"
    return kbuild.is_file() and bool(re.search(rf"^obj-.*\b{name}\.o\b", kbuild.read_text(), re.M))


def links(modules: Path) -> list[str]:
    """Check what the objects of each kernel module link to, in a folder where all were built."""
    found = []
    for module in sorted(path for path in modules.iterdir() if path.is_dir()):
        order = CORE if module.name == "core" else (".",)
        if objects := _objects(module):
            found += _judge(f"module/{module.name} (objects)", _links(objects), order)
        else:
            found.append(f"module/{module.name}: no object of a source in {module}")
    return found or ([] if any(modules.iterdir()) else [f"no kernel module in {modules}"])


def _objects(module: Path) -> dict[str, Path]:
    """Find what was compiled from each source of the module, but not what modpost wrote for it.

    Names are those of the sources without .c, so the linked object is not among them.
    """
    sources = sorted(file for file in module.rglob("*.c") if not file.name.endswith(".mod.c"))
    return {
        str(source.relative_to(module).with_suffix("")): source.with_suffix(".o")
        for source in sources
        if source.with_suffix(".o").is_file()
    }


def _links(objects: dict[str, Path]) -> Uses:
    owner = {
        symbol: name
        for name, file in objects.items()
        for symbol in _symbols(file, "--defined-only")
    }
    return {
        name: {owner[symbol] for symbol in _symbols(file, "--undefined-only") if symbol in owner}
        for name, file in objects.items()
    }


def _symbols(file: Path, which: str) -> set[str]:
    done = subprocess.run(["nm", "-g", which, file], check=True, stdout=subprocess.PIPE, text=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def imports(lab: Path) -> list[str]:
    """Check what the lab's files import from each other."""
    uses: Uses = {}
    for file in sorted(lab.rglob("*.py")):
        name = str(file.relative_to(lab).with_suffix(""))
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            package = file.parents[node.level - 1]
            target = package.joinpath(*(node.module or "").split("."))
            for alias in node.names:
                used = target / alias.name if target.is_dir() else target
                uses.setdefault(name, set()).add(str(used.relative_to(lab)))
    return _judge("tools/lab", uses, LAB)


def _judge(where: str, uses: Uses, order: tuple[str, ...]) -> list[str]:
    """List upward uses, and circles."""
    found = []
    for name, used in sorted(uses.items()):
        for other in sorted(used):
            mine, theirs = _room(name), _room(other)
            if {mine, theirs} - set(order):
                found.append(f"{where}: {name} or {other} is in no room of {' < '.join(order)}")
            elif order.index(theirs) > order.index(mine):
                found.append(f"{where}: {name} uses {other}: {mine}/ must not know {theirs}/")
    return found + [f"{where}: circle: {' -> '.join(circle)}" for circle in circles(uses)]


def _room(name: str) -> str:
    return name.rpartition("/")[0] or "."


def circles(uses: Uses) -> Iterable[list[str]]:
    """Yield one way around each circle of files that use each other."""
    done: set[str] = set()
    for start in sorted(uses):
        if start in done:
            continue
        path, on_path = [start], {start}
        ways = [iter(sorted(uses[start]))]
        while path:
            for other in ways[-1]:
                if other in on_path:
                    yield [*path[path.index(other) :], other]
                elif other not in done and other in uses:
                    path.append(other)
                    on_path.add(other)
                    ways.append(iter(sorted(uses[other])))
                    break
            else:
                done.add(path.pop())
                on_path = set(path)
                ways.pop()


if __name__ == "__main__":
    sys.exit(main())
