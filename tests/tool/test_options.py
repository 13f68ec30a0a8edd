"""Help, manual pages and completion agree on apic-timer's options; bad ones are rejected."""

import errno
import os
import re
import shutil
import subprocess
import termios
from itertools import pairwise

import pytest
from machine_files import COMMANDS, TOOL, TREE

MAN = TREE / "user/tool/man"


def helped(tool, command: str) -> dict[str, tuple[str, str]]:
    """Return the options of --help by name: letter and argument."""
    text = tool(command, "--help").stdout
    found = re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?=  |\n)", text, re.M)
    return {name: (letter, argument) for letter, name, argument in found}


def in_page(command: str) -> dict[str, tuple[str, str]]:
    """Return the same from the section OPTIONS of a manual page."""
    text = (MAN / f"apic-timer-{command}.1.scd").read_text()
    section = text.split("\n# OPTIONS\n")[1].split("\n# ")[0]
    found = re.findall(r"^(?:\*-(\w)\*, )?\*--([\w-]+)\*(?: (\S+))?$", section, re.M)
    return {name: (letter, argument.strip("_")) for letter, name, argument in found}


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_page_has_the_options_of_help(tool, command):
    options = helped(tool, command)
    assert {"json", "help"} <= options.keys()
    assert in_page(command) == options


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_page_has_the_summary_of_help(tool, command):
    summary = tool(command, "--help").stdout.split("\n")[2].rstrip(".")
    page = (MAN / f"apic-timer-{command}.1.scd").read_text()
    name = re.search(r"# NAME\n\napic-timer-(\w+) - (.*)\n", page)
    assert (name[1], name[2]) == (command, summary[0].lower() + summary[1:])


def test_commands(tool):
    """The usage, the main page and the pages list the same commands."""
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", tool("--help").stdout, re.M)
    page = (MAN / "apic-timer.1.scd").read_text()
    assert tuple(listed) == COMMANDS
    assert tuple(re.findall(r"^\*apic-timer-(\w+)\*\(1\)$", page, re.M)) == COMMANDS
    assert {p.name for p in MAN.iterdir()} == {
        "apic-timer.1.scd", *(f"apic-timer-{c}.1.scd" for c in COMMANDS)
    }  # fmt: skip


@pytest.mark.parametrize("page", sorted(MAN.glob("*.scd")), ids=lambda p: p.name)
def test_scdoc_takes_the_page(page):
    done = subprocess.run(["scdoc"], stdin=page.open(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f'.TH "{page.name.split(".")[0]}" "1"' in done.stdout


def test_version(tool):
    version = re.search(r'VERSION "(.*)"', (TREE / "include/linux/apic_version.h").read_text())[1]
    assert tool("--version").stdout == f"apic-timer {version}\n"


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["bogus"], "unknown command bogus"),
        (["hist", "--bogus"], "hist: unknown option --bogus"),
        (["hist", "-z"], "hist: unknown option -z"),
        (["hist", "--seconds"], "hist: --seconds needs a value: N"),
        (["hist", "--seconds=0"], "--seconds takes a number from 1 to 86400, not \"0\""),
        (["hist", "-s", "1x"], "not \"1x\""),
        (["hist", "-s", "99999999999999999999"], "not \"99999999999999999999\""),
        (["hist", "--by", "cpus"], "--by takes one of cpu|handler|state, not \"cpus\""),
        (["hist", "--by", ""], "--by takes one of"),
        (["hist", "--json=yes"], "--json takes no value"),
        (["hist", "--svg", ""], "hist: --svg takes the name of a file, not \"\""),
        (["hist", "--root="], "hist: --root takes the name of a directory, not \"\""),
        (["hist", "more"], "unexpected argument \"more\""),
        (["hist", "--of", "time", "--by", "state"], "--of time works with --by cpu or handler"),
        (["hist", "--from", "/nowhere"], "can't read /nowhere"),
        *((["hist", "--from", "/nowhere", *option], f"hist: {option[0]} does not work with --from")
          for option in (["--by", "cpu"], ["--linear", "9"], ["--seconds", "5"])),
        (["trace", "--from", "/nowhere", "-s", "60", "f"],
         "trace: --seconds does not work with --from"),
        *((["accuracy", "loop", *option], f"accuracy: {option[0]} does not work with loop")
          for option in (["--period", "100"], ["--mode", "exact"], ["--behind", "nop"],
                         ["--keep", "all"], ["--bound", "1"])),
        *((["accuracy", "periodic", *option], f"accuracy: {option[0]} does not work with periodic")
          for option in (["--way", "all"], ["--ahead", "1"])),
        (["trace"], "TIMER|HANDLER is missing"),
        (["chain", "--via", ""], "chain: --via names no route"),
        (["chain", "--via", "device", "--trigger", "hrtimer"],
         "chain: the route device has no trigger hrtimer"),
        (["clocks", "--cpus", "0-"], "--cpus takes a list of CPUs"),
        (["clocks", "--cpus", "1000"], "not allowed to run on CPU 1000"),
        (["doctor", "true"], "COMMAND requires --fix"),
        (["--completion", "fish"], "--completion takes bash or zsh"),
        (["--completion"], "--completion takes bash or zsh"),
    ],
)  # fmt: skip
def test_refused(tool, arguments, reason):
    done = tool(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("apic-timer: ") and reason in line


def test_only_trace_fails_if_there_is_nothing(tool):
    """hist with no expiries exits with 0: test_empty() of test_hist.py."""
    for text in (tool("--help").stdout, (MAN / "apic-timer.1.scd").read_text()):
        text = " ".join(text.replace("*", "").split())
        assert re.search("found something wrong, or (if )?trace did not find an expiry", text)


def test_no_arguments(tool):
    done = tool()
    assert done.returncode == 2 and done.stdout == tool("--help").stdout


def completed(tool, *words: str) -> list[str]:
    """Return bash's completions of the last word."""
    quoted = " ".join(f"'{w}'" for w in ("apic-timer", *words))
    script = (f"{tool('--completion', 'bash').stdout}\nCOMP_WORDS=({quoted})\n"
              f"COMP_CWORD={len(words)}\n_apic_timer\n"
              "printf '%s\\n' \"${COMPREPLY[@]}\"\n")  # fmt: skip
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_bash_completion(tool):
    assert set(COMMANDS) <= set(completed(tool, ""))
    assert completed(tool, "st") == ["status"]
    for command in COMMANDS:
        options = {f"--{name}" for name in helped(tool, command)}
        assert set(completed(tool, command, "--")) == options
    assert completed(tool, "hist", "--by", "") == ["cpu", "handler", "state"]
    assert completed(tool, "hist", "-o", "t") == ["time"]
    assert completed(tool, "hist", "--seconds", "") == []
    assert completed(tool, "--completion", "z") == ["zsh"]


def test_zsh_completion(tool, tmp_path):
    """The shell accepts it, and it has every option and choice."""
    script = tool("--completion", "zsh").stdout
    (tmp_path / "_apic-timer").write_text(script)
    assert shutil.which("zsh"), "zsh is not there: tools/setup test"
    subprocess.run(["zsh", "-n", tmp_path / "_apic-timer"], check=True)
    for command in COMMANDS:
        part = script.split(f"\n{command})\n")[1].split("\n\t;;\n")[0]
        for name, (letter, argument) in helped(tool, command).items():
            value = "=" if argument else ""
            assert (f"{{-{letter},--{name}{value}}}'[" if letter else f"'--{name}{value}[") in part
            if "|" in argument:
                assert f":{name}:({argument.replace('|', ' ')})" in part


def test_output_that_cannot_be_written(tool):
    for arguments in ("--help", "hist --help"):
        done = subprocess.run(["sh", "-c", f'"$0" {arguments} >/dev/full', TOOL],
                              capture_output=True)  # fmt: skip
        assert done.returncode == 2


def read_until_closed(terminal):
    """Return a terminal's output until its other side is closed. One read may return a part."""
    shown = b""
    while True:
        try:
            shown += terminal.read(4096)
        except OSError as hung_up:
            assert hung_up.errno == errno.EIO
            return shown.decode()


@pytest.mark.parametrize("columns", [0, 12])
def test_progress(tool, columns):
    """Commands longer than two seconds show progress on a terminal, and remove it.

    It has one line there, however narrow the terminal is; one may not know its width. A text that
    is there already is not written again.
    """
    arguments = ("cycles", "--runs", "3", "--repeats", "400", "--wait", "0")
    mine, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with open(mine, "rb", buffering=0) as terminal:
        with subprocess.Popen([TOOL, *arguments], stdout=subprocess.DEVNULL, stderr=theirs) as done:
            os.close(theirs)
            shown = read_until_closed(terminal)
    assert done.returncode == 0
    lines = shown.split("\r\x1b[K")
    assert lines[0] == ""
    assert all(text != before for before, text in pairwise(lines))
    if columns == 12:
        assert re.fullmatch(r"run \d of 3,", lines[1])
    else:
        assert re.fullmatch(r"run \d of 3, loop \d+ of \d+", lines[1])
    assert lines[-1] == ""
    assert tool("cycles", "--runs", "1", "--repeats", "5", "--wait", "0").stderr == ""
