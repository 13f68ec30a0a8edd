"""What a QEMU guest is doing, asked through QEMU's monitor.

The monitor for people, not QMP, whose thread QEMU would wake at each idle period of a guest in
virtual time: this took as much of the host's CPUs as the guest did.
"""

import os
import socket
from pathlib import Path

STATE = ("info status", "info registers", "info lapic")
PATIENCE = 10  # s of wall time for each part of an answer
PROMPT = b"(qemu) "


NAME = "monitor"  # of the socket, in the directory that QEMU runs in: a full path may be too long


def options() -> list[str]:
    """Return the options of a QEMU that `state` can ask."""
    return ["-monitor", f"unix:{NAME},server=on,wait=off"]


def state(home: Path) -> str:
    """Return the output of the `STATE` commands for the first CPU, or that QEMU does not answer.

    home: the directory that QEMU runs in
    """
    directory = os.open(home, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(f"/proc/self/fd/{directory}/{NAME}")
            _answer(connection)  # its greeting
            asked = []
            for command in STATE:
                connection.sendall(f"{command}\n".encode())
                _, _, answer = _answer(connection).partition("\r\n")  # the first line is an echo
                asked.append(answer)
            return "".join(asked).replace("\r\n", "\n").strip()
    except OSError as error:
        return f"QEMU's main loop does not answer: {error}"
    finally:
        os.close(directory)


def _answer(connection: socket.socket) -> str:
    """Return what the monitor writes until its next prompt."""
    received = b""
    while not received.endswith(PROMPT):
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("it has ended")
        received += part
    return received.removesuffix(PROMPT).decode(errors="replace")
