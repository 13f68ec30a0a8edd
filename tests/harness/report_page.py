"""Access to the page of `apic-timer report`: parts by section and machine, and its rendering."""

import html
import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

EMPTY = {"meta", "path", "br", "link"}
WIDTHS = (360, 800, 1400)


@dataclass
class Part:
    """A table or figure."""

    section: str
    machine: str  # machine whose rows it has
    claim: str  # the last text before it that says what its rows may be used for
    title: str = ""
    cells: list[list[str]] = field(default_factory=list)  # of a table, including its header
    points: list[int] = field(default_factory=list)  # of a figure, per line
    text: str = ""  # all text of a figure

    @property
    def is_table(self) -> bool:
        return bool(self.cells)


class Page(HTMLParser):
    """Elements of a page by section; fails if one is not closed, or fetched from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.section = self.machine = self.claim = ""
        self.count: Counter[tuple[str, str]] = Counter()
        self.classes: Counter[tuple[str, str]] = Counter()
        self.words: dict[str, str] = {}
        self.links: set[str] = set()
        self.parts: list[Part] = []
        self._goes_to = ""  # destination of the next text: "machine", "claim", "title"
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes) -> None:
        given = dict(attributes)
        kind = given.get("class") or ""
        if tag == "section":
            self.section = given["id"]
            self.machine = self.claim = ""
        elif tag == "h3":
            self.machine = self.claim = ""
            self._goes_to = "machine"
        elif kind.split()[:1] == ["claim"]:
            self.claim, self._goes_to = "", "claim"
        elif tag in ("table", "figure"):
            self.parts.append(Part(self.section, self.machine, self.claim))
        elif tag in ("caption", "title") and self.parts:
            self._goes_to = "title"
        elif tag == "tr":
            self.parts[-1].cells.append([])
        elif tag in ("td", "th"):
            self.parts[-1].cells[-1].append("")
        elif tag == "path" and kind == "dots":
            self.parts[-1].points.append(len(re.findall(r"M-?[\d.]+ -?[\d.]+h0", given["d"])))
        self.count[self.section, tag] += 1
        self.classes[self.section, kind] += 1
        assert tag not in ("script", "img", "iframe", "link") and "src" not in given
        if "href" in given:
            assert given["href"].startswith("#")
            self.links.add(given["href"][1:])
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes) -> None:
        assert tag == "path"
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag
        if tag in ("h3", "p", "caption", "title"):
            self._goes_to = ""

    def handle_data(self, data) -> None:
        self.words[self.section] = self.words.get(self.section, "") + data
        if self._goes_to == "title":
            self.parts[-1].title += data
        elif self._goes_to:
            setattr(self, self._goes_to, getattr(self, self._goes_to) + data)
        if self.open and self.open[-1] in ("td", "th"):
            self.parts[-1].cells[-1][-1] += data
        elif "figure" in self.open:
            self.parts[-1].text += data + "\n"

    def find(self, section: str, machine: str, title: str, tables: bool) -> list[Part]:
        """Return a machine's tables, or figures, whose title has these words."""
        return [part for part in self.parts if part.is_table == tables and title in part.title
                and (part.section, part.machine) == (section, machine)]  # fmt: skip


# Contents of the papers, and the machine of `make report` whose rows show them: section, machine,
# title, minimum rows of a table (without its header), or 0: a figure.
LOOPS = ("rdtsc", "across", "lfence", "pause", "counted")
LOOP_TABLES = ("figures 3, 5 and 7", "figure 4; across two lines", "After a walk", "flushed")
WANTED = [
    ("machines", "modelled", "The model", 5),
    # "Temporal accuracy": figures 3 to 8
    *[("loop", "modelled", f"Loop {way}, caches {caches}", 0)
      for way in ("rdtsc", "across") for caches in ("on", "off")],
    *[("loop", "modelled", title, 2) for title in LOOP_TABLES],
    *[("loop", "virtual-time", f"Loop {way}, ", 0) for way in LOOPS],
    ("loop", "virtual-time", "figures 3, 5 and 7", len(LOOPS)),
    # Figures 9 to 12, mode exact next to them, and the artefact
    *[("timer", "modelled", f"{period} us, raw, {behind}, caches {caches}", 0)
      for period in (100, 15) for behind in ("nop", "cpuid") for caches in ("on", "off")],
    *[("timer", machine, f"{period} us, exact, {behind}, caches", 0)
      for machine in ("modelled", "virtual-time") for period in (100, 15)
      for behind in ("nop", "cpuid")],
    ("timer", "modelled", "100 us, raw, nop, caches flushed", 0),
    *[("timer", "modelled", f"100 us, raw, nop, caches after a walk through {kib} KiB", 0)
      for kib in (64, 512, 8192)],
    ("timer", "modelled", "100 us, exact, nop, caches after a walk", 0),
    *[("timer", "modelled", f"Body of the handler, samples {what}", 0)
      for what in ("stored", "only counted", "that begin a line")],
    ("timer", "modelled", "Storing samples", 2),
    ("timer", "modelled", "A periodic timer", 19),
    ("timer", "virtual-time", "A periodic timer", 12),
    *[("timer", "virtual-time", f"{period} us, raw, {behind}, caches as they are", 0)
      for period in (100, 15) for behind in ("nop", "cpuid")],
    # "Core differences": tables 1 to 3
    ("keys", "this-machine", "Core cycles of a key", 2),
    ("cycles", "this-machine", "Core cycles of a turn", 14),
    ("memory", "this-machine", "Latency of a load by size", 0),
    ("memory", "this-machine", "through memory of a size", 5),
    ("memory", "this-machine", "share a set", 4),
    ("memory", "this-machine", "Offset in the line, L1 hit", 9),
    ("memory", "this-machine", "Offset in the line, L2 hit", 9),
    ("memory", "this-machine", "across two lines", 2),
    # "PCI Pamette": figures 3 to 5
    ("chain", "virtual-time", "Handler - expiry (figure 4)", 0),
    ("chain", "virtual-time", "woken by the handler", 0),
    ("chain", "virtual-time", "woken by a tasklet (figure 5)", 0),
    ("chain", "virtual-time", "by a FIFO thread", 0),
    ("chain", "virtual-time", "Idle", 12),
    ("chain", "virtual-time", "Loaded", 12),
    ("ports", "virtual-time", "One reading of the clock", 0),
    ("ports", "virtual-time", "One reading of the clock (figure 3)", 14),
    ("ports", "virtual-time", "From boot on", 10),
]  # fmt: skip
# Each machine's description of its rows
CLAIMS = {
    "modelled": r"Modelled: ",
    "virtual-time": r"in virtual time|In virtual time",
    "this-machine": r"Measured (on hardware|in a virtual machine)",
}
LINES = {"chain": 4, "ports": 2}  # lines of a figure there; others have 1


def missing(page: Page, machines: tuple[str, ...] = tuple(CLAIMS)) -> list[str]:
    """Return the faults of `make report`'s page: parts that are missing, empty, or unlabelled.

    machines: those whose rows are in the page
    """
    found = []
    for section, machine, title, rows in WANTED:
        if machine not in machines:
            continue
        parts = page.find(section, machine, title, tables=rows > 0)
        if not parts:
            found.append(f"{section}, {machine}: there is no {title}")
        for part in parts:
            if rows and len(part.cells) - 1 < rows:
                found.append(f"{section}, {machine}: {part.title} has few rows")
            if not rows and (len(part.points) < LINES.get(section, 1) or min(part.points) < 1):
                found.append(f"{section}, {machine}: {part.title} has points {part.points}")
    for part in page.parts:
        where = f"{part.section}, {part.machine}: {part.title}"
        words = part.text + " ".join(" ".join(row) for row in part.cells)
        if re.search(r"\b(nan|inf|null)\b", words, re.I):
            found.append(f"{where} has what is no number")
        if any(len(row) != len(part.cells[0]) or "" in row for row in part.cells):
            found.append(f"{where} has cells that are empty")
        if part.section in ("machines", "bench"):
            continue
        if not re.search(CLAIMS.get(part.machine, "^$"), part.claim):
            found.append(f"{where} does not say what it may be taken for")
    return found


LOOK = """<!DOCTYPE html><body>%s<script>
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, body = page.body;
    const seen = [...page.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
    const texts = [...page.querySelectorAll("h2, p, td, caption")];
    const behind = getComputedStyle(body).backgroundColor;
    const same = texts.filter(text => getComputedStyle(text).color == behind);
    const cut = [...page.querySelectorAll("svg")].filter(svg => {
      const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].some(text => {
        const at = text.getBoundingClientRect();
        return at.left < box.left - 1 || at.right > box.right + 1 ||
               at.top < box.top - 1 || at.bottom > box.bottom + 1;
      });
    });
    return {width: frame.clientWidth, wide: page.documentElement.scrollWidth,
            background: behind, same: same.length, figures: seen.length,
            small: seen.filter(s => s.width < 200 || s.height < 90).length,
            large: seen.filter(s => s.width > 720).length,
            outside: seen.filter(s => s.right > frame.clientWidth).length,
            cut: cut.map(svg => svg.querySelector("title").textContent)};
  });
  document.body.textContent = JSON.stringify(found);
});
</script></body>"""


def look(text: str, folder: Path, *, dark: bool) -> None:
    """Open a page in a headless browser at three widths; fail if anything is cut off or invisible.

    folder: where the browser may write
    """
    browser = shutil.which("chromium")
    assert browser, "chromium is not there: tools/setup test"
    frames = "".join(f'<iframe style="width:{w}px;height:900px;border:0" '
                     f'srcdoc="{html.escape(text)}"></iframe>' for w in WIDTHS)  # fmt: skip
    (folder / "look.html").write_text(LOOK % frames)
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000",
         *["--force-dark-mode"] * dark, f"--user-data-dir={folder}/profile", "--dump-dom",
         (folder / "look.html").as_uri()], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = json.loads(html.unescape(re.search(r"<body>(\[.*\])</body>", done.stdout, re.S)[1]))
    assert [seen["width"] for seen in found] == list(WIDTHS)
    for seen in found:
        print(seen)
        assert seen["wide"] <= seen["width"]
        assert seen["figures"] == text.count("<svg ")
        assert (seen["small"], seen["large"], seen["outside"], seen["same"]) == (0, 0, 0, 0)
        assert seen["cut"] == []
        assert (seen["background"] == "rgb(255, 255, 255)") != dark
