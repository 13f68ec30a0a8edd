"""A guest with several CPUs ends in every case, and its whole kernel log is judged."""

import os
import subprocess
import time

import pytest
from lab.base.errors import LostVM
from lab.engines import sleeper, smp, splats
from lab.engines.options import Guest
from lab.kernels import kernels

BEGINNING = "[    0.000000] Linux version 6.1.0-56-amd64\n[    0.000000] Command line: nokaslr\n"
LOCKUP = "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [insmod:102]"
# As many bytes as the torture prints in hours.
TALKATIVE = """
echo on >/proc/sys/kernel/printk_devkmsg
echo '<4>WARNING: an early one' >/dev/kmsg
line=$(printf '%0900d' 0)
i=0
while [ $i -lt 400 ]; do
    echo "<7>$line" >/dev/kmsg
    i=$((i + 1))
done
"""


@pytest.mark.long
@pytest.mark.parametrize("engine", [smp, sleeper], ids=["smp", "sleeper"])
def test_splat_before_a_long_log(engine):
    """The kernel keeps the first lines of a log that is longer than its usual buffer."""
    result = engine.run(kernels.ensure("6.1"), TALKATIVE)
    assert result.verdict == "splat in the kernel log"
    assert len(result.kernel_log) > 300_000 and splats.find(result.kernel_log)


@pytest.mark.parametrize("log, verdict", [
    (BEGINNING + "[  9.000000] later\n", "ok"),
    ("[  9.000000] later\n" * 100, "the kernel log is not whole: a splat may be lost"),
    ("", "the kernel log is not whole: a splat may be lost"),
])  # fmt: skip
def test_log_without_its_beginning(tmp_path, log, verdict):
    for name, text in {"verdict": "ok", "dmesg": log, "output": ""}.items():
        (tmp_path / "lab").mkdir(exist_ok=True)
        (tmp_path / "lab" / name).write_text(text)
    assert smp._result(tmp_path, "", "").verdict == verdict
    assert splats.judge("exit status 1", log) == "exit status 1"


NO_TICK = "Kernel panic - not syncing: IO-APIC + timer doesn't work!  Boot with apic=debug"


@pytest.mark.parametrize("console, stock, answer, boots", [
    ("booting", False, True, 2),
    ("booting", True, False, 1),
    ("BUG: unable to handle page fault\nbooting", False, True, 1),
    ("BUG: unable to handle page fault\nbooting", True, True, 2),
    ("booting\nKernel panic - not syncing: Attempted to kill init!", False, True, 1),
    (f"{LOCKUP}\nCall Trace:\nKernel panic - not syncing: softlockup: hung tasks", False, True, 2),
    (f"{NO_TICK}\nCall Trace:", False, True, 2),
    (f"BUG: unable to handle page fault\n{LOCKUP}", False, True, 1),
])  # fmt: skip
def test_boot_is_repeated_unless_the_kernel_has_a_fault(
    patch_here, monkeypatch, console, stock, answer, boots
):
    """Of our making. And only if all who count such boots agree."""
    kernel, begun, asked = kernels.ensure("6.1"), [], []

    def ask(*question):
        asked.append(question)
        return answer

    monkeypatch.setattr(kernels.Kernel, "stock", property(lambda _: stock))
    patch_here(smp, "_boot", lambda *_: begun.append(1) or (console, "no verdict within 240 s"))
    monkeypatch.setattr(smp, "ask_again", [ask])
    with pytest.raises(LostVM, match="no verdict within 240 s"):
        smp.run(kernel, "true", cpus=3)
    assert len(begun) == boots
    assert [(k, guest.cpus) for k, guest, _ in asked] == [(kernel, 3)] * (boots == 2 or not answer)
    assert all(("soft lockup" in console) == ("soft lockup" in why) for _, _, why in asked)


@pytest.mark.parametrize("end", ["exit 1", "kill -9 $$", "sleep 100"])
def test_qemu_ends_with_virtme_ng(tmp_path, end):
    child = tmp_path / "child"
    script = f"sleep 100 & echo $! >{child}; {end}"
    _, reason = smp._boot(["sh", "-c", script], Guest(timeout=2), 2, tmp_path / "begun")
    assert reason.startswith("no verdict")
    pid = int(child.read_text())
    for _ in range(100):
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE)
        # Nobody may have waited for it yet; the state of a niced one is "ZN".
        if done.stdout.strip()[:1] in (b"", b"Z"):
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    pytest.fail("it runs on")
