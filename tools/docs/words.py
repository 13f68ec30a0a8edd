"""Words that this project's English avoids, and links that lead nowhere.

words.txt lists the words and their replacements. No text of the tree has them: documentation,
comments, docstrings and messages, patches. Code may.
"""

import ast
import io
import re
import tokenize
from fnmatch import fnmatch
from pathlib import Path

from .embed import slug
from .source import TREE, core, read, tracked

HERE = Path(__file__).resolve().parent
WORDS = HERE / "words.txt"
# Files that were not written here, and files that list the words.
NO_TEXTS = re.compile(r".*\.(json|svg|html|config|lock)|COPYING|debian/copyright|"
                      r"tools/docs/words\.txt|tests/docs/test_docs\.py")  # fmt: skip


def banned() -> dict[str, tuple[re.Pattern, str]]:
    """Return the words: for each, its pattern and its replacement."""
    found = {}
    for line in WORDS.read_text().splitlines():
        if line and not line.startswith("#"):
            word, instead = (part.strip() for part in line.split("\t", 1))
            pattern = re.sub(r"\\? ", r"\\s+(?:[*#/]+\\s+)?", word)
            found[word] = (re.compile(rf"\b(?:{pattern})\b", re.I), instead)
    return found


def in_texts() -> list[str]:
    """List the places where a text has one of the words."""
    found = []
    for file in tracked(r".*"):
        text = read(file)
        if NO_TEXTS.fullmatch(file) or "<!-- Made by" in text[:40]:
            continue
        text = _text_of(file, text)
        for word, (pattern, instead) in banned().items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{file}:{line}: {word}: {instead}")
    return sorted(found)


def _text_of(file: str, text: str) -> str:
    """Return the text that people read in a file; lines keep their numbers."""
    if file.endswith(".md"):
        return _without_code(text)
    if file.endswith((".c", ".h", ".S")):
        return _comments(text)
    if file.endswith(".py") or re.match(r"#!.*python", text):
        return _sentences(text)
    if file.endswith(".patch"):
        message, _, changes = text.partition("\n---\n")
        added = (line * line.startswith("+") for line in changes.split("\n"))
        return "\n".join((message, "", *added))
    return text


def _comments(text: str) -> str:
    """Return only the comments and strings of C; lines keep their numbers."""
    parts = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\n|.', re.S)
    kept = (m[0] if m[0][:2] in ("/*", "//") or m[0][0] in '"\n' else "" for m in
            parts.finditer(text))  # fmt: skip
    return "".join(kept)


def _sentences(text: str) -> str:
    """Return only Python's comments and strings of several words; lines roughly keep their numbers.

    Text between the braces of a string is code.
    """
    found = [(token.start[0], token.string)
             for token in tokenize.generate_tokens(io.StringIO(text).readline)
             if token.type == tokenize.COMMENT]  # fmt: skip
    found += [(node.lineno, node.value) for node in ast.walk(ast.parse(text))
              if isinstance(node, ast.Constant) and isinstance(node.value, str)
              and " " in node.value.strip()]  # fmt: skip
    lines = [""] * (text.count("\n") + 2)
    for first, part in found:
        for number, line in enumerate(part.split("\n"), first - 1):
            lines[min(number, len(lines) - 1)] += f" {line}"
    return "\n".join(lines)


def _without_code(text: str) -> str:
    """Return a text without code blocks and literals; lines keep their numbers."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"^<!-- embed:.*?^<!-- end -->", lambda m: "\n" * m[0].count("\n"), text,
                  flags=re.M | re.S)  # fmt: skip
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)|^    .*$", "", text, flags=re.M)


def links() -> list[str]:
    """List the documentation's links to missing files and headings."""
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
    """List table rows whose number of columns differs from the header's."""
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
    """List module sources that the design pages leave out, and files that they name in vain."""
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
    """List the pages that are not reachable from README.md."""
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
