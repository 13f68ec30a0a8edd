"""The table that ends a run with --matrix has the right counts."""

import json

import matrix
from lab.engines.result import Result
from machines import Boot, Machine

ONE, TWO = Machine("6.1", 2), Machine("7.2", 1, engine="virtual")


def test_rows(tmp_path):
    found = matrix.rows(
        [(TWO, "passed", ""), (ONE, "error", ""), (TWO, "skipped", "no such CPU"),
         (TWO, "failed", ""), (TWO, "passed", "")],
        {TWO: [Boot(seconds, Result("ok", "", "", ""), None) for seconds in (10, 2.34)]},
    )  # fmt: skip
    assert [(r["kernel"], r["passed"], r["failed"], r["skipped"]) for r in found] == [
        ("7.2", 2, 1, 1), ("6.1", 0, 1, 0),
    ]  # fmt: skip
    assert [r["seconds"] for r in found] == [12.3, None]
    text = matrix.table(found)
    assert text.splitlines()[1].split()[:4] == ["7.2", "virtual", "1", "proxy"]
    assert "skipped on 7.2: no such CPU" in text
    matrix.write(tmp_path / "build" / "m.json", found)
    assert json.loads((tmp_path / "build" / "m.json").read_text()) == found
