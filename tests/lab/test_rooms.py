"""tools/rooms.py finds upward and circular references between rooms of the module and the lab."""

import shutil
import subprocess
from pathlib import Path

import rooms

TREE = Path(__file__).resolve().parents[2]


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_includes(tmp_path):
    modules = write(tmp_path, {
        "module/core/tsc/tsc.h": '#include "lib/queue.h"\n',
        "module/core/lib/queue.h": "#include <linux/list.h>\n",
        "module/core/lib/queue.c": '#include "lib/queue.h"\n#include "tsc/tsc.h"\n',
        "module/shaper/sch.c": '#include "lib/queue.h"\n',
    }) / "module"  # fmt: skip
    found = rooms.includes(modules)
    assert "module/core: tsc/tsc uses lib/queue: tsc/ must not know lib/" in found
    assert "module/core: circle: lib/queue -> tsc/tsc -> lib/queue" in found
    assert any("lib/queue.h is not a file of module/shaper/" in line for line in found)
    assert len(found) == 3


def test_other_modules_know_public_headers_only(tmp_path):
    """Both forms of include are found: <...> searches the compiler's -I, ".." goes anywhere."""
    modules = write(tmp_path, {
        "include/linux/apic_timer.h": "",
        "include/linux/apic_clock.h": "",
        "include/uapi/linux/sch_apic.h": "",
        "include/trace/events/apic_timer.h": "",
        "include/trace/events/sch_apic.h": "",
        "module/core/Kbuild": "obj-$(CONFIG_APIC_TIMER) += apic_timer.o\n",
        "module/core/mux/mux.h": "",
        "module/core/api.c": "#include <linux/apic_timer.h>\n#include <linux/apic_clock.h>\n",
        "module/clock/Kbuild": "obj-$(CONFIG_APIC_CLOCK) += apic_clock.o\n",
        "module/clock/clock.c": "#include <linux/apic_clock.h>\n",
        "module/shaper/Kbuild": "obj-m += sch_apic.o\n",
        "module/shaper/sch.h": "",
        "module/shaper/sch.c": '#include "sch.h"\n'
                               "#include <linux/apic_timer.h>\n"
                               "#include <linux/apic_clock.h>\n"
                               "#include <uapi/linux/sch_apic.h>\n"
                               "#include <trace/events/sch_apic.h>\n"
                               "#include <linux/list.h>\n"
                               '#include "../core/mux/mux.h"\n'
                               "#include <../core/mux/mux.h>\n"
                               "# include <mux/mux.h>\n"
                               '#include "linux/apic_timer.h"\n'
                               "#include <trace/events/apic_timer.h>\n",
    }) / "module"  # fmt: skip
    sch = modules / "shaper/sch.c"
    assert rooms.includes(modules) == [
        f"{modules}/core/api.c:2: linux/apic_clock.h is of module/clock/",
        f"{sch}:7: ../core/mux/mux.h is not a file of module/shaper/",
        f"{sch}:8: ../core/mux/mux.h is not a file of module/shaper/",
        f"{sch}:9: mux/mux.h is a file of module/core/",
        f"{sch}:10: linux/apic_timer.h is not a file of module/shaper/",
        f"{sch}:11: trace/events/apic_timer.h is of module/core/",
    ]


def test_angle_brackets_hide_no_circle(tmp_path):
    modules = write(tmp_path, {
        "module/core/lib/a.h": "#include <lib/b.h>\n",
        "module/core/lib/b.h": '#include "lib/a.h"\n',
    }) / "module"  # fmt: skip
    assert rooms.includes(modules) == ["module/core: circle: lib/a -> lib/b -> lib/a"]


def test_imports(tmp_path):
    write(tmp_path, {
        "base/cache.py": "from ..run import demo\n",
        "run/demo.py": "from ..base.cache import x\n",
        "__main__.py": "from .run import demo\n",
    })  # fmt: skip
    assert rooms.imports(tmp_path) == [
        "tools/lab: base/cache uses run/demo: base/ must not know run/",
        "tools/lab: circle: run/demo -> base/cache -> run/demo",
    ]


def test_nothing_is_built(tmp_path):
    assert rooms.links(tmp_path) == [f"no kernel module in {tmp_path}"]
    write(tmp_path, {"core/main.c": "", "core/apic_timer.mod.c": "", "core/apic_timer.mod.o": ""})
    nothing = f"module/core: no object of a source in {tmp_path / 'core'}"
    assert rooms.links(tmp_path) == [nothing]


def test_links(tmp_path):
    """A call without an include is found: of a function that the caller's file declares."""
    write(tmp_path, {
        "core/lib/queue.c": "int queue_len;\nint queue_first(void) { return queue_len; }\n",
        "core/tsc/tsc.c": "int queue_first(void);\nint elsewhere(void);\n"
                          "int tsc_read(void) { return queue_first() + elsewhere(); }\n",
        "core/mux/mux.c": "int tsc_read(void);\nint mux_next(void) { return tsc_read(); }\n",
        "clock/map.c": "int tsc_read(void);\nint skew(void);\nint map_length;\n"
                       "int map(void) { return tsc_read() + skew(); }\n",
        "clock/skew.c": "extern int map_length;\nint skew(void) { return map_length; }\n",
    })  # fmt: skip
    for source in tmp_path.rglob("*.c"):
        subprocess.run(["cc", "-c", source, "-o", source.with_suffix(".o")], check=True)
    # The linked object has every symbol, and does not show who uses it.
    shutil.copy(tmp_path / "core/tsc/tsc.o", tmp_path / "core/apic_timer.o")
    assert rooms.links(tmp_path) == [
        "module/clock (objects): circle: map -> skew -> map",
        "module/core (objects): tsc/tsc uses lib/queue: tsc/ must not know lib/",
    ]


def test_this_tree():
    assert not rooms.includes(TREE / "module")
    assert not rooms.imports(TREE / "tools/lab")
