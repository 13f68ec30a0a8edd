"""Collect tests once, and write which of them pytest would run by each selection.

    python3 selections.py FILE DIRECTORY...

FILE becomes a JSON object: "short", "matrix", "quick" -> ids, and "long" -> ids of the tests marked
so. Collecting takes long, selecting does not.
"""

import json
import sys
from pathlib import Path

import pytest
from machines import is_long

CHOICES = ("short", "matrix", "quick")


class Selections:
    """A pytest plug-in that makes all others select from copies of the collected tests."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, session, config, items):
        """Call this hook, which deselects tests, once with each of the options."""
        option = config.option
        for choice in CHOICES if not self.found else ():
            self.found[choice] = []  # so that the calls below go to the other plug-ins only
            option.matrix, option.quick = choice == "matrix", choice == "quick"
            chosen = list(items)
            config.hook.pytest_collection_modifyitems(session=session, config=config, items=chosen)
            self.found[choice] = [item.nodeid for item in chosen]
        self.found["long"] = [item.nodeid for item in items if is_long(item)]
        return (yield)


if __name__ == "__main__":
    output, *directories = sys.argv[1:]
    selections = Selections()
    status = pytest.main([*directories, "--collect-only", "-q", "--no-second-try"], [selections])
    Path(output).write_text(json.dumps(selections.found))
    sys.exit(status)
