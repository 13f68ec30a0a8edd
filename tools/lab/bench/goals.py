"""The project's goals for accuracy, and how to read from rows where each stands."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from . import chain, distance, guest, period, user
from .rows import Row, select
from .script import LAPIC

BUSY = ("user", "syscall", "net", "timers")


@dataclass(frozen=True)
class Standing:
    """Measurement of a goal.

    count: number of samples, where the result depends on it; None: it does not
    """

    measured: str
    met: bool
    count: int | None = None


@dataclass(frozen=True)
class Goal:
    """A goal. `stands` returns None if the rows do not show where it stands.

    holds: it has been met, so that losing it is a fault.
    why: what prevents meeting or measuring it, as far as known
    """

    what: str
    goal: str
    stands: Callable[[list[Row]], Standing | None]
    holds: bool = False
    why: str = ""


def unmeasured(_: list[Row]) -> None:
    """Return None, for a goal that no row shows."""


def _one(rows: list[Row], **wanted: str) -> Row | None:
    """Return the row of a timer on its usual source, or None."""
    if wanted.get("timer") == "apic_timer":
        wanted = {"source": LAPIC, **wanted}
    found = select(rows, **{"unit": "cycles", **wanted})
    return found[0] if found else None


def _exact(rows: list[Row], bench: str = "error", load: str = "idle") -> Row | None:
    return _one(rows, bench=bench, timer="apic_timer", mode="exact", load=load)


def _at_most(row: Row | None, **limits: int) -> Standing | None:
    """Compare percentiles with their limits; no expiry may be early."""
    if row is None:
        return None
    measured = " / ".join(f"{row[name]:,}" for name in limits)
    met = row["min"] >= 0 and all(row[name] <= limit for name, limit in limits.items())
    return Standing(f"{measured}, min {row['min']:,}", met)


def _exact_idle(rows: list[Row]) -> Standing | None:
    return _at_most(_exact(rows), p50=3, p99=9, p999=20, max=60)


def _exact_busy(load: str) -> Callable[[list[Row]], Standing | None]:
    return lambda rows: _at_most(_exact(rows, load=load), p999=60, max=300)


def _irqoff_beyond(rows: list[Row]) -> Standing | None:
    row = _exact(rows, "error/beyond", "irqoff")
    return row and Standing(f"{row['max']:,} beyond at most", row["max"] <= 60)


def _irqoff_budget(rows: list[Row]) -> Standing | None:
    row = _exact(rows, "error/budget_25us", "irqoff")
    return row and Standing(f"{row['p99']:,}", row["p99"] <= 60)


def _mean_idle(rows: list[Row]) -> Standing | None:
    row = _one(rows, bench="error", timer="apic_timer", mode="mean", load="idle")
    met = row is not None and abs(row["mean"]) <= 2 and row["sd"] <= 10
    return row and Standing(f"{row['mean']:.1f} / {row['sd']:.1f}", met)


def _closer(percentile: str, times: int) -> Callable[[list[Row]], Standing | None]:
    def stands(rows: list[Row]) -> Standing | None:
        own = _exact(rows)
        rival = _one(rows, bench="error", timer="hrtimer_hard", load="idle")
        if own is None or rival is None:
            return None
        ratio = rival[percentile] / max(own[percentile], 1)
        text = f"{ratio:,.0f} times ({own[percentile]:,} against {rival[percentile]:,})"
        return Standing(text, ratio >= times)

    return stands


def _far(rows: list[Row]) -> Standing | None:
    near = _exact(rows, distance.bench(100_000))
    far = _exact(rows, distance.bench(60_000_000_000))
    if near is None or far is None:
        return None
    return Standing(f"{far['p99']:,} against {near['p99']:,}", abs(far["p99"] - near["p99"]) <= 3)


def _period(rows: list[Row]) -> Standing | None:
    if not period.held(rows, "exact"):
        return None
    smallest = period.smallest_held(rows, "exact")
    if smallest is None:
        return Standing("none held", False)
    return Standing(f"{smallest / 1000:g} us", smallest <= 2000)


def cost_ratios(rows: Iterable[Row], operation: str) -> dict[int, float]:
    """Return the ratio of our mean to hrtimer's, by number of pending timers."""
    rows = list(rows)
    found = {}
    for row in select(rows, timer="apic_timer"):
        parts = str(row["bench"]).split("/")
        if parts[:2] == ["cost", operation]:
            rival = _one(rows, bench=str(row["bench"]), timer="hrtimer_hard")
            if rival is not None:
                found[int(parts[2])] = row["mean"] / rival["mean"]
    return dict(sorted(found.items()))


def _cost(operation: str, least: int, most: int, limit: float
          ) -> Callable[[list[Row]], Standing | None]:  # fmt: skip
    def stands(rows: list[Row]) -> Standing | None:
        ratios = {n: r for n, r in cost_ratios(rows, operation).items() if least <= n <= most}
        if not ratios:
            return None
        text = ", ".join(f"{ratio:.2f} at {n:,}" for n, ratio in ratios.items())
        return Standing(text, max(ratios.values()) <= limit)

    return stands


def _event(rows: list[Row]) -> Standing | None:
    absent, idle = (_one(rows, bench=f"{guest.bench(state)}/event", timer="hrtimer_hard")
                    for state in ("absent", "idle"))  # fmt: skip
    if absent is None or idle is None:
        return None
    more = idle["p50"] - absent["p50"]
    return Standing(f"{more:+,} ({idle['p50']:,} against {absent['p50']:,})", more <= 60)


CYCLICTEST_PART = 0.02  # of its p99: smallest difference that counts as a change


def _cyclictest(rows: list[Row]) -> Standing | None:
    absent, idle = (_one(rows, bench=guest.bench(state), timer="cyclictest")
                    for state in ("absent", "idle"))  # fmt: skip
    if absent is None or idle is None:
        return None
    met = idle["p99"] - absent["p99"] <= CYCLICTEST_PART * absent["p99"]
    text = ", ".join(f"{p} {idle[p]:,} against {absent[p]:,}" for p in ("p99", "p50"))
    return Standing(text, met)


def _user(load: str, **limits: int) -> Callable[[list[Row]], Standing | None]:
    def stands(rows: list[Row]) -> Standing | None:
        row = _one(rows, bench=user.NAME, timer="apic_timer", mode="user", load=load)
        found = _at_most(row, **limits)
        return found and replace(found, count=row["n"])

    return stands


def _user_waited(rows: list[Row]) -> Standing | None:
    row = _one(rows, bench=user.WAITED, timer="apic_timer", mode="user", load="idle")
    return row and Standing(f"{row['mean']:,.0f}", row["mean"] <= 2000, row["n"])


def _net(rows: list[Row], bench: str, timer: str) -> Row | None:
    mode = {"mode": "user"} if timer == "apic_timer" else {}
    return _one(rows, bench=bench, timer=timer, load="net", **mode)


def _user_net(rows: list[Row]) -> Standing | None:
    own, rival = (_net(rows, user.NAME, timer) for timer in ("apic_timer", "nanosleep"))
    if own is None or rival is None:
        return None
    text = f"p50 / p99 {own['p50']:,} / {own['p99']:,}, {rival['p50']:,} / {rival['p99']:,}"
    met = own["p50"] < rival["p50"] and own["p99"] < rival["p99"]
    return Standing(text, met, min(own["n"], rival["n"]))


def _user_net_cost(rows: list[Row]) -> Standing | None:
    """Compare with a thread that sleeps by clock_nanosleep() and then waits on the TSC too."""
    timers = ("apic_timer", "sleepspin")
    own, rival = (_net(rows, user.NAME, timer) for timer in timers)
    costs, cost = (_net(rows, user.WAITED, timer) for timer in timers)
    if None in (own, rival, costs, cost):
        return None
    text = " against ".join(f"{error['p99']:,} for {waited['mean']:,.0f}"
                            for error, waited in ((own, costs), (rival, cost)))  # fmt: skip
    met = own["p99"] <= rival["p99"] and costs["mean"] <= cost["mean"]
    return Standing(text, met, min(own["n"], rival["n"]))


def _chain(load: str) -> Callable[[list[Row]], Standing | None]:
    """Compare the thread that a handler wakes directly, after ours and after an hrtimer."""

    def stands(rows: list[Row]) -> Standing | None:
        name = chain.bench("direct", "user")
        own = _one(rows, bench=name, timer="apic_timer", mode="exact", load=load)
        rival = _one(rows, bench=name, timer="hrtimer_hard", load=load)
        if own is None or rival is None:
            return None
        text = f"p50 / p99 {own['p50']:,} / {own['p99']:,}, {rival['p50']:,} / {rival['p99']:,}"
        return Standing(text, own["p50"] < rival["p50"])

    return stands


def _chain_device(load: str) -> Callable[[list[Row]], Standing | None]:
    def stands(rows: list[Row]) -> Standing | None:
        name = chain.bench(chain.DEVICE, "user")
        row = _one(rows, bench=name, timer="apic_timer", mode="user", load=load)
        return row and Standing(f"{row['p50']:,}", 0 <= row["p50"] < 10)

    return stands


SMALL = "1 to 1,000"
HANDLERS = (
    Goal("exact, idle: p50 / p99 / p99.9 / max", "3 / 9 / 20 / 60, none early", _exact_idle,
         holds=True),
    *(Goal(f"exact, {load}: p99.9 / max", "60 / 300, none early", _exact_busy(load), holds=True)
      for load in BUSY),
    Goal("exact, irqoff: beyond the time they were off", "60", _irqoff_beyond, holds=True),
    Goal("exact, irqoff, spin budget 25 us: p99", "60", _irqoff_budget, holds=True),
    Goal("mean, idle: mean / sd", "within 2 / 10", _mean_idle),
    Goal("exact against hrtimer, idle: p50", "100 times closer", _closer("p50", 100), holds=True),
    Goal("exact against hrtimer, idle: p99.9", "20 times closer", _closer("p999", 20), holds=True),
    Goal("exact: p99 at 60 s against 100 us", "within 3", _far, holds=True),
    Goal("exact: smallest period with nothing lost", "2 us or less", _period),
    *(Goal(f"{what} against hrtimer, {where} pending", f"at most {limit:g}",
           _cost(operation, least, most, limit), holds=True)
      for operation, what in (("add", "add"), ("delete", "delete what was just added"),
                              ("older", "delete what was long pending"))
      for where, least, most, limit in ((SMALL, 1, 1000, 0.5),
                                        ("1,000,000", 1_000_000, 1_000_000, 0.7))),
    Goal("instructions more per kernel event, idle", "60", _event, holds=True),
    Goal("cyclictest's p99, idle", f"changes by less than {CYCLICTEST_PART:.0%}", _cyclictest),
)  # fmt: skip
# No sign announces a wake-up that takes longer than any before.
LONGER = "a wake-up longer than any before, such as one behind the load average's work every 5 s"
THREADS = (
    Goal("thread, idle: p99 / p99.9 / max", "4 / 4 / 4, none early",
         _user("idle", p99=4, p999=4, max=4), why=LONGER),
    Goal("thread, syscall: p99.9 / max", "4 / 50, none early", _user("syscall", p999=4, max=50),
         why=LONGER),
    Goal("thread, net: against clock_nanosleep", "less at p50 and p99", _user_net),
    Goal("thread, net: p99 for cycles waited, against clock_nanosleep and a loop",
         "no more, for no more", _user_net_cost,
         why="without PREEMPT_RT softirqs run before any thread, whatever has woken it"),
    Goal("thread, idle: waited per wake-up, mean", "2,000", _user_waited),
)  # fmt: skip
NET_RT = Goal("thread, net, on PREEMPT_RT: p99", "100, none early", _user("net", p99=100))
NET_ISOLATED = Goal(
    "thread, net, on a CPU of isolcpus=: p99", "100", unmeasured,
    why="takes two CPUs: those of virtual time run one at a time, on one clock, and in Bochs, at "
        "50 MHz, a wake-up takes longer than the device may wait",
)  # fmt: skip


def threads(kernel: str) -> tuple[Goal, ...]:
    """Return the goals of programs' threads on a kernel."""
    return (*THREADS, NET_RT if "-rt" in kernel else NET_ISOLATED)


CHAIN = tuple(
    goal
    for load in chain.LOADS
    for goal in (
        Goal(f"thread that a handler wakes, {load}: against hrtimer", "less at p50", _chain(load),
             holds=True),
        Goal(f"thread that the device wakes, {load}: p50", "less than 10", _chain_device(load),
             holds=True),
    )
)  # fmt: skip
GOALS = HANDLERS + THREADS + CHAIN


def table(rows: Iterable[Row], every: Iterable[Goal] = GOALS) -> str:
    """Return a table of the goals: goal, measured, met or not met; below it the reasons, if not."""
    rows = list(rows)
    lines, whys = [("", "what", "goal", "measured")], {}
    for goal in every:
        standing = goal.stands(rows)
        if standing is None:
            lines.append(("not measured", goal.what, goal.goal, ""))
        else:
            of = "" if standing.count is None else f", of {standing.count:,}"
            verdict = "met" if standing.met else "not met"
            lines.append((verdict, goal.what, goal.goal, standing.measured + of))
        if goal.why and not (standing and standing.met):
            whys[len(lines) - 1] = goal.why
    widths = [max(len(line[column]) for line in lines) + 2 for column in range(4)]
    text = ""
    for n, line in enumerate(lines):
        parts = zip(line, widths, strict=True)
        text += "".join(f"{part:<{width}}" for part, width in parts).rstrip() + "\n"
        if n in whys:
            text += f"{'':<{widths[0]}}  ({whys[n]})\n"
    return text.removesuffix("\n")


def lost(rows: Iterable[Row]) -> list[str]:
    """List the goals that were met before but are not by these rows, with the reason."""
    rows = list(rows)
    found = []
    for goal in GOALS:
        standing = goal.stands(rows)
        if goal.holds and standing is not None and not standing.met:
            found.append(f"{goal.what}: {standing.measured}; the goal is {goal.goal}")
    return found
