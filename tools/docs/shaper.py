"""docs/reference/tc-apic.md and tc-apic(8): the options of the qdisc "apic", from tc's plug-in.

The options are a table in tools/tc/q_apic.c, from which its help is also printed; the statistics
are those of struct tc_apic_xstats.
"""

import re
from typing import NamedTuple

from . import kerneldoc, source
from .kerneldoc import markdown, roff, sentence
from .source import DocsError
from .table import table

PLUGIN = "tools/tc/q_apic.c"
UAPI = "include/uapi/linux/sch_apic.h"
VALUES = {"RATE": "RATE", "SIZE": "BYTES", "TIME": "TIME", "COUNT": "PACKETS", "SIGNED": "BYTES",
          "CPU": "CPU|any"}  # fmt: skip
CLASS_SYNOPSIS = "tc class add|change|replace|del dev DEVICE parent HANDLE: classid HANDLE:N apic"
SYNOPSIS = "tc qdisc add|change|replace dev DEVICE root|parent CLASS [handle HANDLE:] apic"
UNITS = (
    ("RATE", "`50mbit`, `1.5gbit`, `800kbit`, `6mbps` (bytes), `1000` (bit/s); kibit and so on are "
             "multiples of 1,024"),
    ("BYTES", "`1500`, `15k` (15,360), `1m`"),
    ("TIME", "`100us`, `10ms`, `1.5s`, `1500` (ns)"),
)  # fmt: skip


class Option(NamedTuple):
    """An option of the qdisc."""

    name: str
    values: str  # "RATE", "drop|cap"
    default: str
    what: str


def options(name: str = "options") -> list[Option]:
    """List the options in a table of the plug-in, in its order."""
    text = source.read(PLUGIN)
    lists = {name: re.findall(r'\{ "(\w+)"', body) for name, body in re.findall(
        r"const struct choice (\w+)\[\] = \{(.*?)\{\}", text, re.S)}  # fmt: skip
    entries = re.search(rf"struct option {name}\[\] = \{{\n(.*?)\n\t\{{\}}\n\}};", text, re.S)
    if entries is None:
        raise DocsError(f"{PLUGIN} has no table {name}")
    found = []
    for entry in re.findall(r"\t\{ (.*?) \},(?=\n\t\{|$)", entries[1], re.S):
        match = re.fullmatch(r'"(\w+)", (\w+), TCA_APIC_\w+, (\w+),\s*[^"]*"(\w+)",\s*'
                             r'("(?:[^"\\]|\\.|"\s*")*")', entry)  # fmt: skip
        if match is None:
            raise DocsError(f"{PLUGIN}: no option: {entry}")
        name, kind, choices, default, what = match.groups()
        values = "|".join(lists[choices]) if choices != "NULL" else VALUES[kind]
        found.append(Option(name, values, default, source.strings(what)))
    return found


def statistics() -> list[tuple[str, str]]:
    """List the counters with their descriptions."""
    (stats,) = (c for c in kerneldoc.comments(UAPI) if c.name == "tc_apic_xstats")
    names = dict(re.findall(r'"(\w+)", \w+, (TCA_APIC_\w+)', source.read(PLUGIN)))
    typed = {attribute: name for name, attribute in names.items()}
    return [(name, re.sub(r"TCA_APIC_\w+", lambda found: typed.get(found[0], found[0]), text))
            for name, text in stats.members]  # fmt: skip


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def page() -> str:
    """Return the reference page, without its header."""

    def rows(name: str) -> list[tuple[str, ...]]:
        return [(f"`{o.name}`", _cell(o.values), f"`{o.default}`", _cell(sentence(o.what)))
                for o in options(name)]  # fmt: skip

    heads = ("option", "value", "default", "meaning")
    counters = [(f"`{name}`", _cell(markdown(text))) for name, text in statistics()]
    return (
        f"    {SYNOPSIS} [OPTION VALUE]...\n\n"
        "An option that a command omits keeps its value in an existing qdisc, and gets its\n"
        "default in a new one. A bad value is rejected with one line that says what is expected,\n"
        "and changes nothing.\n"
        "`tc qdisc show` prints all options in a form that can be typed again, and then the mode\n"
        "in effect in parentheses. `tc` needs its plug-in `q_apic.so`:\n"
        "[Install](../howto/install.md#tc).\n\n## Options\n\n"
        + table(heads, rows("options"))
        + "\n"
        + "".join(f"- {name}: {what}\n" for name, what in UNITS)
        + "\nA packet is due at its departure time, which `SO_TXTIME`, TCP or a BPF program sets;\n"
        "without one, when its socket's `SO_MAX_PACING_RATE` allows; otherwise at once. It\n"
        "leaves then, or when `rate` allows, whichever is later. For `rate` a packet has the\n"
        "length that tc's other shapers count: with its Ethernet header, plus `overhead`. With\n"
        "`SOF_TXTIME_DEADLINE_MODE` a packet is due at once, and its time is its deadline.\n\n"
        "`mode thread` and `cpu` require `CAP_SYS_NICE`, see [Security](../SECURITY.md).\n\n"
        f"## Classes\n\n    {CLASS_SYNOPSIS} [OPTION VALUE]...\n\n"
        + table(heads, rows("class_options"))
        + "\nA packet belongs to the class that `skb->priority` (`SO_PRIORITY`) names, such as\n"
        "0x10010 for 1:10, or else to the class of the qdisc's first matching `tc filter`.\n"
        "Without either it has no class, and is treated as if there were no classes.\n\n"
        "A packet of a class leaves at the latest of three moments: its own departure time, that\n"
        "of the class's rate, and that of the qdisc's rate. A delay by one packet of another\n"
        "class is not lost: the class's next packet is planned from its own moment. Classes\n"
        "that together ask for more than the qdisc's rate share it in proportion to their rates;\n"
        "packets without a class count as a class of the qdisc's rate. A rate is a ceiling: a\n"
        "class does not get later what it did not use, except for its `burst` and a packet or\n"
        "two.\n\n"
        "A class has no child classes, and no qdisc of its own. `limit` of the qdisc counts\n"
        "the packets of all classes. A class that a filter refers to cannot be deleted,\n"
        "unless the filter is older than the class. When a\n"
        "class is deleted, its packets are dropped. `tc -s class show` prints the counters\n"
        "of each class.\n\n"
        "## Statistics\n\n"
        "`tc -s qdisc show` prints them after those that every qdisc has, `tc -s -d` also prints\n"
        "how often each error occurred, and `tc -s -j` prints all of them as JSON, with `rate` in\n"
        "bit/s and times in nanoseconds.\n\n" + table(("counter", "meaning"), counters)
    )  # fmt: skip


def manual() -> str:
    """Return the text of tc-apic(8)."""
    parts = [
        f'.TH "TC\\-APIC" 8 "" "apic\\-timer {source.version()}" "Linux"\n.nh\n.ad l\n'
        ".SH NAME\ntc\\-apic \\- send each packet at its moment\n.SH SYNOPSIS\n"
        ".B tc qdisc\nadd | change | replace\n.B dev\n\\fIDEVICE\\fP\nroot | parent \\fICLASS\\fP\n"
        ".B apic\n[\\fIOPTION VALUE\\fP ...]\n.SH DESCRIPTION\n"
        "The queueing discipline\n.B apic\nhands packets to the driver at planned moments:\n"
        "at a rate, at their sockets' rates, or at departure times of their own. It runs on\n"
        "the timers of\n.BR apic_timer (4),\nand needs their module and\n.IR sch_apic ,\n"
        "which is loaded automatically.\n.SH OPTIONS\n"]  # fmt: skip
    for o in options():
        parts.append(f".TP\n.BR {o.name} \" {roff(o.values)}\"\n{roff(sentence(o.what))}\n"
                     f"Default: {roff(o.default)}.\n")  # fmt: skip
    parts.append(f".SH CLASSES\n.B {roff(CLASS_SYNOPSIS)}\n[\\fIOPTION VALUE\\fP ...]\n.PP\n"
                 "Packets belong to the class that their priority names, or that a\n"
                 ".BR tc\\-filter (8)\nof the qdisc selects. They leave at the rate of their\n"
                 "class, within that of the qdisc, which classes share in proportion to their\n"
                 "rates when it is not enough for all.\n")  # fmt: skip
    for o in options("class_options"):
        parts.append(f".TP\n.BR {o.name} \" {roff(o.values)}\"\n{roff(sentence(o.what))}\n"
                     f"Default: {roff(o.default)}.\n")  # fmt: skip
    parts.append(".SH VALUES\n")
    for name, what in UNITS:
        parts.append(f".TP\n.I {name}\n{roff(what.replace('`', ''))}\n")
    parts.append('.SH STATISTICS\nPrinted with\n.BR "tc \\-s" :\n')
    parts += [f".TP\n.B {name}\n{roff(text)}\n" for name, text in statistics()]
    parts.append(
        ".SH EXAMPLES\nShape all that leaves to 50 Mbit/s:\n.PP\n"
        ".B tc qdisc add dev eth0 root apic rate 50mbit\n.PP\n"
        "Send packets at their SO_TXTIME, and drop those that are late:\n.PP\n"
        ".B tc qdisc add dev eth0 root apic late drop\n"
        "Limit traffic to port 5004 to 10 Mbit/s of these:\n.PP\n.nf\n.B\n"
        "tc qdisc add dev eth0 root handle 1: apic rate 50mbit\n.B\n"
        "tc class add dev eth0 parent 1: classid 1:10 apic rate 10mbit\n.B\n"
        "tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 5004 0xffff flowid 1:10\n"
        ".fi\n"
        ".SH FILES\n.TP\n.I /usr/lib/x86_64\\-linux\\-gnu/tc/q_apic.so\n"
        "Parses and prints these options. Without it\n.B tc\nknows no option of the qdisc.\n"
        ".SH SEE ALSO\n.BR tc (8),\n.BR tc\\-fq (8),\n.BR tc\\-etf (8),\n.BR apic_timer (4)\n"
    )
    return "".join(parts)
