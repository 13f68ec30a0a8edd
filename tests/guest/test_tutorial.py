"""The commands of docs/tutorial/pace-a-udp-stream.md work as printed, on a machine with the module.

The machine's own programs are used, as by a reader, except for iproute2, which is a guest's.
"""

import re

import pytest
from lab.build import build, network
from lab.engines import smp
from lab.kernels import kernels

SERIES = "6.1"
PAGE = build.TREE / "docs/tutorial/pace-a-udp-stream.md"
# Replacements for `make install` and modprobe, and for being root.
BEGIN = """
for module in $OWN; do insmod modules/$module; done
insmod $MODULES/apic_timer.ko
insmod $MODULES/sch_apic.ko
for program in usr/bin/ip usr/sbin/tc; do
    printf '#!/bin/sh\\nexec %s --library-path %s %s "$@"\\n' $PWD/lib64/ld-linux-x86-64.so.2 \\
        $PWD/usr/lib/x86_64-linux-gnu $PWD/$program >/tmp/${program##*/}
    chmod +x /tmp/${program##*/}
done
export PATH=/tmp:$PATH TC_LIB_DIR=$PWD/usr/lib/x86_64-linux-gnu/tc
mkdir -p /run/netns
sudo() { "$@"; }
"""
LEFT_OUT = re.compile(r"sudo (apt-get|make|trace-cmd)")


def commands() -> str:
    """Return the commands of the page as a script; each of its steps is marked."""
    script, program = "", ""
    for step in PAGE.read_text().split("\n## ")[1:]:
        script += f"echo '@step@ {step.splitlines()[0]}'\n"
        # In the order of the page: files to write, a line to add to one, commands.
        for code, command in re.findall(r"```python\n(.*?)```|^    (\S[^\n]*)$", step, re.M | re.S):
            if code:
                name = "timed.py" if "SO_TXTIME" in code else "send.py"
                if code.count("\n") == 1:  # to be added before the loop
                    program = program.replace("begin =", f"{code}begin =")
                    code = program
                program = code if name == "send.py" else program
                script += f"cat >{name} <<'EOF'\n{code}EOF\n"
            elif command and not LEFT_OUT.match(command):
                script += f"{command}\n"
    return script


@pytest.mark.matrix
def test_pace_a_udp_stream():
    """Each command works, rates are as requested, and no packet is lost."""
    kernel = kernels.ensure(SERIES)
    built = build.build(kernel)
    own = network.own_modules(kernel, ("veth",))
    names = " ".join(name.removeprefix("modules/") for name in own)
    result = smp.run(
        kernel, f"OWN='{names}'\n{BEGIN}\n{commands()}\nrmmod sch_apic\n",
        modules=[build.find_ko(built, name) for name in ("apic_timer", "sch_apic")],
        files={**network.files(kernel), **own},
    )  # fmt: skip
    print(result.output)
    assert result.ok, result.verdict
    steps = result.output.split("@step@ ")
    rates = [float(rate) for rate in re.findall(r"^([\d.]+) Mbit/s$", result.output, re.M)]
    # Packets that the socket's buffer accepts at once are sent sooner.
    assert len(rates) == 2 and rates[0] < 60 and rates[1] < 13
    (shaped,) = (step for step in steps if step.startswith("3. "))
    assert re.search(r"Sent \d+ bytes 20\d\d pkt \(dropped 0", shaped)
    (timed,) = (step for step in steps if step.startswith("5. "))
    assert "dropped_horizon 0" in timed and "early 0" in timed
