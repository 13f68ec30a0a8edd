"""Blocks of README.md and docs/ that repeat parts of other files of the tree.

    <!-- embed: FILE PART -->
    ...
    <!-- end -->

The text between the two lines is replaced by the part of the file, as a code block unless the file
is Markdown. PART is nothing (all of the file), ``#heading`` (the text below a heading of a Markdown
file, up to the next heading of its level), or ``/FROM/../TO/``: the lines from the first that
matches a regular expression up to the one before the next that matches the other. Lines that all
belong to one C comment, such as a drawing, lose their comment marks.
"""

import re
import textwrap
from pathlib import PurePath

from .source import TREE, DocsError, read, tracked

BLOCK = re.compile(
    r"^<!-- embed: (\S+)(?: ((?!-->)[^\n]+?))? -->\n(.*?)^<!-- end -->\n", re.M | re.S
)
LANGUAGES = {".c": "c", ".h": "c", ".mk": "make", "Makefile": "make", ".py": "python",
             ".conf": "sh", ".sh": "sh", ".patch": "diff"}  # fmt: skip


def texts() -> tuple[str, ...]:
    """List the files that may have such blocks."""
    return tracked(r"(README|docs/.*)\.md|README\.md")


def embedded(text: str, where: str) -> str:
    """Return a text with all its blocks filled in."""

    def fill(block: re.Match) -> str:
        head = block[0].split("\n", 1)[0]
        try:
            return f"{head}\n{_part(block[1], block[2] or '')}\n<!-- end -->\n"
        except DocsError as error:
            raise DocsError(f"{where}: {error}") from None

    if len(re.findall(r"^<!-- embed:", text, re.M)) != len(BLOCK.findall(text)):
        raise DocsError(f"{where}: a block lacks its <!-- end -->")
    return BLOCK.sub(fill, text)


def _part(file: str, part: str) -> str:
    if file.endswith(".md"):
        return _section(read(file), part, file).strip("\n")
    path = PurePath(file)
    language = LANGUAGES.get(path.suffix or path.name, "")
    text = excerpt(file, part)
    if language == "c" and all(line.startswith(" *") for line in text.splitlines()):
        text, language = _comment(text), ""
    return f"```{language}\n{text}\n```"


def _comment(text: str) -> str:
    """Return the text of a C comment's lines."""
    lines = [line.removeprefix(" *").expandtabs() for line in text.splitlines()]
    return textwrap.dedent("\n".join(lines)).strip("\n")


def excerpt(file: str, part: str) -> str:
    """Return a part of a file that is not Markdown."""
    text = read(file)
    if span := re.fullmatch(r"/(.+?)/\.\./(.+?)/", part):
        lines = text.splitlines()
        begin = next((i for i, line in enumerate(lines) if re.search(span[1], line)), None)
        if begin is None:
            raise DocsError(f"{file} has no line that matches {span[1]}")
        rest = lines[begin + 1 :]
        end = next((i for i, line in enumerate(rest) if re.search(span[2], line)), len(rest))
        text = "\n".join(lines[begin : begin + 1 + end])
    elif part:
        raise DocsError(f"{part} is neither #heading nor /from/../to/")
    return text.strip("\n")


def slug(heading: str) -> str:
    """Return the anchor that GitHub makes from a heading."""
    text = re.sub(r"`|\[|\]\([^)]*\)", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _section(text: str, part: str, file: str) -> str:
    if not part:
        return text
    lines = text.splitlines()
    headings = [
        (number, len(found[1]), slug(found[2]))
        for number, line in enumerate(lines)
        if (found := re.fullmatch(r"(#+) (.*)", line))
    ]
    wanted = part.removeprefix("#")
    for number, level, name in headings:
        if name == wanted:
            later = (n for n, other, _ in headings if n > number and other <= level)
            return "\n".join(lines[number + 1 : next(later, len(lines))])
    raise DocsError(f"{file} has no heading {part}")


def write() -> list[str]:
    """Fill in the blocks; return the files that have changed."""
    changed = []
    for name in texts():
        text = read(name)
        new = embedded(text, name)
        if new != text:
            (TREE / name).write_text(new)
            changed.append(name)
    return changed
