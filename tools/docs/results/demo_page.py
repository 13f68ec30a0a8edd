"""docs/results/demo.md: the demo's results, and where its output is."""

from collections.abc import Iterable

from ..table import FIGURES, table

LABELS = {
    "apic_timer_exact": "apic_timer, `exact` (default)",
    "apic_timer_raw": "apic_timer, `raw` (control)",
    "hrtimer_hard": "hrtimer, pinned, hard",
    "apic_timer_dev": "`/dev/apic_timer`",
    "clock_nanosleep": "`clock_nanosleep()`",
}


def text(found: dict) -> str:
    """Return the page's text: errors of timers and of threads, and the kernel log."""
    from lab.run import demo

    timers = [row for row in found["rows"] if row["timer"] not in demo.THREADS]
    threads = [row for row in found["rows"] if row["timer"] in demo.THREADS]
    parts = [
        "An error is the TSC at the handler's first instruction - expiry, in TSC cycles, which\n"
        "are nanoseconds here.\n",
        f"## Errors\n\n{_errors('timer', 'expiries', timers)}",
    ]
    if threads:
        parts.append(
            "## Threads of programs\n\n"
            "The TSC at the first instruction of a `SCHED_FIFO` thread after its sleep, less the\n"
            f"wanted one.\n\n{_errors('sleeps by', 'sleeps', threads)}"
        )
    parts += [
        f"## Kernel log\n\n    {found['log']}\n",
        "## Output\n\n[demo.txt](demo.txt) is what `make demo VERBOSE=1` printed.\n",
    ]
    return "\n".join(parts)


def _errors(what: str, count: str, rows: Iterable[dict]) -> str:
    heads = {**FIGURES, "n": count}
    return table((what, *heads.values()),
                 ((LABELS.get(row["timer"], row["timer"]), *(row[key] for key in heads))
                  for row in rows), words=1)  # fmt: skip
