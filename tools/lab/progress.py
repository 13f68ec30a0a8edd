"""Progress goes to standard error: what a run has found is what standard output has."""

import sys


def say(who: str, text: str) -> None:
    """Print a line that begins with the name of the command or part that says it."""
    print(f"{who}: {text}", file=sys.stderr, flush=True)
