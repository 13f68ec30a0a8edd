"""tdc, the kernel's test suite for tc, runs our cases for `apic`, and its own for tbf, etf and fq.

It is tools/testing/selftests/tc-testing in the kernel source; it runs with the guests' tc and
plug-in.
"""

import re

import pytest
from lab.build import build, network
from lab.engines import smp
from lab.kernels import kernels, sources

SERIES = "6.1"
DIRECTORY = "tools/testing/selftests/tc-testing"
PROGRAM = ("tdc.py", "tdc_config.py", "tdc_helper.py", "TdcPlugin.py", "TdcResults.py",
           "plugins/__init__.py", "plugin-lib/nsPlugin.py")  # fmt: skip
THEIRS = ("tbf", "etf", "fq")
OURS = build.TREE / "tests/tdc/apic.json"
MODULES = ("dummy", "veth", "sch_tbf", "sch_etf", "sch_fq", "sch_prio")
# tdc runs its commands without our environment; the cases use what the plug-in needs.
CONFIG = """
NAMES["TC"], NAMES["IP"] = "$NET/tc", "$NET/ip"
ENVIR.update(PATH="$NET/bin:/usr/sbin:/usr/bin:/sbin:/bin",
             TC_LIB_DIR="$NET/usr/lib/x86_64-linux-gnu/tc")
"""
# In memory: the cases start hundreds of programs, and starting them from files that the guest
# shares with this machine takes several times as long.
SCRIPT = f"""
NET=/dev/shm/net
mkdir -p $NET/bin
cp -r usr lib64 $NET
cp $(command -v busybox) $NET/bin/busybox
ln -s busybox $NET/bin/sh
for program in usr/bin/ip usr/sbin/tc; do
    printf '#!%s/bin/sh\\nexec %s --library-path %s %s "$@"\\n' $NET \\
        $NET/lib64/ld-linux-x86-64.so.2 $NET/usr/lib/x86_64-linux-gnu $NET/$program \\
        >$NET/${{program##*/}}
    chmod +x $NET/${{program##*/}}
done
for module in $OWN; do
    insmod modules/$module 2>/dev/null || :
done
insmod $MODULES/apic_timer.ko
insmod $MODULES/sch_apic.ko
cat >>tdc_config.py <<EOF{CONFIG}EOF
mkdir -p /run/netns
python3 tdc.py -f $CASES || :
lsmod | grep -q '^sch_apic .* 0 *$'
rmmod sch_apic
rmmod apic_timer
"""


def run(cases: dict[str, bytes]) -> str:
    """Run tdc with files of cases, by name; return its output."""
    kernel = kernels.ensure(SERIES)
    every = [*PROGRAM, *(f"tc-tests/qdiscs/{name}.json" for name in THEIRS)]
    tree = sources.members(sources.ensure(SERIES), [f"{DIRECTORY}/{n}" for n in every]) / DIRECTORY
    own = network.own_modules(kernel, MODULES)
    files = {**network.files(kernel), **own, **{name: tree / name for name in PROGRAM}, **cases}
    built = build.build(kernel)
    names = " ".join(name.removeprefix("modules/") for name in own)
    script = f"OWN='{names}' CASES='{' '.join(cases)}'\n{SCRIPT}"
    found = smp.run(kernel, script, files=files,
                    modules=[build.find_ko(built, n) for n in ("apic_timer", "sch_apic")],
                    timeout=900)  # fmt: skip
    print(found.output)
    assert found.ok, found.verdict
    return found.output


def verdicts(output: str) -> dict[str, int]:
    """Count the lines of TAP output by verdict: "ok", "not ok", "skipped"."""
    counts = {"ok": 0, "not ok": 0, "skipped": 0}
    for verdict, rest in re.findall(r"^(ok|not ok) \d+ (.*)$", output, re.M):
        counts["skipped" if "# skipped" in rest else verdict] += 1
    return counts


@pytest.mark.matrix  # minutes: each case starts a dozen programs
def test_our_cases():
    """All cases pass, and the module can be unloaded afterwards."""
    count = OURS.read_text().count('"id"')
    found = verdicts(run({"apic.json": OURS.read_bytes()}))
    assert found == {"ok": count, "not ok": 0, "skipped": 0}


@pytest.mark.matrix
@pytest.mark.parametrize("name", THEIRS)
def test_their_cases(name):
    """The cases for the kernel's own qdiscs pass with ours loaded: it does not disturb them."""
    every = [*PROGRAM, *(f"tc-tests/qdiscs/{n}.json" for n in THEIRS)]
    tree = sources.members(sources.ensure(SERIES), [f"{DIRECTORY}/{n}" for n in every]) / DIRECTORY
    cases = (tree / f"tc-tests/qdiscs/{name}.json").read_bytes()
    found = verdicts(run({f"{name}.json": cases}))
    assert found["ok"] >= 5 and not found["not ok"]
