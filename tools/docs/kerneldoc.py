"""The kernel-doc comments of the sources, parsed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .source import DocsError, core, macro_of, read


@dataclass
class Comment:
    """A kernel-doc comment.

    kind:       "function", "struct", "enum" or "macro"
    name, what: from its first line
    members:    (name, text) of each @name
    text:       the paragraphs after the members
    context, result: after "Context:" and "Return:", with items that begin with "* "
    code:       the prototype or the definition that it documents
    """

    kind: str
    name: str
    what: str
    file: str
    members: list[tuple[str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    context: str = ""
    result: list[str] = field(default_factory=list)
    code: str = ""


_BLOCK = re.compile(r"^/\*\*\n(.*?)^ \*/\n(.*?)(?=^/\*\*\n|\Z)", re.M | re.S)


def comments(file: str) -> list[Comment]:
    """List the comments of a file."""
    return [_comment(block, code, file) for block, code in _BLOCK.findall(read(file))]


def find(name: str) -> Comment:
    """Return the comment of a function, a structure, an enumeration or a macro."""
    found = [c for file in core() if name in read(file) for c in comments(file) if c.name == name]
    if len(found) != 1:
        raise DocsError(f"{len(found)} kernel-doc comments of {name}")
    return found[0]


def called(name: str) -> Comment:
    """Return an exported function's comment, with the name that callers use: see macro_of()."""
    comment, macro = find(name), macro_of(name)
    if not macro:
        return comment
    comment.name, arguments = macro
    comment.members = [(n, text) for n, text in comment.members if n in arguments]
    result, parameters = re.fullmatch(rf"(.*?){name}\((.*)\);", comment.code).groups()
    kept = [p for p in parameters.split(", ") if re.search(r"\w+$", p)[0] in arguments]
    comment.code = f"{result}{comment.name}({', '.join(kept)});"
    comment.what = re.sub(r"\b__(?=\w+\(\))", "", comment.what)
    return comment


def _comment(block: str, code: str, file: str) -> Comment:
    lines = [re.sub(r"^ \*(?: |$)?", "", line).rstrip() for line in block.splitlines()]
    first = re.match(r"(?:(struct|enum|union|typedef) )?(\w+)(\(\))?\s*-\s*(.*)", lines[0])
    if not first:
        raise DocsError(f"{file}: unexpected start of a comment: {lines[0]!r}")
    kind = first[1] or ("function" if first[3] else "macro")
    comment = Comment(kind, first[2], first[4], file, code=_code(kind, code))
    part: Callable[[str], None] | None = _append_what(comment)
    empty = False
    for line in lines[1:]:
        member = re.match(r"@([\w.]+):\s*(.*)", line.strip())
        section = re.match(r"(Context|Return):\s*(.*)", line)
        if member:
            comment.members.append((member[1], member[2]))
            part = _append_member(comment)
        elif section:
            part = {"Context": _append_context, "Return": _append_result}[section[1]](comment)
            part(section[2])
        elif not line.strip():
            if part and not _is_section(part):
                part = None
            empty = True
            continue
        elif part is None or (_is_section(part) and empty):
            comment.text.append(line.strip())
            part = _append_text(comment)
        else:
            part(line.strip())
        empty = False
    return comment


def _is_section(part: Callable) -> bool:
    return getattr(part, "section", False)


def _append_what(comment: Comment) -> Callable[[str], None]:
    def add(line: str) -> None:
        comment.what += f" {line}"

    return add


def _append_member(comment: Comment) -> Callable[[str], None]:
    def add(line: str) -> None:
        name, text = comment.members[-1]
        comment.members[-1] = (name, f"{text} {line}".strip())

    return add


def _append_text(comment: Comment) -> Callable[[str], None]:
    def add(line: str) -> None:
        comment.text[-1] += f" {line}"

    return add


def _append_context(comment: Comment) -> Callable[[str], None]:
    def add(line: str) -> None:
        comment.context = f"{comment.context} {line}".strip()

    add.section = True
    return add


def _append_result(comment: Comment) -> Callable[[str], None]:
    def add(line: str) -> None:
        if line.startswith("* ") or not comment.result:
            if line:
                comment.result.append(line)
        else:
            comment.result[-1] += f" {line}"

    add.section = True
    return add


def _code(kind: str, code: str) -> str:
    """Return a function's prototype, or a type's definition up to its private part."""
    if kind == "macro":
        lines = code.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        return "\n".join(lines[: end + 1])
    if kind in ("struct", "enum"):
        text = code.partition("\n};")[0] + "\n};"
        return re.sub(r"\n\n?\t/\* private: \*/.*(?=\n};)", "\n\t/* private */", text, flags=re.S)
    text = re.split(r"\n\{|;", code, maxsplit=1)[0]
    text = re.sub(r"\n\t+__(must_hold|acquires|releases)\(.*?\)", "", text)
    return re.sub(r"\s+", " ", text).strip() + ";"


def plain(text: str) -> str:
    """Return a text without kernel-doc markup."""
    return re.sub(r"[@%&](?=[A-Za-z_0-9-])(?:(?:struct|enum) )?", "", text)


def markdown(text: str) -> str:
    """Convert kernel-doc markup to Markdown; an indented line is code, without any markup."""
    parts = re.split(r"(^\t.*$)", text, flags=re.M)
    return "".join(part if part[:1] == "\t" else _markdown(part) for part in parts)


def _markdown(text: str) -> str:
    text = text.replace("|", r"\|")
    text = re.sub(r"[@%](-?\w+(?:(?:->|\.)\w+)*)", r"`\1`", text)
    text = re.sub(r"&(?:struct |enum )?(\w+(?:(?:->|\.)\w+)*)", r"`\1`", text)
    return re.sub(r"(?<![`\w])(\w+\(\))", r"`\1`", text)


def roff(text: str) -> str:
    """Convert kernel-doc markup to man(7); an indented line is code."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    parts = re.split(r"(^\t.*$)", text, flags=re.M)
    text = "".join(part if part[:1] == "\t" else _roff(part) for part in parts)
    return "\n".join(rf"\&{line}" if line[:1] in ".'" else line for line in text.split("\n"))


def _roff(text: str) -> str:
    text = re.sub(r"@(\w+(?:(?:\\->|\.)\w+)*)", r"\\fI\1\\fP", text)
    text = re.sub(r"[%&](?:struct |enum )?((?:\\-)?\w+(?:(?:\\->|\.)\w+)*)", r"\\fB\1\\fP", text)
    return re.sub(r"\b(\w+)\(\)", r"\\fB\1\\fP()", text)


def sentence(text: str) -> str:
    """Return a text with an initial capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".?!" else ".")
