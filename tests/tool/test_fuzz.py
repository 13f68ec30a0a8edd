"""apic-timer, built with address and undefined-behaviour sanitizers, survives mutilated files."""

import os
import random
import subprocess
from pathlib import Path

import pytest
import report_rows
from kernel_texts import BOTH, EARLY, LATE
from machine_files import GOOD, TREE

pytestmark = pytest.mark.long

ROUNDS = 12  # of each seed
SOUP = b"0123456789-[]{}:,~^= \n"
NUMBERS = (
    b"99999999999999999999",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"%s%n",
    b"\0",
)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory) -> Path:
    """Return the program."""
    program = tmp_path_factory.mktemp("sanitized") / "apic-timer"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-pthread", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=all", "-iquote", TREE / "user/tool",
                    "-iquote", TREE / "include/linux", "-iquote", TREE / "include/uapi/linux",
                    "-iquote", TREE / "user", "-I", TREE / "include/uapi", "-o", program,
                    *sorted((TREE / "user/tool").rglob("*.c"))], check=True)  # fmt: skip
    return program


def mutilated(text: str, rng: random.Random) -> bytes:
    """Return a text with some bytes changed, removed, repeated or cut off."""
    data = bytearray(text.encode())
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at : at + rng.randrange(1, 30)]
        elif kind == 2:
            data[at:at] = bytes(rng.choices(SOUP, k=rng.randrange(1, 25)))
        elif kind == 3:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + rng.randrange(80)]
        elif kind == 4:
            data[at:at] = rng.choice(NUMBERS)
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_no_rows_break_the_report(sanitized, tmp_path, seed):
    """Mutilated rows, or rows of another command, give a page or a message."""
    rng = random.Random(seed)
    folder = report_rows.write(tmp_path / "report")
    files = sorted((folder / "rows").rglob("*.json"))
    good = {file: file.read_text() for file in files}
    for _ in range(2 * ROUNDS):
        for file in rng.sample(files, 6):
            other = good[rng.choice(files)]
            file.write_bytes(other.encode() if rng.random() < 0.4 else mutilated(good[file], rng))
        check(sanitized, "report", "--draw", "--bench", rng.choice(files), folder)


def check(program: Path, *arguments) -> None:
    """Run the program: it must exit by itself, without a sanitizer's report."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, timeout=60,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # fmt: skip
    report = done.stderr.decode(errors="replace")
    assert done.returncode in (0, 1, 2) and "Sanitizer" not in report, report
    assert "runtime error" not in report, report


@pytest.mark.parametrize("seed", range(4))
def test_no_file_breaks_it(sanitized, tmp_path, seed):
    """Any file contents give an answer or a message, and no undefined behaviour."""
    rng = random.Random(seed)
    root = tmp_path / "root"
    trace = "\n".join(LATE + EARLY)

    def run(*arguments) -> None:
        check(sanitized, *arguments)

    for _ in range(ROUNDS):
        (tmp_path / "hist").write_bytes(mutilated(BOTH, rng))
        drawn = ["--svg", tmp_path / "svg"]
        run("hist", "--from", tmp_path / "hist",
            *rng.choice([[], ["--json"], ["--of", "time"], drawn]))  # fmt: skip
        (tmp_path / "trace").write_bytes(mutilated(trace, rng))
        run("trace", "--from", tmp_path / "trace", "-n", "0",
            *rng.choice([[], ["--json"], ["--late", "5"]]), "pace_tick")  # fmt: skip
        for name, text in GOOD.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for name in rng.sample(sorted(GOOD), 3):
            (root / name).write_bytes(mutilated(GOOD[name], rng))
        run("status", "--root", root, *rng.choice([[], ["--json"]]))
        run("doctor", "--root", root, *rng.choice([[], ["--json"], ["--cpus", "1"]]))
