"""The generators of the documentation find what the sources say, and detect faults."""

import json
import re

import pytest
from docs.source import DocsError, Parameter
from lab.kernels import kernels, lock

from docs import embed, kerneldoc, man, pages, source, words
from docs.results import made


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Put files into a separate tree: tree({"module/a.c": "..."})."""

    def put(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    for module in (source, embed, words, made, pages):
        monkeypatch.setattr(module, "TREE", tmp_path, raising=False)
    monkeypatch.setattr(source, "core", lambda: tuple(
        str(f.relative_to(tmp_path)) for f in sorted(tmp_path.glob("module/**/*.[ch]"))
    ))  # fmt: skip
    source.tracked.cache_clear()
    yield put
    source.tracked.cache_clear()


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            'static unsigned int a_ns = 5 * NSEC_PER_USEC;\nmodule_param(a_ns, uint, 0444);\n'
            'MODULE_PARM_DESC(a_ns, "one "\n\t"two");\n',
            Parameter("a_ns", "uint", "5000", "", "ns", "one two", 0o444),
        ),
        (
            "#define ONE\t10000U\nunsigned int x_part = ONE;\n"
            'module_param_named(part, x_part, uint, 0644);\nMODULE_PARM_DESC(part, "p");\n',
            Parameter("part", "uint", "10000", "", "", "p", 0o644),
        ),
        (
            'static char *m = "exact";\nmodule_param(m, charp, 0444);\nMODULE_PARM_DESC(m, "w");\n',
            Parameter("m", "charp", "exact", "", "", "w", 0o444),
        ),
        (
            "static bool q = true;\nmodule_param(q, bool, 0444);\nMODULE_PARM_DESC(q, \"?\");\n",
            Parameter("q", "bool", "Y", "", "", "?", 0o444),
        ),
        (
            'APIC_TIMER_PARAM(b_us, 500, 10, 1000 * 1000, "us",\n\t\t "one, "\n\t\t "two");\n',
            Parameter("b_us", "uint", "500", "10 to 1000000", "us", "one, two", 0o444),
        ),
        (
            "APIC_TIMER_PARAM_NAMED(part, apic_timer_part, /* not static */,\n"
            '\t\t10000, 5000, 10000, "1/10000", "p");\n',
            Parameter("part", "uint", "10000", "5000 to 10000", "1/10000", "p", 0o444),
        ),
        (
            "#define MOST\t(5 * NSEC_PER_USEC)\nstatic unsigned int c_ns = 40;\n"
            "static int set_c(const char *text, const struct kernel_param *param)\n{\n"
            "\treturn param_set_uint_minmax(text, param, 1,\n\t\t\t\t     MOST);\n}\n"
            "static const struct kernel_param_ops c_ops = {\n\t.set = set_c, .get = x,\n};\n"
            'module_param_cb(c_ns, &c_ops, &c_ns, 0644);\n'
            'MODULE_PARM_DESC(c_ns, "cost, 1 to 5000; of all");\n',
            Parameter("c_ns", "uint", "40", "1 to 5000", "ns", "cost; of all", 0o644),
        ),
        (
            "static unsigned int d_s = 6;\nmodule_param(d_s, uint, 0400);\n"
            'MODULE_PARM_DESC(d_s, "period (0 to 9; 0 is never)");\n'
            "static int init(void)\n{\n\tif (d_s > 9) {\n\t\tpr_err(\"no\");\n",
            Parameter("d_s", "uint", "6", "0 to 9", "s", "period (0 is never)", 0o400),
        ),
    ],
)  # fmt: skip
def test_parameter(tree, text, expected):
    tree({"module/a.c": text})
    assert source.parameters() == [expected]


def test_parameters_by_module(tree):
    """A folder's Kbuild says which module its sources belong to."""
    tree({
        "module/core/Kbuild": "obj-$(if $(X),m,$(CONFIG_A)) += apic_timer.o\n",
        "module/core/a.c": 'module_param(a, int, 0444);\nMODULE_PARM_DESC(a, "of the core");\n',
        "module/aside/Kbuild": "obj-$(if $(X),m,$(CONFIG_B)) += aside.o\n"
                               "obj-$(CONFIG_KUNIT) += b.o\n",
        "module/aside/b.c": 'module_param(b, int, 0444);\nMODULE_PARM_DESC(b, "not of it");\n',
    })  # fmt: skip
    assert source.modules() == {"apic_timer": "module/core", "aside": "module/aside"}
    assert [p.name for p in source.parameters()] == ["a"]
    assert [p.name for p in source.parameters("aside")] == ["b"]


def test_range_that_is_described_otherwise(tree):
    tree({"module/a.c": "static unsigned int a = 6;\nmodule_param(a, uint, 0400);\n"
                        'MODULE_PARM_DESC(a, "period, 1 to 9");\n'
                        "static int init(void)\n{\n\tif (a > 9) {\n\t\tpr_err();\n"})  # fmt: skip
    with pytest.raises(DocsError, match="a takes 0 to 9, and its MODULE_PARM_DESC says 1 to 9"):
        source.parameters()


def test_parameters_in_a_manual_page(tree):
    tree({
        "module/aside/Kbuild": "obj-$(if $(X),m,$(CONFIG_B)) += aside.o\n",
        "module/aside/b.c": 'module_param(b, int, 0444);\nMODULE_PARM_DESC(b, "what it is");\n',
        "docs/man/aside.4": ".SH PARAMETERS\n@PARAMETERS aside@\n.SH SEE ALSO\n",
    })  # fmt: skip
    assert man.by_hand()["man4/aside.4"] == (
        ".SH PARAMETERS\n.TP\n.B b\nWhat it is.\n(default 0)\n.SH SEE ALSO\n"
    )


def test_parameter_without_description(tree):
    tree({"module/a.c": "static int a;\nmodule_param(a, int, 0444);\n"})
    with pytest.raises(DocsError, match="parameter a has no MODULE_PARM_DESC"):
        source.parameters()


def test_description_without_parameter(tree):
    tree({"module/a.c": 'MODULE_PARM_DESC(a, "what");\n'})
    with pytest.raises(DocsError, match="no declaration found of the parameters a"):
        source.parameters()


def test_statistics(tree):
    tree({"module/stats.h": '#define APIC_TIMER_STATS(X)\t\\\n\tX(A, a, "one") \\\n'
                            '\tX(B, b, "two "\t\\\n\t  "more")\n\nenum { X };\n'})  # fmt: skip
    assert source.statistics() == [("a", "one"), ("b", "two more")]


def test_debug_file_without_description(tree):
    tree({"module/debugfs.c": "/*\n * /sys/kernel/debug/apic_timer/\n *\n *\ta\tone\n */\n"
                              'debugfs_create_dir("apic_timer", NULL);\n'
                              'debugfs_create_file("a", 0400, d, NULL, &f);\n'
                              'debugfs_create_file("b", 0400, d, NULL, &f);\n'})  # fmt: skip
    with pytest.raises(DocsError, match="lists .*'a'.*creates .*'a', 'b'"):
        source.debug_files()


FUNCTION = """\
/**
 * f() - do what
 *	is said
 * @a:	first, of @b
 *	and more
 *
 * A paragraph
 * of two lines.
 *
 * Context: Any.
 * Return:
 * * %0 - done
 * * %-EINVAL - not
 *   done
 */
int f(struct x *a,
      int b)
{
}
"""


def test_kernel_doc(tree, monkeypatch):
    monkeypatch.setattr(source, "version", lambda: "1.0")
    tree({"module/a.c": FUNCTION, "include/linux/apic_a.h": "int f(struct x *a, int b);\n"})
    (found,) = kerneldoc.comments("module/a.c")
    assert (found.kind, found.name, found.what) == ("function", "f", "do what is said")
    assert found.members == [("a", "first, of @b and more")]
    assert found.text == ["A paragraph of two lines."]
    assert found.context == "Any."
    assert found.result == ["* %0 - done", "* %-EINVAL - not done"]
    assert found.code == "int f(struct x *a, int b);"
    page = man.function(found, "include/linux/apic_a.h")
    assert "\n.B #include <linux/apic_a.h>\n" in page
    assert '.BI "int f(struct x *" a ", int " b ");"' in page
    assert "\n.B \\-EINVAL\nnot done\n" in page


def test_code_in_kernel_doc():
    """Indented text is code: its & and @ belong to C."""
    text = "Arm @timer by add(), of &struct timer:\n\tadd(&timer) | add();"
    assert kerneldoc.markdown(text) == (
        "Arm `timer` by `add()`, of `timer`:\n\tadd(&timer) | add();"
    )
    assert kerneldoc.roff(text) == (
        "Arm \\fItimer\\fP by \\fBadd\\fP(), of \\fBtimer\\fP:\n\tadd(&timer) | add();"
    )


FIELDS = """
	TP_PROTO(u32 cycle, u64 late),
	TP_ARGS(cycle, late),
	TP_STRUCT__entry(
		__field(u32,	cycle)
		__field(u64,	late)
	),
	TP_fast_assign(
		__entry->cycle = cycle;
		__entry->late = late;
	),
	TP_printk("")
);

"""
EVENTS = f"""#define TRACE_SYSTEM x

DECLARE_EVENT_CLASS(x_class,{FIELDS}
/**
 * x_one - called first
 * @cycle:	its number
 * @late:	how late, of one
 */
DEFINE_EVENT(x_class, x_one,
	TP_PROTO(u32 cycle, u64 late),
	TP_ARGS(cycle, late)
);

/**
 * x_other - called then
 * @cycle:	the other number
 * @late:	how late, of the other
 */
DEFINE_EVENT(x_class, x_other,
	TP_PROTO(u32 cycle, u64 late),
	TP_ARGS(cycle, late)
);
"""


def test_events_of_a_class(tree):
    """Events of one class share its fields, and each has its own meaning for them."""
    tree({"include/trace/events/x.h": EVENTS})
    found = re.findall(r"### `(\w+)`\n\n(.*)\n\n((?:\|.*\n)+)", pages.tracepoints())
    assert [(name, what) for name, what, _ in found] == [
        ("x_one", "Called first."), ("x_other", "Called then."),
    ]  # fmt: skip
    for (_, _, rows), number, late in zip(found, ("its", "the other"), ("one", "the other"),
                                          strict=True):  # fmt: skip
        assert f"| `cycle` | `u32` | {number} number |\n" in rows
        assert f"| `late` | `u64` | how late, of {late} |\n" in rows


def test_event_of_no_class(tree):
    tree({"include/trace/events/x.h": EVENTS.replace("x_other,", "x_others,")})
    with pytest.raises(DocsError, match="x_other is not a trace event"):
        pages.tracepoints()


def test_every_exported_function_has_a_page():
    pages = man.pages()
    names = {source.macro_of(name)[0] if source.macro_of(name) else name
             for name, _ in source.exported()}  # fmt: skip
    assert {"add_apic_timer", "apic_clock_phc_attach"} <= names
    assert {f"man9/{name}.9" for name in names} <= pages.keys()
    # The macro passes THIS_MODULE.
    assert "__" not in pages["man9/apic_clock_phc_detach.9"]
    assert "owner" not in pages["man9/apic_clock_phc_attach.9"]


TEXT = "# a\n\n<!-- embed: x.c /^b/../^c/ -->\nold\n<!-- end -->\nrest\n"


def test_embed(tree):
    tree({"x.c": "a\nb\nb\nc\n"})
    assert embed.embedded(TEXT, "x.md") == TEXT.replace("old", "```c\nb\nb\n```")


def test_embed_drawing(tree):
    """Tabs in a comment keep their positions."""
    tree({"x.c": "/*\n * a\n *\tCPU0\t\tCPU1\n *\n *\t  b\n * c\n */\n"})
    text = TEXT.replace("^b", "CPU0").replace("^c", r"^ \* c")
    drawing = "```\nCPU0            CPU1\n\n  b\n```"
    assert embed.embedded(text, "x.md") == text.replace("old", drawing)


def test_embed_heading(tree):
    tree({"x.md": "# a\none\n## The `b`\ntwo\n### c\nthree\n## d\nfour\n"})
    text = "<!-- embed: x.md #the-b -->\n<!-- end -->\n"
    assert embed.embedded(text, "y.md").splitlines()[1:-1] == ["two", "### c", "three"]


@pytest.mark.parametrize(
    "text, reason",
    [
        (TEXT.replace("^b", "^x"), "x.c has no line that matches ^x"),
        (TEXT.replace("x.c", "y.c"), "y.c: "),
        (TEXT.replace("<!-- end -->", ""), "lacks its"),
        (TEXT.replace("/^b/../^c/", "b"), "neither #heading nor /from/../to/"),
    ],
)
def test_embed_of_what_is_not_there(tree, text, reason):
    tree({"x.c": "a\nb\nc\n"})
    with pytest.raises(DocsError) as caught:
        embed.embedded(text, "a.md")
    assert "a.md: " in str(caught.value) and reason in str(caught.value)


@pytest.mark.parametrize(
    "file, text, lines",
    [
        ("a.md", "He was\ntold `told`.\n\n    told\n\n```\ntold\n```\n", (2,)),
        ("a.md", "<!-- Made by make docs -->\ntold\n", ()),
        ("a.c", 'int told; /* He was told,\n * so\n * many times */\nprint("told");\n', (1, 2, 4)),
        ("a.py", "told = 1  # told\nx = f'is told {told}'\ncases = ('told',)\n", (1, 2)),
        ("a.py", '"""Nobody.\n\nHe was told.\n"""\n', (3,)),
        ("a", "#!/usr/bin/env python3\ntold = 1\n# told\n", (3,)),
        ("a", "#!/bin/sh\n# told\n", (2,)),
        ("a.patch", "Subject: told\n\ntold\n---\n a | 1\n-told\n told\n+told\n", (1, 3, 8)),
        ("a.json", '{"told": 1}', ()),
    ],
)
def test_words(tree, monkeypatch, file, text, lines):
    """Words are found in text that people read, with the right line, but not in code."""
    tree({file: text})
    monkeypatch.setattr(words, "tracked", lambda pattern: (file,))
    found = [place.rpartition(": ")[0] for place in words.in_texts()]
    word = {2: "so many"} if file == "a.c" else {}
    assert found == [f"{file}:{line}: {word.get(line, 'told')}" for line in lines]


def test_links(tree, monkeypatch):
    tree({"a.md": "[b](b.md#one) [c](c.md) [d](b.md#two) [e](https://example.org)\n",
          "b.md": "# One\n"})  # fmt: skip
    monkeypatch.setattr(words, "tracked", lambda pattern: ("a.md", "b.md"))
    assert words.links() == ["a.md: no c.md", "a.md: b.md has no heading #two"]


def test_tables(tree, monkeypatch):
    tree({"a.md": "| a | b |\n| --- | --- |\n| `c \\| d` | e |\n| `f | g` | h |\n\n| i |\n"})
    monkeypatch.setattr(words, "tracked", lambda pattern: ("a.md",))
    assert words.tables() == ["a.md:4: 3 columns, the head has 2"]


def test_stale(tmp_path, monkeypatch):
    """Results from different sources are noticed; a changed comment makes no difference."""
    files = [tmp_path / file.name for file in made.FILES]
    for file in files:
        by = {"kernel": "6.1", "tree": made.tree_hash(file)}
        file.write_text(json.dumps({"made": by}))
    monkeypatch.setattr(made, "FILES", files)
    monkeypatch.setattr(made, "TREE", tmp_path)
    assert made.stale() == []
    read = made.read

    def changed(of: str, text: str) -> list[str]:
        monkeypatch.setattr(made, "read", lambda file: (
            f"{text}\n{read(file)}" if re.fullmatch(of, file) else read(file)
        ))  # fmt: skip
        return [line.split(".json is stale")[0] for line in made.stale()]

    assert changed(r".*\.c", "/* more */ // x") == []
    assert changed(r"module/.*\.c", "#include <linux/apic_timer.h>") == []
    assert changed("module/clock/skew.c", "#include <linux/apic_calendar.h>") == ["clocks"]
    # Only results that the change affects.
    every = [file.stem for file in files]
    native = [name for name in every if name.startswith("native-")]
    assert native and changed("include/linux/apic_timer.h", "int more;") == every
    assert changed("module/core/lib/stats.h", "int more;") == [
        name for name in every if name not in native]  # fmt: skip
    assert changed("user/apic_timer_user.h", "int more;") == native
    assert changed("module/core/lib/queue.c", "int more;") == every
    assert changed("module/clock/skew.c", "int more;") == ["clocks"]
    assert changed("include/linux/apic_clock.h", "int more;") == ["clocks"]
    assert changed("include/uapi/linux/apic_timer.h", "int more;") == [
        "demo", "bench", "user", "calendar"]  # fmt: skip
    files[1].unlink()
    assert f"{files[1].name} is missing: make results" in made.stale()


def test_results_say_what_made_them():
    """Every committed result has its header, with all fields known."""
    assert made.NATIVE
    for file in made.NATIVE:
        by = json.loads(file.read_text())["made"]
        assert set(by) == {"CPU", "tree", "compiler"} and "unknown" not in by.values()
        assert made.native(by["CPU"]).name == file.name
    for file in (made.DEMO, made.BENCH, made.USER):
        by = json.loads(file.read_text())["made"]
        assert list(by) == [field for field in made.MADE if field in by]
        # Results from before there was a lock, or a choice of CPUs, do not name it.
        assert set(made.MADE) - set(by) <= {"inputs", "CPU"}
        assert "unknown" not in by.values()
        page = (made.RESULTS / f"{file.stem}.md").read_text()
        assert made.header(by) in page


def test_lines_of_the_kernel_log():
    """DEBUGGING has a row for each error and warning of the core."""
    table = source.read("docs/DEBUGGING.md").partition("## Lines in the kernel log")[2]
    cells = re.findall(r"^\| (.+?) \|", table.partition("\n## ")[0], re.M)[2:]
    # Capitals stand for something else, and so does the number n of a CPU.
    rows = [re.sub(r"\b([A-Z_]+|n)\b|(\\ )?\\\.\\\.\\\.", ".*", re.escape(line))
            for cell in cells for line in re.findall(r"`([^`]+)`", cell)]  # fmt: skip
    # No line may be found by these alone.
    rows = [row for row in rows if not re.fullmatch(r"(\w+|\.\*):(\\ )?\.\*", row)]
    sources = "".join(map(source.read, source.tracked(r"module/core/.*\.[ch]")))
    lines = []
    for call in re.findall(r'\bpr_(?:err|warn)\w*\(((?:\s*"(?:[^"\\]|\\.)*")+)', sources):
        line = re.sub("%p[Ss]", "f+1/2", source.strings(call))
        lines.append(re.sub(r"%#?(?:ll|l)?[dsux]", "1", line))
    assert len(lines) > 20
    assert [line for line in lines if not any(re.match(row, line) for row in rows)] == []


@pytest.mark.long
@pytest.mark.parametrize("series", kernels.SUPPORTED)
def test_exports(series):
    """Kernel facts lists what the locked kernels export; updates of a series may differ."""
    kernel = kernels.ensure(series)
    others = lock.differing(kernels.part(series), kernel.root)
    if any(package.startswith("linux-headers-") for package in others):
        pytest.skip(f"{kernel.release} is not the locked kernel")
    exported = {}
    for line in (kernel.root / f"usr/src/linux-headers-{kernel.release}/Module.symvers").open():
        _crc, symbol, _file, how, namespace = line.rstrip("\n").split("\t")
        exported[symbol] = (("GPL" if how == "EXPORT_SYMBOL_GPL" else "yes")
                            + f" ns={namespace}" * bool(namespace))  # fmt: skip
    page = source.read("docs/explanation/kernel-facts.md").partition("\n## Exports\n")[2]
    head, _, *rows = re.findall(r"^\| (.+) \|$", page.partition("\n## ")[0], re.M)
    column = head.split(" | ").index(series)
    listed = {cells[0].strip("`"): cells[column] for cells in (row.split(" | ") for row in rows)}
    assert len(listed) > 90
    assert listed == {symbol: exported.get(symbol, "no") for symbol in listed}


def test_git_refuses(tree, tmp_path, monkeypatch):
    """A checkout whose files git does not list gives one error, not a traceback."""
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(DocsError, match="git does not list the files of .*not a git repository"):
        source.tracked(r".*")
