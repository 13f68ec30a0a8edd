"""The kernel's text of histograms and traces, for the tests of apic-timer."""

# As printed by Linux 6.1 to 7.2.
HEAD = "# event histogram\n#\n# trigger info: hist:keys={}:vals=hitcount:sort=hitcount:size=8192{}"
TOTALS = "\nTotals:\n    Hits: {}\n    Entries: {}\n    Dropped: {}\n\n"


def histogram(rows: list[str], keys="function.sym,error.log2", where=" if error >= 0", hits=0,
              dropped=0) -> str:  # fmt: skip
    return (HEAD.format(keys, where) + " [active]\n#\n\n" + "".join(f"{row}\n" for row in rows)
            + TOTALS.format(hits, len(rows), dropped))  # fmt: skip


def by_handler(name: str, power: int, count: int) -> str:
    return (f"{{ function: [ffffffffc0234020] {name:<44}, error: ~ 2^{power:<2} }} "
            f"hitcount: {count:10}")  # fmt: skip


BOTH = histogram(
    [by_handler("pace_tick [pacer]", 0, 5), by_handler("pace_tick [pacer]", 4, 90),
     by_handler("watch_tick", 10, 3), by_handler("pace_tick [pacer]", 1, 5)], hits=103,
) + histogram(
    ["{ function: [ffffffffc0234020] pace_tick [pacer]          , error: ~ 18446744073709551488-"
     "18446744073709551551 } hitcount:          2",
     "{ function: [ffffffffc0234020] pace_tick [pacer]          , error: ~ 18446744073709551552-"
     "18446744073709551615 } hitcount:          8"],
    keys="function.sym,error.buckets=64", where=" if error < 0", hits=10,
)  # fmt: skip


# trace_pipe, with clock x86-tsc
TIMER = "timer=00000000811ed095 function=pace_tick [pacer]"
LINE = "{:>16} [{:03}] d.h..  {}: apic_timer_{}: {}"


def line(tsc: int, event: str, fields: str, task: str = "dd-77", cpu: int = 1) -> str:
    return LINE.format(task, cpu, tsc, event, fields)


def receipt(
    expires: int, entry: int, ready: int, now: int, lead: int = 4000, more: str = ""
) -> str:
    return line(now + 90, "receipt", f"{TIMER} expires={expires} entry={entry} ready={ready} "
                f"now={now} error={now - expires} spin={now - ready} lead={lead} delta=41000 "
                f"deferred=611 smi=0 mode=exact cpu_state=busy{more}")  # fmt: skip


LATE = [
    line(900_000, "add", f"{TIMER} expires=1100000 cpu=1 flags=0x0", task="web server [x]-5"),
    line(910_000, "mod", f"{TIMER} expires=1000000 cpu=1 flags=0x0"),
    line(910_500, "program", "target=1050000 now=910400 delta=139600 value=0x1"),
    line(911_000, "program", "target=996000 now=910900 delta=85100 value=0x2"),
    line(912_000, "program", "target=5000 now=1 delta=1 value=0x2", cpu=0),
    line(950_000, "add", "timer=0000000000000001 function=other expires=1 cpu=1 flags=0x0"),
    line(1_013_402, "expire_entry", f"{TIMER} expires=1000000 now=1013600"),
    # Its handler adds it again, before the receipt is written.
    line(1_013_790, "add", f"{TIMER} expires=2000000 cpu=1 flags=0x0"),
    line(1_013_800, "expire_exit", f"{TIMER} cycles=60"),
    receipt(1_000_000, 1_013_402, 1_013_700, 1_013_737),
    line(1_014_000, "defer", "expires=1013389 deferred=611"),
]
EARLY = [
    line(1_990_000, "program", "target=1996000 now=1 delta=6000 value=0x2"),
    line(1_996_200, "expire_entry", f"{TIMER} expires=2000000 now=1996200"),
    line(2_000_050, "expire_exit", f"{TIMER} cycles=50"),
    receipt(2_000_000, 1_996_200, 1_996_900, 2_000_003),
]
