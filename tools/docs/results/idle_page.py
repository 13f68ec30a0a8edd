"""docs/results/idle.md: the idle states of a CPU with a timer."""

from ..table import table


def text(found: dict) -> str:
    """Return the page's text: shares of idle states, by the module's parameter."""
    from lab.run import idle

    heads = [f"{where}: {state}" for where in ("its CPU", "other CPU") for state in idle.STATES]
    lines = [(f"`{row['setting']}`",
              *(f"{share:.1f} %" for share in (*row["timers"], *row["other"])), row["error"])
             for row in found["rows"]]  # fmt: skip
    return (
        "One timer of mode `exact` a second on one of two CPUs: shares of the time in each idle\n"
        f"state, of {idle.SECONDS} s, or {idle.SHORT} s in short; with `{idle.FOR_ALL}`, of "
        f"{idle.POLLING} s.\n"
        "The latest expiry is that of a machine with one CPU, which takes "
        f"{idle.WAKING_US} us to wake from\nthe deep state.\n\n"
        "## Shares of idle states\n\n"
        + table(("parameter", *heads, "latest expiry, cycles"), lines, words=1)
    )  # fmt: skip
