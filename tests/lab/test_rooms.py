"""The rooms of the module and of the lab: what points up is found, and so are circles."""

from pathlib import Path

import rooms

TREE = Path(__file__).resolve().parents[2]


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_includes(tmp_path):
    write(tmp_path, {
        "core/tsc/tsc.h": '#include "lib/queue.h"\n',
        "core/lib/queue.h": "",
        "core/lib/queue.c": '#include "lib/queue.h"\n#include "tsc/tsc.h"\n',
        "shaper/sch.c": '#include "lib/queue.h"\n',
    })  # fmt: skip
    found = rooms.includes(tmp_path)
    assert "module/core: tsc/tsc uses lib/queue: tsc/ must not know lib/" in found
    assert "module/core: circle: lib/queue -> tsc/tsc -> lib/queue" in found
    assert any("lib/queue.h is not a file of module/shaper/" in line for line in found)
    assert len(found) == 3


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
    assert rooms.links(tmp_path) == [f"no object of the core in {tmp_path}"]


def test_this_tree():
    assert not rooms.includes(TREE / "module")
    assert not rooms.imports(TREE / "tools/lab")
