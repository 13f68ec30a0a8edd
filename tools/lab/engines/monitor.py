"""What a QEMU guest is doing, asked through QEMU's machine protocol."""

import json
import os
import socket
from pathlib import Path

STATE = ("info status", "info registers", "info lapic")
PATIENCE = 10  # s of wall time for each answer


NAME = "monitor"  # of the socket, in the directory that QEMU runs in: a full path may be too long


def options() -> list[str]:
    """Return the options of a QEMU that `state` can ask."""
    return ["-qmp", f"unix:{NAME},server=on,wait=off"]


def state(home: Path) -> str:
    """Return the output of the `STATE` commands for the first CPU, or that QEMU does not answer.

    home: the directory that QEMU runs in
    """
    directory = os.open(home, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(f"/proc/self/fd/{directory}/{NAME}")
            with connection.makefile("rw") as stream:
                json.loads(stream.readline())  # its greeting
                _ask(stream, "qmp_capabilities")
                asked = [_ask(stream, "human-monitor-command", {"command-line": command})
                         for command in STATE]  # fmt: skip
                return "".join(asked).replace("\r\n", "\n").strip()
    except (OSError, ValueError) as error:
        return f"QEMU's main loop does not answer: {error}"
    finally:
        os.close(directory)


def _ask(stream, command: str, arguments: dict | None = None) -> str:
    stream.write(json.dumps({"execute": command, "arguments": arguments or {}}) + "\n")
    stream.flush()
    while True:
        answer = json.loads(stream.readline())  # an empty line, when QEMU ends, is a ValueError
        if "event" not in answer:
            return answer.get("return") or ""
