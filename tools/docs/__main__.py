"""Write what is generated of the documentation, or with --check compare it with its sources."""

import argparse
import sys
import tempfile
from pathlib import Path

from . import embed, man, pages, results, words
from .source import TREE, DocsError, read

README_LINES = 80


def check() -> list[str]:
    """List the parts of the documentation that differ from their sources, and its other faults."""
    found = []
    for name, text in pages.pages().items():
        if read(name, True) != text:
            found.append(f"{name}: differs from its source; run make docs")
    for name in embed.texts():
        if embed.embedded(read(name), name) != read(name):
            found.append(f"{name}: an embedded block differs from its source; run make docs")
    if (lines := read("README.md").count("\n")) > README_LINES:
        found.append(f"README.md has {lines} lines; one screen are {README_LINES}")
    found += results.differing()
    searches = (words.links, words.unreachable, words.tables, words.design, words.in_texts)
    for search in searches:
        found += search()
    with tempfile.TemporaryDirectory() as directory:
        found += man.lint(man.write(Path(directory))).splitlines()
    return found


def main() -> int:
    """Run the command line; return 1 if a check finds something, 2 if a source is malformed."""
    parser = argparse.ArgumentParser(prog="docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare; write nothing")
    parser.add_argument("--man", action="store_true", help="write only the manual pages")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            found = check()
            print("\n".join(found), end="\n" if found else "")
            return 1 if found else 0
        if not arguments.man:
            for name in [*pages.write(), *results.tables(), *embed.write()]:
                print(f"docs: wrote {name}")
        print(f"docs: wrote {len(man.write())} manual pages to {man.OUTPUT.relative_to(TREE)}")
    except DocsError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
