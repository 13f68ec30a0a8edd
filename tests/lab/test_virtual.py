"""Virtual time: the guest's moments don't depend on what this machine does meanwhile."""

import socket
import threading
import time
from contextlib import suppress

import pytest
from lab.engines import qemu, virtual
from lab.kernels import kernels

# Each sleep is idle time, which QEMU skips.
MOMENTS = "for i in $(seq 600); do usleep 2000; grep '^now at' /proc/timer_list; done"


@pytest.mark.flaky(reruns=0)
def test_repeats_however_often_qemu_is_woken(monkeypatch, tmp_path):
    undisturbed = moments()
    path, woken = tmp_path / "monitor", []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        options = [*qemu.virtual_time(42), "-monitor", f"unix:{path}"]
        monkeypatch.setattr(qemu, "virtual_time", lambda *_: options)
        threading.Thread(target=wake, args=[server, woken], daemon=True).start()
        assert moments() == undisturbed
    assert len(woken) > 10_000


def moments() -> str:
    """Return at which ns a guest that sleeps again and again has woken."""
    result = virtual.run(kernels.ensure("6.1"), MOMENTS, timeout=300)
    assert result.ok, result.verdict
    assert result.output.count("now at") == 600
    return result.output


def wake(server: socket.socket, woken: list[bytes]):
    """Wake the thread of QEMU that skips idle time, by empty commands, until QEMU ends."""
    monitor, _ = server.accept()
    with monitor, suppress(OSError):
        while monitor.send(b"\n"):
            woken.append(monitor.recv(4096))
            time.sleep(0.0001)
