"""The pages of docs/reference, each generated from one place in the sources."""

import ast
import re
import subprocess

from . import kerneldoc, shaper, source
from .kerneldoc import Comment, markdown, sentence
from .source import PAGES, TREE, DocsError, read
from .table import table

KINDS = {"charp": "word", "uint": "number", "int": "number", "bool": "Y or N", "ullong": "number"}


def pages() -> dict[str, str]:
    """Return the text of every generated page, by file name."""
    return {
        f"{PAGES}/parameters.md": parameters(),
        f"{PAGES}/stats.md": statistics(),
        f"{PAGES}/debugfs.md": debugfs(),
        f"{PAGES}/tracepoints.md": tracepoints(),
        f"{PAGES}/kernel-parameters.md": kernel_parameters(),
        f"{PAGES}/api.md": api("apic_timer"),
        f"{PAGES}/clock-api.md": api("apic_clock"),
        f"{PAGES}/tests.md": tests(),
        f"{PAGES}/tc-apic.md": _page("The qdisc apic, for tc", shaper.PLUGIN, shaper.page()),
        f"{PAGES}/tool.md": tool(),
    }


def _page(title: str, made_from: str, text: str) -> str:
    return f"<!-- Made by `make docs` from {made_from}. Don't edit. -->\n# {title}\n\n{text}"


def parameters() -> str:
    """Make the page of the modules' parameters; other pages embed their module's part of it."""
    parts = [_parameters(module) for module in source.modules() if source.parameters(module)]
    without = [f"`{module}`" for module in source.modules() if not source.parameters(module)]
    return _page(
        "Parameters", "module_param() and MODULE_PARM_DESC()",
        "Set them in a file of `/etc/modprobe.d`, as `options MODULE NAME=VALUE`, or on the\n"
        "command line of `modprobe`. A built-in module takes them from the kernel's command line\n"
        "as `MODULE.NAME=VALUE`. The values in effect are in `/sys/module/MODULE/parameters`.\n"
        "A number out of its range is rejected, and a module is not loaded with it: `apic_timer`\n"
        "fails with `-ERANGE`, and a line in the kernel log has the parameter, the value\n"
        f"and the range. {' and '.join(without)} have none.\n\n"
        "[packaging/modprobe.conf](../../packaging/modprobe.conf) is an example to copy.\n"
        "Which values to choose:\n"
        "[Choose a mode and a budget](../howto/choose-mode-and-budget.md).\n\n"
        + "\n".join(parts),
    )  # fmt: skip


def _parameters(module: str) -> str:
    every = source.parameters(module)
    rows = [
        (f"`{p.name}`", p.range or KINDS.get(p.kind, p.kind), p.unit, f"`{p.default}`",
         p.what.replace("|", r"\|"))
        for p in every
    ]  # fmt: skip
    writable = [f"`{p.name}`" for p in every if p.mode & 0o222]
    if len(writable) == len(every):
        change = (f"Root may change them while the module is loaded, in\n"
                  f"`/sys/module/{module}/parameters`.")  # fmt: skip
    elif writable:
        change = f"Of these root may change {', '.join(writable)} while the module is loaded."
    else:
        change = "None can be changed while the module is loaded."
    heads = ("parameter", "value", "unit", "default", "meaning")
    return f"## {module}\n\n{table(heads, rows)}\n{change}\n"


def statistics() -> str:
    """Make the page of the counters."""
    rows = [(f"`{s.name}`", s.what.replace("|", r"\|")) for s in source.statistics()]
    return _page(
        "Statistics", "APIC_TIMER_STATS() in stats.h",
        "`/sys/kernel/debug/apic_timer/stats` has a line for each counter and a column for each\n"
        "possible CPU. Counters start at 0 when the module is loaded and are never reset. A CPU\n"
        "counts what happens on it; arming a timer from CPU 0 on CPU 1 is counted on the CPU\n"
        "that made the call.\n\n" + table(("counter", "counts"), rows) + "\n"
        "- `kicks` also counts CPUs that were woken from idle to notice a latency request.\n"
        "- `deferred` counts events that were deferred, not those that might have been.\n"
        "- `early_seen` is 0 unless a handler may have started early, see\n"
        "  [Accuracy](../explanation/accuracy.md#never-early).\n"
        "- `hw_dead` counts restarts by the watchdog, see [DEBUGGING](../DEBUGGING.md).\n",
    )  # fmt: skip


def debugfs() -> str:
    """Make the page of debugfs."""
    rows = [(f"`{f.name}`", "read, write" if f.mode & 0o200 else "read", f.what)
            for f in source.debug_files()]  # fmt: skip
    return _page(
        "Files in debugfs", "the comment at the top of debugfs.c",
        "In `/sys/kernel/debug/apic_timer`, for root, if the kernel has `CONFIG_DEBUG_FS` and\n"
        "debugfs is mounted.\n\n" + table(("file", "access", "contents"), rows) + "\n"
        "- `info`: `latency requests: cpu 1 4 us, cpu 3 4 us` lists the CPUs that are now kept\n"
        "  out of deep idle states, and the maximum wake-up time allowed; `none` if there\n"
        "  are none, see [Accuracy](../explanation/accuracy.md#idle-states). The epoch of the TSC\n"
        "  is explained in [After sleep](../howto/after-sleep.md).\n"
        "- `lead`: `exact` and `mean` are leads. `defer` is the time before the lead within\n"
        "  which a kernel event is deferred. `dispatch` is the time from `ready` of the receipt\n"
        "  to the handler, in mode `exact` with hardly a spin and without one; `call` and\n"
        "  `at once` are the times subtracted for the call after a spin and without one; `learn`\n"
        "  is twice the time of an update of the estimate; `steps` is about the step in which the\n"
        "  TSC counts, 0 if there is none.\n"
        "- `pending`: each timer that is pending throughout a read is shown once; others may be\n"
        "  missing. A ninth concurrent reader gets `EBUSY`.\n"
        "- `stats`: the counters are listed in [Statistics](stats.md).\n\n"
        "The text of these files is for people: scripts should use the\n"
        "[trace events](tracepoints.md).\n",
    )  # fmt: skip


def tracepoints() -> str:
    """Make the page of the trace events."""
    parts = []
    files = source.tracked(r"include/trace/events/\w+\.h")
    if not files:
        raise DocsError("no trace header")
    for file in files:
        text = source.read(file)
        (system,) = re.findall(r"^#define TRACE_SYSTEM (\w+)", text, re.M)
        parts.append(
            f"## Trace system `{system}`\n\n"
            f"`sudo trace-cmd record -e {system}`, or `/sys/kernel/tracing/events/{system}`.\n"
        )
        found = kerneldoc.comments(file)
        classes = _event_classes(text)
        # Not <linux/apic_timer.h>: its members are described as the timer's.
        names = "|".join(re.findall(r"^#include <(uapi/.+|linux/apic_clock.h)>$", text, re.M))
        included = source.tracked(f"include/(?:{names})")
        types = {c.name: c for f in (file, *included) for c in kerneldoc.comments(f)
                 if c.kind == "struct"}  # fmt: skip
        for event in (c for c in found if c.kind != "struct"):
            parts.append(_event(event, text, types, classes))
    return _page("Trace events", "include/trace/events", "\n".join(parts))


def _event_classes(text: str) -> dict[str, str]:
    return dict(re.findall(r"DECLARE_EVENT_CLASS\((\w+),(.*?)\n\);", text, re.S))


def _event(event: Comment, text: str, types: dict[str, Comment], classes: dict[str, str]) -> str:
    body = re.search(rf"TRACE_EVENT\({event.name},(.*?)\n\);", text, re.S)
    if body is None:
        made = re.search(rf"DEFINE_EVENT\((\w+), {event.name},", text)
        if made is None:
            raise DocsError(f"{event.name} is not a trace event")
        body = [None, classes[made[1]]]
    fields = re.findall(r"__(?:field|array)\(([^,]+),\s*(\w+)", body[1])
    # A field that is not a parameter of the event may be a member of a structure that is.
    known = {}
    for name, comment in types.items():
        if re.search(rf"struct {name} ", body[1]):
            known |= dict(comment.members)
    known |= dict(event.members)
    known = _computed(body[1], known) | known
    rows = [(f"`{name}`", f"`{kind.strip()}`", markdown(known.get(name, "")))
            for kind, name in fields]  # fmt: skip
    more = "\n\n".join(markdown(paragraph) for paragraph in event.text)
    return (f"### `{event.name}`\n\n{sentence(markdown(event.what))}\n\n"
            + (f"{more}\n\n" if more else "")
            + table(("field", "type", "meaning"), rows))  # fmt: skip


def _computed(body: str, known: dict[str, str]) -> dict[str, str]:
    """Return the expressions assigned to fields, except those whose names are `known`."""
    found = {}
    assigned = [(name, re.sub(r"\s+", " ", value))
                for name, value in re.findall(r"__entry->(\w+) =\s*([^;]+);", body)]  # fmt: skip
    fields = {_bare(value): name for name, value in assigned}
    for name, value in assigned:
        if (renamed := re.fullmatch(r"\w+->(\w+)", value)) and renamed[1] in known:
            found.setdefault(name, known[renamed[1]])
        if (computed := re.fullmatch(r"(\S+) - (\S+)", value)) is not None:
            terms = [_bare(computed[n]) for n in (1, 2)]
            if all(term in fields for term in terms):
                found[name] = f"`{fields[terms[0]]} - {fields[terms[1]]}`"
            else:
                until, since = (known[term].removesuffix(", absolute TSC") for term in terms)
                found[name] = f"cycles from {since} to {until}"
        elif (member := re.fullmatch(r"timer->(?:timer\.)?(\w+)", value)) is not None:
            found[name] = f"`{member[1]}` of the timer"
    return found


def _bare(value: str) -> str:
    return re.sub(r"^\w+->", "", value)


def _assigned(file: str, name: str) -> dict[str, str]:
    """Return the dictionary that a test assigns to a name."""
    for node in ast.parse(source.read(file)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise DocsError(f"{file} has no {name}")


def kernel_parameters() -> str:
    """Make the page of the kernel parameters used at boot."""
    file = "tests/guest/test_boot.py"
    files = source.tracked(r"tests/.*test_boot\.py")
    file = files[0] if files else file
    found = [(f"`{booted}`{more}", f"`{name}`" if name else "none: the kernel refuses the module")
             for constant, more in (("SOURCES", ""), ("DEADLINE", ", with TSC deadline"))
             for booted, name in _assigned(file, constant).items()]  # fmt: skip
    return _page(
        "Kernel parameters", f"SOURCES and DEADLINE in {file}",
        "Kernel parameters may leave the timers another source, or none. Each of these is\n"
        f"booted by `{file}` with Debian's 6.1 on two emulated CPUs; `make test-matrix` runs all\n"
        "of them.\n\n" + table(("booted with", "`source=auto` chooses"), sorted(found)) + "\n"
        "- `nolapic_timer`: with TSC deadline and several CPUs the kernel uses the LAPIC timer\n"
        "  nevertheless ([why](../explanation/kernel-facts.md"
        "#nolapic_timer-does-not-disable-a-tsc-deadline-timer));\n"
        "  `source=hrtimer` keeps apic_timer off it. On a kernel with the patches of `patches/`\n"
        "  the source is `hook`, and the LAPIC timer belongs to apic_timer alone.\n"
        "- `tsc=unstable`, `notsc`: the kernel has marked the TSC unstable, and its log says so.\n"
        "- `maxcpus=1`: CPUs that are brought online later are attached.\n"
        "- `lockdown=integrity`: the kernel loads only signed modules, see\n"
        "  [Secure Boot](../howto/secure-boot.md).\n"
        "- `nolapic` is not in the table: the emulated machine does not boot with it, with or\n"
        "  without apic_timer.\n",
    )  # fmt: skip


def tests() -> str:
    """Make the page of the tests and the machines that they run in."""
    rows = []
    for file in source.tracked(r"tests/.*/test_\w+\.py"):
        about = ast.get_docstring(ast.parse(source.read(file)))
        if not about:
            raise DocsError(f"{file} has no docstring")
        first = re.sub(r"\s+", " ", about.split("\n\n")[0]).replace("|", r"\|")
        rows.append((f"`{file}`", first))
    suites = []
    for file in source.tracked(r"tests/(kunit|accuracy)/.*_test\.c"):
        about = re.search(r"/\*\n? \*? ?(.*?)\*/", source.read(file), re.S)
        text = about[1].split("\n *\n")[0] if about else ""
        text = re.sub(r"\s*\n \*\s*", " ", text).strip()
        suites.append((f"`{file}`", text.replace("|", r"\|")))
    return _page(
        "Tests and machines", "the tests' own descriptions",
        "[HACKING](../HACKING.md#in-the-lab) shows how to run one of them.\n\n## Tests\n\n"
        + table(("file", "what it tests"), rows)
        + "\n## KUnit suites\n\n" + table(("file", "what it tests"), suites)
        + "\n## Machines\n\n"
        "`make test` skips those marked *matrix*. An empty column has its default:\n"
        "source `proxy`, engine `smp`. The engines are explained in\n"
        "[The lab](../explanation/lab.md#engines).\n\n" + _machines(),
    )  # fmt: skip


def _machines() -> str:
    (file,) = source.tracked(r"tests/.*/machines\.py")
    for node in ast.parse(source.read(file)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "TABLE":
            calls = node.value.elts
            break
    else:
        raise DocsError(f"{file} has no TABLE")
    rows = []
    for call in (c for c in calls if isinstance(c, ast.Call)):
        names = ("kernel", "cpus")
        options = dict(zip(names, map(_value, call.args), strict=False))
        options |= {k.arg: _value(k.value) for k in call.keywords}
        more = ["x2APIC"] * bool(options.get("x2apic"))
        more += [f"`{options['append']}`"] if options.get("append") else []
        more += [options["compiler"]] if options.get("compiler") else []
        more += [n for n in ("matrix", "brief") if options.get(n)]
        columns = [str(options.get(n, "")) for n in ("kernel", "cpus", "source", "engine")]
        rows.append((*columns, ", ".join(more)))
    return table(("kernel", "CPUs", "source", "engine", "more"), rows)


def _value(node: ast.expr) -> object:
    """Return a literal's value; of anything else, its text."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def tool() -> str:
    """Make the page of the program apic-timer, which is built for this purpose."""
    program = "build/tool/apic-timer"

    def run(*argv: str) -> str:
        done = subprocess.run(argv, cwd=TREE, capture_output=True, text=True)
        if done.returncode:
            raise DocsError(f"{' '.join(argv)}: {done.stderr}")
        return done.stdout

    run("make", program)
    usage = run(program, "--help")
    parts = [f"```\n{usage}```\n"]
    for name in re.findall(r"^  ([a-z]+) +[A-Z]", usage, re.M):
        page = read(f"user/tool/man/apic-timer-{name}.1.scd")
        status = re.search(r"\n# EXIT STATUS\n\n(.*?)\n\n# ", page, re.S)
        parts.append(f"## apic-timer {name}\n\n```\n{run(program, name, '--help')}```\n"
                     + (f"\nExit status: {status[1]}\n" if status else ""))  # fmt: skip
    return _page(
        "The program apic-timer", "its --help",
        "[Measure your machine](../howto/measure-your-machine.md) shows what it can do.\n"
        "`man apic-timer` and `man apic-timer-status`, ... explain what is printed.\n\n"
        + "\n".join(parts),
    )  # fmt: skip


def api(module: str) -> str:
    """Make the page of a module's interface."""
    header, *others = source.public(module)
    declared = source.declared(header)
    names = [name for name, _ in source.exported()]
    parts = [_about(header), "\n## Functions\n"]
    parts += [_function(kerneldoc.called(name))
              for name in sorted(set(declared) & set(names), key=declared.index)]  # fmt: skip
    for other in others:
        parts.append(f"## `<{other.removeprefix('include/')}>`\n\n{_about(other)}\n")
        parts += [_function(kerneldoc.called(n)) for n in source.declared(other) if n in names]
    parts.append("## Types and macros\n")
    for comment in (c for file in (header, *others) for c in kerneldoc.comments(file)):
        members = [(f"`{n}`", markdown(t)) for n, t in comment.members
                   if not t.startswith("private")]  # fmt: skip
        parts.append(f"### `{comment.name}`\n\n{sentence(markdown(comment.what))}\n\n"
                     f"```c\n{comment.code}\n```\n\n"
                     + table(("member" if comment.kind != "macro" else "argument", "meaning"),
                             members) * bool(members)
                     + "".join(f"\n{markdown(p)}\n" for p in comment.text))  # fmt: skip
    return _page(f"The interface, `<linux/{module}.h>`", "the kernel-doc comments",
                 "\n".join(parts))  # fmt: skip


def _about(header: str) -> str:
    """Return the comment at the top of a header."""
    about = re.search(r"/\*\n \* (.*?)\n \*/\n#ifndef", source.read(header), re.S)
    return markdown(re.sub(r"^ \* ?", "", about[1], flags=re.M)) if about else ""


def _function(comment: Comment) -> str:
    parts = [f"### `{comment.name}()`\n\n{sentence(markdown(comment.what))}\n",
             f"```c\n{comment.code}\n```\n"]  # fmt: skip
    parts += [f"- `{name}`: {markdown(text)}" for name, text in comment.members]
    if comment.members:
        parts.append("")
    parts += [f"{markdown(paragraph)}\n" for paragraph in comment.text]
    if comment.context:
        parts.append(f"Context: {markdown(comment.context)}\n")
    if comment.result:
        first, *items = comment.result
        if first.startswith("* "):
            first, items = "", comment.result
        parts.append(f"Return: {markdown(first)}".rstrip() + "\n" * bool(items))
        parts += [f"- {markdown(item.removeprefix('* '))}" for item in items]
        parts.append("")
    return "\n".join(parts)


def write() -> list[str]:
    """Write the pages; return those that have changed."""
    changed = []
    for name, text in pages().items():
        if not (TREE / name).exists() or (TREE / name).read_text() != text:
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            (TREE / name).write_text(text)
            changed.append(name)
    return changed
