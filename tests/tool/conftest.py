"""The program apic-timer, built as `make tool` does, and trees of files for its --root."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from machine_files import GOOD, TOOL, TREE

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def tool() -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs it with arguments; .stdout and .stderr have its output."""
    subprocess.run(["make", "-C", TREE, "build/tool/apic-timer"], check=True, capture_output=True)

    def run(*arguments, **options) -> subprocess.CompletedProcess:
        return subprocess.run([TOOL, *map(str, arguments)], text=True, capture_output=True,
                              timeout=120, **options)  # fmt: skip

    return run


@pytest.fixture(scope="session")
def units() -> Callable[..., str]:
    """Return a function that runs a part of the program alone: see units.c."""
    output = TREE / "build/tool/units"
    names = ("tsc", "skew", "trace_line", "files", "say", "keys", "json", "memory", "runs",
             "utf8", "histogram", "series")  # fmt: skip
    parts = [TREE / f"user/tool/{name}.c" for name in names]
    output.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread",
                    "-iquote", TREE / "user/tool", "-iquote", TREE / "user",
                    "-iquote", TREE / "include/uapi/linux", "-I", TREE / "include/uapi",
                    "-o", output, Path(__file__).parent / "units.c",
                    *parts], check=True)  # fmt: skip

    def run(*arguments, text: str = "", cpu: int | None = None) -> str:
        bind = () if cpu is None else ("taskset", "-c", str(cpu))
        return subprocess.run([*bind, output, *map(str, arguments)], input=text, text=True,
                              check=True, stdout=subprocess.PIPE).stdout  # fmt: skip

    return run


@pytest.fixture
def tree(tmp_path) -> Callable[..., Path]:
    """Return a function that makes a tree of a good machine with some files changed.

    tree({"proc/stat": "...", "sys/module/apic_timer/version": None}): None leaves a file out.
    """

    def make(changes: dict[str, str | None] | None = None) -> Path:
        for name, text in {**GOOD, **(changes or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text)
        return tmp_path

    return make


@pytest.fixture
def golden(request) -> Callable[[str, str], None]:
    """Return a function that compares a text with golden/NAME.

    With GOLDEN=write in the environment it writes the file instead, for inspection.
    """

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("GOLDEN") == "write":
            path.write_text(text)
        assert text == path.read_text()

    return compare
