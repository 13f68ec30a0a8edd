"""Where the sources are, and what the documentation takes from them.

Files are found by their contents, not by their location.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lab.base.errors import LabError
from lab.base.listing import listed

TREE = Path(__file__).resolve().parents[2]
PAGES = "docs/reference"


class DocsError(Exception):
    """A source that does not have the form that the documentation needs."""


@cache
def tracked(pattern: str) -> tuple[str, ...]:
    """List the files of the tree whose whole name matches, including those not yet committed."""
    if not (TREE / ".git").exists():  # a source package has no other files
        every = (str(f.relative_to(TREE)) for f in TREE.rglob("*") if f.is_file())
        return tuple(sorted(f for f in every if re.fullmatch(pattern, f) and read(f, True)))
    try:
        files = listed(TREE)
    except LabError as error:
        raise DocsError(str(error)) from None
    return tuple(f for f in files if re.fullmatch(pattern, f) and read(f, True))


def read(file: str, tolerant: bool = False) -> str:
    """Return a text file of the tree; "" if it is missing or not text, if `tolerant`."""
    try:
        return (TREE / file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        if tolerant:
            return ""
        raise DocsError(f"{file}: {error}") from None


def core() -> tuple[str, ...]:
    """List the sources of the modules and of their headers."""
    return tracked(r"(module|include)/.*\.[ch]")


def only_file(pattern: str, among: tuple[str, ...] | None = None) -> str:
    """Return the one file of the core that has a line that matches."""
    found = [f for f in among or core() if re.search(pattern, read(f), re.M)]
    if len(found) != 1:
        raise DocsError(f"{len(found)} files have {pattern!r}: {' '.join(found)}")
    return found[0]


def strings(text: str) -> str:
    """Join the C string literals in a text."""
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    return "".join(literals).replace('\\"', '"').replace("\\n", "")


class Parameter(NamedTuple):
    """A module parameter."""

    name: str
    kind: str  # as in module_param(): "uint"
    default: str
    range: str  # "5000 to 10000", "" if any value is valid
    unit: str  # "ns", "" if the description has it
    what: str
    mode: int  # of its file in /sys/module/*/parameters


# module_param(name, type, mode) and module_param_named(name, variable, type, mode); and ours:
# APIC_TIMER_PARAM(name, default, min, max, "unit", "what") and
# APIC_TIMER_PARAM_NAMED(name, variable, storage, default, min, max, "unit", "what")
# module_param_cb(name, &ops, &variable, mode), whose range is in the ops' set().
_PARAM = re.compile(
    r"^((?:module_param|APIC_TIMER_PARAM)(?:_named|_NAMED|_cb)?)\((.*?)\);", re.M | re.S
)
CORE = "apic_timer"


def modules() -> dict[str, str]:
    """Return the folder of each kernel module's sources, by module name; the core comes first."""
    found = {}
    for file in tracked(r"module/\w+/Kbuild"):
        for name in re.findall(r"^obj-\$\(if .*\+= (\w+)\.o$", read(file), re.M):
            found[name] = file.removesuffix("/Kbuild")
    return dict(sorted(found.items(), key=lambda pair: (pair[0] != CORE, pair[0])))


def parameters(module: str = CORE) -> list[Parameter]:
    """List the parameters of a module by name."""
    found = {}
    folder = "(?!module/(?!core/)\\w+/)" if module == CORE else re.escape(f"{modules()[module]}/")
    files = [f for f in core() if f.endswith(".c") and re.match(folder, f)]
    described = {}
    for file in files:
        text = read(file)
        for name, what in re.findall(r'MODULE_PARM_DESC\((\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)',
                                     text):  # fmt: skip
            described[name] = strings(what)
        for macro, arguments in _PARAM.findall(text):
            parameter = _parameter(macro, arguments, text)
            found[parameter.name] = parameter
    for name, parameter in found.items():
        if not parameter.what:
            if name not in described:
                raise DocsError(f"parameter {name} has no MODULE_PARM_DESC")
            found[name] = parameter._replace(what=_without(parameter, described[name]))
    missing = sorted(described.keys() - found.keys())
    if missing:
        raise DocsError(f"no declaration found of the parameters {', '.join(missing)}")
    return [found[name] for name in sorted(found)]


def _parameter(macro: str, arguments: str, text: str) -> Parameter:
    arguments = re.sub(r"/\*.*?\*/", "", arguments, flags=re.S)
    parts = [a.strip() for a in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', arguments)]
    if macro.startswith("APIC_TIMER"):
        name, *_, default, least, most, unit, what = parts
        limits = f"{number(least)} to {number(most)}"
        return Parameter(name, "uint", number(default), limits, strings(unit), strings(what), 0o444)
    limits = ""
    if macro.endswith("_cb"):
        name, ops, variable, mode = parts
        variable, kind, limits = variable.strip("&"), "uint", _limits(ops.strip("&"), text)
    else:
        name, variable, kind, mode = parts if len(parts) == 4 else (parts[0], *parts)
        if refused := re.search(
            rf"if \((?:{variable} < (\w+) \|\| )?{variable} > (\w+)\) \{{\s*pr_err", text
        ):
            limits = f"{number(refused[1] or '0', text)} to {number(refused[2], text)}"
    declared = re.search(rf"^[^\n(]*\b{variable}(?:\[\w*\])?\s*=\s*([^;]+);", text, re.M)
    default = number(declared[1].strip(), text) if declared else "0"
    if kind == "bool":
        default = {"true": "Y", "false": "N", "0": "N"}.get(default, default)
    unit = re.search(r"_(ns|us|ms|s)$", name)
    return Parameter(
        name, kind, default.strip('"'), limits, unit[1] if unit else "", "", int(mode, 8)
    )


def _limits(ops: str, text: str) -> str:
    """Return the range that the set() of a struct kernel_param_ops enforces."""
    method = re.search(rf"kernel_param_ops {ops} = \{{\s*\.set = (\w+)", text)
    kept = method and re.search(
        rf"\b{method[1]}\([^{{]*\{{\s*return param_set_uint_minmax\(\w+, \w+, ([^;]+)\);", text
    )
    if not kept:
        raise DocsError(f"{ops} does not say by param_set_uint_minmax() the accepted range")
    least, most = (number(" ".join(limit.split()), text) for limit in kept[1].split(","))
    return f"{least} to {most}"


def _without(parameter: Parameter, what: str) -> str:
    """Return a description without the range that modinfo shows; DocsError if that differs."""
    said = re.search(r"(, | \()(\d+ to \d+)([;)]|$)", what)
    if (said[2] if said else "") != parameter.range:
        raise DocsError(f"parameter {parameter.name} takes {parameter.range or 'any value'}, and "
                        f"its MODULE_PARM_DESC says {said[2] if said else 'no range'}")  # fmt: skip
    if not said:
        return what
    before, rest = what[: said.start()], what[said.end() :].lstrip()
    if said[1] == " (":
        return f"{before} ({rest}" if rest else before
    return f"{before}; {rest}" if rest else before


_UNITS = {"NSEC_PER_USEC": 10**3, "NSEC_PER_MSEC": 10**6, "NSEC_PER_SEC": 10**9,
          "USEC_PER_MSEC": 10**3, "USEC_PER_SEC": 10**6, "MSEC_PER_SEC": 10**3,
          "MAX_RT_PRIO": 100,
          "UINT_MAX": 2**32 - 1, "U32_MAX": 2**32 - 1, "INT_MAX": 2**31 - 1}  # fmt: skip


def number(expression: str, own: str = "") -> str:
    """Evaluate a constant expression of our macros and plain numbers, as far as possible.

    own: text of its file, whose macros take precedence over others
    """
    text = expression
    for _ in range(8):
        names = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", text))
        if not names:
            break
        for name in names:
            value = _UNITS.get(name)
            if value is None:
                defined = [
                    m[1]
                    for text_of in (own, *map(read, core()))
                    if (m := re.search(rf"^#define {name}[ \t]+([^\n/]+)", text_of, re.M))
                ]
                if not defined:
                    return expression
                value = f"({defined[0].strip()})"
            text = re.sub(rf"\b{name}\b", str(value), text)
    text = re.sub(r"(?<=\d)[uUlL]+\b", "", text)
    if re.fullmatch(r"[\d\s()+*/<-]+", text):
        return str(int(eval(text.replace("/", "//"), {"__builtins__": {}})))  # noqa: S307
    return text if re.fullmatch(r"\(*-?\d+\)*", text) else expression


class Statistic(NamedTuple):
    """A counter of /sys/kernel/debug/apic_timer/stats."""

    name: str
    what: str


def statistics() -> list[Statistic]:
    """List the counters in the order of printing."""
    text = read(only_file(r"^#define APIC_TIMER_STATS\(X\)"))
    block = re.search(r"#define APIC_TIMER_STATS\(X\)(.*?[^\\])\n(?![ \t]*X\()", text, re.S)
    found = re.findall(r'X\(\s*\w+,\s*(\w+),\s*\\?\s*((?:"(?:[^"\\]|\\.)*"[\s\\]*)+)\)', block[1])
    if not found:
        raise DocsError('APIC_TIMER_STATS() has no X(ENUMERATOR, name, "what it counts")')
    return [Statistic(name, strings(what)) for name, what in found]


class DebugFile(NamedTuple):
    """A file of /sys/kernel/debug/apic_timer."""

    name: str
    mode: int
    what: str


def debug_files() -> list[DebugFile]:
    """List the files in debugfs, from the comment at the top of their source."""
    file = only_file(r'debugfs_create_dir\("apic_timer"')
    text = read(file)
    comment = re.search(r"/\*\n \* /sys/kernel/debug/apic_timer/\n(.*?)\*/", text, re.S)
    if not comment:
        raise DocsError(f"{file} has no comment that lists the files")
    described: dict[str, str] = {}
    name = ""
    for line in comment[1].splitlines():
        line = line.removeprefix(" *").rstrip()
        if first := re.fullmatch(r"\t(\w+)\t+(\S.*)", line):
            name = first[1]
            described[name] = first[2]
        elif name and (more := re.fullmatch(r"\t\t+(\S.*)", line)):
            described[name] += f" {more[1]}"
        else:
            name = ""
    created = re.findall(r'debugfs_create_file\("(\w+)",\s*(0\d+)', text)
    if {name for name, _ in created} != described.keys():
        raise DocsError(f"{file}: the comment lists {sorted(described)}, the code creates "
                        f"{sorted(name for name, _ in created)}")  # fmt: skip
    return [DebugFile(name, int(mode, 8), described[name]) for name, mode in created]


def exported() -> list[tuple[str, str]]:
    """List the exported functions and the files that define them."""
    files = (f for f in core() if f.endswith(".c"))
    # Not the variable that only ties a module to its version of the interface.
    pattern = re.compile(r"^EXPORT_SYMBOL_GPL\((?!apic_timer_api\))(\w+)\);", re.M)
    return sorted((name, file) for file in files for name in pattern.findall(read(file)))


def public(module: str) -> list[str]:
    """List the headers of a module's interface, the main one first."""
    return sorted(tracked(rf"include/linux/{module}(_\w+)?\.h"), key=len)


def declared(file: str) -> list[str]:
    """List the functions that a header declares, in its order."""
    return re.findall(
        r"^(?:[a-z].*\W)?(\w+)\((?!\()", re.sub(r"(?s)/\*.*?\*/", "", read(file)), re.M
    )


def header_of(function: str) -> str:
    """Return the public header that declares an exported function."""
    found = [h for h in tracked(r"include/linux/apic_\w+\.h") if function in declared(h)]
    if len(found) != 1:
        raise DocsError(f"{len(found)} public headers declare {function}")
    return found[0]


def macro_of(function: str) -> tuple[str, list[str]] | None:
    """Return the macro through which callers call an exported function, and its arguments.

    None if it is called by its own name. Such a macro also passes THIS_MODULE.
    """
    pattern = rf"^#define (\w+)\(([\w, ]*)\)\s+{function}\(.*THIS_MODULE\)$"
    found = re.search(pattern, read(header_of(function)), re.M)
    return (found[1], found[2].split(", ")) if found else None


def version() -> str:
    """Return the version of the modules."""
    return re.search(r'APIC_TIMER_VERSION "(.*)"', read(only_file('APIC_TIMER_VERSION "')))[1]
