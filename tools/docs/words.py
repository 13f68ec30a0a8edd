"""Words that this project's English does without, and links that lead nowhere.

words.txt has the words with what to say instead. README.md and docs/ have none of them. Sources
still have some: words-left.txt says how often each may occur in them, numbers that only may go
down. `make docs` lowers them to what is there.
"""

import re
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

from .embed import slug
from .source import TREE, core, read, tracked

HERE = Path(__file__).resolve().parent
WORDS = HERE / "words.txt"
LEFT = HERE / "words-left.txt"


def banned() -> dict[str, tuple[re.Pattern, str]]:
    """Return the words: what finds each, and what to say instead."""
    found = {}
    for line in WORDS.read_text().splitlines():
        if line and not line.startswith("#"):
            word, instead = (part.strip() for part in line.split("\t", 1))
            pattern = re.sub(r"\\? ", r"\\s+(?:[*#/]+\\s+)?", word)
            found[word] = (re.compile(rf"\b(?:{pattern})\b", re.I), instead)
    return found


def prose() -> tuple[str, ...]:
    """List what must have none of the words: texts that people have written."""
    return tuple(f for f in tracked(r"README\.md|(docs|samples|tests)/.*\.md|docs/man/.*\.\d|"
                                    r"user/tool/man/.*\.scd|"
                                    r"packaging/modprobe\.conf")
                 if "<!-- Made by" not in read(f)[:40])  # fmt: skip


def sources() -> tuple[str, ...]:
    """List the sources whose comments and messages are counted."""
    return (*core(), *tracked(r"(samples|tests|user)/.*\.[ch]"), *tracked(r"Kconfig"))


def _comments(text: str) -> str:
    """Return only the comments and strings of C, each line where it was."""
    parts = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\n|.', re.S)
    kept = (m[0] if m[0][:2] in ("/*", "//") or m[0][0] in '"\n' else "" for m in
            parts.finditer(text))  # fmt: skip
    return "".join(kept)


def _without_code(text: str) -> str:
    """Return a text without code blocks and literals, each line where it was."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"^<!-- embed:.*?^<!-- end -->", lambda m: "\n" * m[0].count("\n"), text,
                  flags=re.M | re.S)  # fmt: skip
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)|^    .*$", "", text, flags=re.M)


def in_prose() -> list[str]:
    """List where a text has one of the words."""
    found = []
    for file in prose():
        text = _without_code(read(file))
        for word, (pattern, instead) in banned().items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{file}:{line}: {word}: {instead}")
    return sorted(found)


def in_sources() -> dict[str, Counter[str]]:
    """Count each word by file."""
    counts: dict[str, Counter[str]] = {word: Counter() for word in banned()}
    for file in sources():
        text = read(file) if file == "Kconfig" else _comments(read(file))
        for word, (pattern, _) in banned().items():
            if n := len(pattern.findall(text)):
                counts[word][file] = n
    return counts


def left() -> dict[str, int]:
    """Return how often each word may occur in the sources."""
    found = {}
    for line in LEFT.read_text().splitlines() if LEFT.exists() else ():
        if line and not line.startswith("#"):
            word, number = line.rsplit("\t", 1)
            found[word] = int(number)
    return found


def too_many() -> list[str]:
    """List the words that occur in the sources more often than they may."""
    allowed, found = left(), []
    for word, files in in_sources().items():
        if files.total() > allowed.get(word, 0):
            most = ", ".join(f"{file} ({n})" for file, n in files.most_common(6))
            found.append(f"{word}: {files.total()} times in the sources, {allowed.get(word, 0)} "
                         f"are allowed; say: {banned()[word][1]}; {most}")  # fmt: skip
    return found


def lower() -> list[str]:
    """Lower what is allowed to what is there; never raise it."""
    allowed = left()
    lines = ["# How often each word of words.txt may still occur in comments and messages of the",
             "# sources. Numbers only go down: `make docs` lowers them."]  # fmt: skip
    for word, files in in_sources().items():
        if number := min(files.total(), allowed.get(word, 0)):
            lines.append(f"{word}\t{number}")
    text = "\n".join(lines) + "\n"
    if LEFT.exists() and text == LEFT.read_text():
        return []
    LEFT.write_text(text)
    return [str(LEFT.relative_to(TREE))]


def links() -> list[str]:
    """List links of the documentation to files and headings that are not there."""
    found = []
    for file in tracked(r".*\.md"):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", read(file), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            where = ((TREE / file).parent / path).resolve() if path else TREE / file
            if not where.exists():
                found.append(f"{file}: no {target}")
            elif anchor and where.suffix == ".md":
                headings = re.findall(r"^#+ (.*)$", where.read_text(), re.M)
                if anchor not in {slug(h) for h in headings}:
                    found.append(f"{file}: {path or file} has no heading #{anchor}")
    return found


def tables() -> list[str]:
    """List rows of tables that have not as many columns as their heads."""
    found = []
    for file in tracked(r".*\.md"):
        columns = 0
        for number, line in enumerate(read(file).splitlines(), 1):
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            if cells and columns and cells != columns:
                found.append(f"{file}:{number}: {cells - 1} columns, the head has {columns - 1}")
            columns = columns or cells if cells else 0
    return found


def design() -> list[str]:
    """List the sources of the modules that the pages of their design leave out, and the reverse."""
    page = "docs/explanation/design.md"
    text = read(page) + read("docs/explanation/shaper.md", True)
    named = set(re.findall(r"`(?:\w+/)*([\w*]+\.[ch])`", text))
    rooms = set(re.findall(r"`(\w+)/`", text)) - {"module", "core"}
    there = {f for f in core() if f.startswith("module/")}
    found = []
    for file in sorted(there):
        path = Path(file)
        covered = any(fnmatch(f"{path.stem}{end}", name) for name in named for end in (".c", ".h"))
        if not covered and path.parent.name not in rooms:
            found.append(f"{page} does not name {file}")
    names = {Path(f).name for f in there}
    found += [f"{page}: no file {n}" for n in sorted(named)
              if not any(fnmatch(name, n) for name in names)]  # fmt: skip
    return found


def unreachable() -> list[str]:
    """List the pages that no link leads to from README.md."""
    reached, todo = set(), ["README.md"]
    while todo:
        file = todo.pop()
        if file in reached or not (TREE / file).exists():
            continue
        reached.add(file)
        for target in re.findall(r"\]\(([^)\s#]+)", read(file, True)):
            where = ((TREE / file).parent / target).resolve()
            if where.is_relative_to(TREE) and where.suffix == ".md":
                todo.append(str(where.relative_to(TREE)))
    return [f"no link leads to {f}" for f in tracked(r"docs/.*\.md") if f not in reached]
