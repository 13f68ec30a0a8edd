"""Manual pages in build/man: those of docs/man, and those made from the sources.

man4/apic_timer.4           the module and its parameters; other modules' pages are written by hand,
                            except for their parameters
man7/apic_timer.7           written by hand
man8/tc-apic.8              the options of the qdisc, from tc's plug-in
man9/add_apic_timer.9 ...   one for each exported function, from its kernel-doc comment
"""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import embed, kerneldoc, shaper, source
from .kerneldoc import Comment, roff, sentence
from .source import TREE

OUTPUT = TREE / "build/man"
TITLE = "Kernel Developer's Manual"


def pages() -> dict[str, str]:
    """Return the text of every page, by its path below build/man."""
    found = {"man4/apic_timer.4": module(), "man8/tc-apic.8": shaper.manual()}
    for name, _ in source.exported():
        comment = kerneldoc.called(name)
        found[f"man9/{comment.name}.9"] = function(comment, source.header_of(name))
    return found | by_hand()


def by_hand() -> dict[str, str]:
    """Return the pages of docs/man, with their placeholders filled in."""
    found = {}
    for file in source.tracked(r"docs/man/.*\.[1-9]"):
        path, text = Path(file), source.read(file)
        if "@VERSION@" in text:
            text = text.replace("@VERSION@", source.version())
        text = re.sub(r"^@EMBED (\S+) (.*)@$", _code, text, flags=re.M)
        text = re.sub(r"^@PARAMETERS (\w+)@\n", lambda of: parameters(of[1]), text, flags=re.M)
        found[f"man{path.suffix[1:]}/{path.name}"] = text
    return found


def _code(marked: re.Match) -> str:
    text = embed.excerpt(marked[1], marked[2]).replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\&", text.expandtabs(8), flags=re.M)


def _head(name: str, section: int, title: str) -> str:
    return (f'.TH "{name.upper()}" {section} "" "apic\\-timer {source.version()}" "{title}"\n'
            ".nh\n.ad l\n")  # fmt: skip


def parameters(module: str) -> str:
    """Return the paragraphs of a module's parameters."""
    parts = []
    for p in source.parameters(module):
        limits = f"{p.range} {p.unit}, ".replace(" ,", ",") if p.range else ""
        default = roff(f"{limits}default {p.default}")
        parts.append(f".TP\n.B {p.name}\n{roff(sentence(p.what))}\n({default})\n")
    return "".join(parts)


def module() -> str:
    """Make the page of the module."""
    parts = [_head("apic_timer", 4, "Kernel Interfaces Manual"), ".SH NAME\n"
             "apic_timer \\- timers whose handler starts at a chosen TSC value\n.SH SYNOPSIS\n"
             ".B modprobe apic_timer\n[\\fIparameter\\fP=\\fIvalue\\fP ...]\n.SH DESCRIPTION\n"
             "The module gives other kernel modules the timers of\n.BR apic_timer (7).\n"
             "Loading a module that uses them loads it too.\n.SH PARAMETERS\n"
             "Set in a file of\n.I /etc/modprobe.d\nas\n"
             ".BI \"options apic_timer \" name = value ,\n"
             "or on the command line.\n"]  # fmt: skip
    parts.append(parameters(source.CORE))
    parts.append(".SH FILES\n")
    for f in source.debug_files():
        parts.append(f".TP\n.I /sys/kernel/debug/apic_timer/{f.name}\n{roff(sentence(f.what))}\n")
    parts.append(".SH STATISTICS\nThe counters in\n.IR /sys/kernel/debug/apic_timer/stats :\n")
    for s in source.statistics():
        parts.append(f".TP\n.B {s.name}\n{roff(s.what)}\n")
    parts.append(".SH SEE ALSO\n.BR modprobe.d (5),\n.BR apic_timer (7),\n.BR add_apic_timer (9)\n")
    return "".join(parts)


def function(comment: Comment, header: str) -> str:
    """Make the page of a function that a header declares."""
    prototype = re.fullmatch(r"(.*?)(\w+)\((.*)\);", comment.code)
    result, name, arguments = prototype.groups()
    header = header.removeprefix("include/")
    parts = [_head(name, 9, TITLE),
             f".SH NAME\n{name} \\- {roff(kerneldoc.plain(comment.what))}\n",
             f".SH SYNOPSIS\n.nf\n.B #include <{header}>\n.sp\n",
             f'.BI "{result.strip()}{"" if result.rstrip().endswith("*") else " "}{name}('
             f'{_arguments(arguments)});"\n.fi\n']  # fmt: skip
    if comment.members:
        parts.append(".SH ARGUMENTS\n")
        parts += [f".TP\n.I {member}\n{roff(text)}\n" for member, text in comment.members]
    if comment.text:
        parts.append(".SH DESCRIPTION\n" + ".PP\n".join(f"{roff(p)}\n" for p in comment.text))
    if comment.context:
        parts.append(f".SH CONTEXT\n{roff(comment.context)}\n")
    if comment.result:
        parts.append(".SH RETURN VALUE\n")
        for item in comment.result:
            value = re.fullmatch(r"\* (%\S+) - (.*)", item)
            if value:
                parts.append(f".TP\n.B {roff(value[1].lstrip('%'))}\n{roff(value[2])}\n")
            else:
                text = roff(item.removeprefix("* "))
                parts.append(f".PP\n{text}\n" if len(parts[-1]) > 20 else f"{text}\n")
    parts.append(".SH SEE ALSO\n.BR apic_timer (7)\n")
    return "".join(parts)


def _arguments(text: str) -> str:
    """Return arguments for .BI: bold types, italic names."""
    parts = []
    for argument in text.split(", "):
        split = re.fullmatch(r"(.*?)(\w+)", argument)
        parts.append(f'{split[1]}" {split[2]} "' if split and split[1] else argument)
    return ", ".join(parts)


def write(output: Path = OUTPUT) -> list[Path]:
    """Write the pages; return their paths."""
    shutil.rmtree(output, ignore_errors=True)
    written = []
    for name, text in pages().items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text(text)
        written.append(output / name)
    return written


def lint(files: Iterable[Path]) -> str:
    """Return the faults that mandoc finds in pages."""
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *files],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    # A page has its version's date in the footer.
    lines = [line for line in done.stdout.splitlines() if "missing date" not in line]
    return "\n".join(lines).replace(f"{TREE}/", "")
