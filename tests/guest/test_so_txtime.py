"""The kernel's own test of SO_TXTIME passes with `apic` in place of fq and etf.

It is tools/testing/selftests/net/so_txtime; it runs in virtual time, over a pair of virtual
interfaces in two network namespaces.
"""

import functools
import subprocess
from pathlib import Path

import pytest
from lab.base import cache
from lab.build import build, network
from lab.engines import virtual
from lab.kernels import kernels, sources

SERIES = "6.1"
SOURCE = "tools/testing/selftests/net/so_txtime.c"
# Protocol, clock, packets sent and packets expected, as in the kernel's so_txtime.sh: letters, and
# times in ms. Packets leave in the order of their times, as with etf; with "order flow" in the
# order of sending within a socket, as with fq.
BY_TIME = ("4 mono a,-1 a,-1", "6 mono a,0 a,0", "6 mono a,10 a,10",
           "4 mono a,10,b,20 a,10,b,20", "6 mono a,20,b,10 b,10,a,20",
           "6 tai a,10 a,10", "4 tai a,10,b,20 a,10,b,20", "6 tai a,20,b,10 b,10,a,20")  # fmt: skip
BY_FLOW = (*BY_TIME[:4], "6 mono a,20,b,10 a,20,b,20")
SCRIPT = """
ip() {{ /usr/bin/ip -c=never "$@"; }}
for module in $OWN; do insmod /modules/$module; done
insmod $MODULES/apic_timer.ko
insmod $MODULES/sch_apic.ko
mkdir -p /run/netns
[ -e /var/run ] || {{ mkdir -p /var; ln -s /run /var/run; }}
for n in 1 2; do ip netns add ns$n; done
ip link add veth0 netns ns1 type veth peer name veth0 netns ns2
for n in 1 2; do
    ip -n ns$n link set veth0 address 02:02:02:02:02:0$n
    ip -n ns$n link set veth0 up
    ip -n ns$n address add 192.168.1.$n/24 dev veth0
    ip -n ns$n address add fd::$n/64 dev veth0 nodad
done
# do_test PROTOCOL CLOCK SENT EXPECTED
do_test() {{
    case $1 in
    4) source=192.168.1.1 target=192.168.1.2 ;;
    6) source=fd::1 target=fd::2 ;;
    esac
    start=$(($(date +%s) + 2))000000000
    set -- "-$1 -c $2 -t $start -S $source -D $target" "$3" "$4"
    ip netns exec ns2 so_txtime $1 $3 -r &
    ip netns exec ns1 so_txtime $1 $2
    wait $!
}}
{tests}
ip netns del ns1
ip netns del ns2
sleep 1
rmmod sch_apic
"""
TESTS = """
ip netns exec ns1 tc qdisc add dev veth0 root apic {options}
{tests}
ip netns exec ns1 tc -s qdisc show dev veth0
ip netns exec ns1 tc qdisc del dev veth0 root
"""


@functools.cache
def program() -> Path:
    """Compile the kernel's test, for guests without libraries; return the program."""
    source = sources.ensure(SERIES)
    tree = sources.members(source, [SOURCE])
    target = cache.cache_dir("selftests") / f"{source.version}-so_txtime"
    if not target.exists():
        new = target.parent / f"{target.name}.new"
        subprocess.run(["gcc", "-O2", "-w", "-static", "-o", new, tree / SOURCE], check=True)
        new.rename(target)
    return target


@pytest.mark.parametrize(
    "runs",
    [
        {"mode soft": BY_TIME, "mode soft order flow": BY_FLOW},
        pytest.param({"mode thread": BY_TIME}, marks=pytest.mark.matrix),
    ],
    ids=["soft", "thread"],
)
def test_so_txtime(runs):
    """Run all tests that can share a boot."""
    kernel = kernels.ensure(SERIES)
    built = build.build(kernel)
    own = network.own_modules(kernel, ("veth",))
    names = " ".join(name.removeprefix("modules/") for name in own)
    script = SCRIPT.format(tests="".join(
        TESTS.format(options=options, tests="\n".join(f"do_test {t}" for t in tests))
        for options, tests in runs.items()
    ))  # fmt: skip
    result = virtual.run(
        kernel, f"OWN='{names}'\n{script}",
        modules=[build.find_ko(built, name) for name in ("apic_timer", "sch_apic")],
        files={**network.files(kernel), **own, "usr/bin/so_txtime": program()}, timeout=300,
    )  # fmt: skip
    print(result.output)
    assert result.ok, f"{result.verdict}\n{result.kernel_log[-2000:]}"
    assert result.output.count("payload:") >= sum(map(len, runs.values()))
