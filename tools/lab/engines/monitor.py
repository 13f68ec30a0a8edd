"""What a guest of QEMU's is at, asked through QEMU's machine protocol."""

import json
import socket
from pathlib import Path

STATE = ("info status", "info registers", "info lapic")
PATIENCE = 10  # s of wall time for each answer


def options(path: Path) -> list[str]:
    """Return the options of a QEMU that is to be asked through a socket of that path."""
    return ["-qmp", f"unix:{path},server=on,wait=off"]


def state(path: Path) -> str:
    """Return what `STATE` says of the first CPU, or that QEMU does not answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(path))
            with connection.makefile("rw") as stream:
                json.loads(stream.readline())  # its greeting
                _ask(stream, "qmp_capabilities")
                asked = [_ask(stream, "human-monitor-command", {"command-line": command})
                         for command in STATE]  # fmt: skip
                return "".join(asked).replace("\r\n", "\n").strip()
    except (OSError, ValueError) as error:
        return f"QEMU's main loop does not answer: {error}"


def _ask(stream, command: str, arguments: dict | None = None) -> str:
    stream.write(json.dumps({"execute": command, "arguments": arguments or {}}) + "\n")
    stream.flush()
    while True:
        answer = json.loads(stream.readline())  # an empty line, at its end, is a ValueError
        if "event" not in answer:
            return answer.get("return") or ""
