"""Drivers that get packets in hard interrupt context, on kernels with run-time checks.

The checks are lockdep, KASAN, sleeping in atomic context, and packets freed in hard interrupt
context; and KCSAN, which watches what the modules access. Drivers with which mode auto uses mode
hard must pass: see module/shaper/drivers.c.
"""

import re

import pytest
from lab.build import build, network
from lab.engines import smp
from lab.kernels import kernels, patched

# QEMU's device, and its driver in the kernel.
DRIVERS = {
    "e1000e": "e1000e",
    "igb": "igb",
    "virtio-net-pci": "virtio_net",
}
# What lockdep reports of vmxnet3 is known, and keeps it from all further reports.
CHECKED = [
    *(("6.1-debug", device) for device in DRIVERS),
    *(("6.1-kcsan", device) for device in (*DRIVERS, "vmxnet3")),
]
LIST = build.TREE / "module/shaper/drivers.c"

BEGIN = """
ip() { network /usr/bin/ip -c=never "$@"; }
tc() { network /usr/sbin/tc -c=never "$@"; }
NET=/dev/shm/net
mkdir -p $NET
cp -r usr lib64 $NET
export TC_LIB_DIR=$NET/usr/lib/x86_64-linux-gnu/tc
network() {
    program=$NET$1
    shift
    $NET/lib64/ld-linux-x86-64.so.2 --library-path $NET/usr/lib/x86_64-linux-gnu "$program" "$@"
}
udpsend() { $NET/usr/bin/udpsend "$@"; }
insmod $MODULES/apic_timer.ko
insmod $MODULES/sch_apic.ko
driver() { basename "$(readlink -f /sys/class/net/$1/device/driver)"; }
"""

# Two cards on one hub: the first one, of DRIVER, sends packets; the second one receives them.
SCRIPT = """
counter() { cat /sys/class/net/$1/statistics/$2; }
out= in=
for card in $(ls /sys/class/net); do
    [ -e /sys/class/net/$card/device ] || continue
    if [ -z "$out" ] && [ "$(driver $card)" = $DRIVER ]; then
        out=$card
    else
        in=$card
    fi
done
echo cards $out $in
[ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ip addr add 10.9.9.1/24 dev $out
ip link set $out up
ip link set $in up promisc on
ip neigh add 10.9.9.2 lladdr $(cat /sys/class/net/$in/address) dev $out nud permanent
ip neigh add 10.9.8.2 lladdr $(cat /sys/class/net/$out/address) dev $in nud permanent
ip addr add 10.9.8.1/24 dev $in
for card in $out $in; do
    for i in $(seq 100); do
        [ "$(cat /sys/class/net/$card/carrier)" != 1 ] || break
        sleep 0.1
    done
done

tc qdisc replace dev $out root handle 1: apic mode hard limit 100000
sent=$(counter $out tx_packets) got=$(counter $in rx_packets)
# What comes in keeps its softirq busy, which the interrupt that sends has to get along with.
udpsend count=1500 gap=200000-2000000 to=10.9.8.2 flow=9 &
udpsend count=1500 gap=200000-2000000 flow=1 &
udpsend count=1500 gap=200000-2000000 flow=2 seed=2 size=1500
wait
# A CPU may be held up for longer than the senders wait for their last packets.
settled() {
    out_sent=$(($(counter $out tx_packets) - sent)) came=$(($(counter $in rx_packets) - got))
    [ $out_sent -ge 3000 ] && [ $out_sent = $came ]
}
for i in $(seq 100); do
    ! settled || break
    sleep 0.1
done
tc -s qdisc show dev $out
echo first sent $(($(counter $out tx_packets) - sent)) got $(($(counter $in rx_packets) - got))

# More than its ring holds: it stops its queue.
tc qdisc replace dev $out root handle 1: apic mode hard limit 100000 rate 2gbit
udpsend count=3000 size=1500 how=burst wait=2000000000
# Changed, taken away and down while it sends.
udpsend count=1000 gap=200000-2000000 flow=3 &
for i in 1 2 3; do
    sleep 0.1
    tc qdisc replace dev $out root pfifo
    tc qdisc replace dev $out root handle 1: apic mode hard
    ip link set $out down
    ip link set $out up
done
wait
tc -s qdisc show dev $out
tc qdisc del dev $out root
rmmod sch_apic
rmmod apic_timer
"""


def cards(device: str) -> list[str]:
    """Return QEMU's options for such a card and an e1000e, on a hub."""
    return [word for n, name in enumerate((device, "e1000e"), 1) for word in (
        "-netdev", f"hubport,hubid=0,id=port{n}",
        "-device", f"{name},netdev=port{n},mac=52:54:00:12:34:{n:02x}",
    )]  # fmt: skip


def test_listed_drivers_are_run():
    """Mode auto trusts only drivers in the table above."""
    names = re.findall(r'\{ "(.+?)", NULL \}', LIST.read_text())
    assert names and set(names) <= set(DRIVERS.values())


# One card of each driver.
WARNED = """
for module in $OWN; do
    insmod modules/$module 2>/dev/null || :
done
for card in $(ls /sys/class/net); do
    [ -e /sys/class/net/$card/device ] || continue
    for mode in hard auto; do
        said=$(tc qdisc replace dev $card root apic mode $mode 2>&1)
        echo "$(driver $card) $mode: $said $(tc qdisc show dev $card | grep -o '([a-z]*)')"
    done
    tc qdisc del dev $card root
done
rmmod sch_apic
rmmod apic_timer
"""


@pytest.mark.matrix
def test_what_is_known_is_said():
    """Mode hard warns of a driver's known problems, and auto uses hard only with fit drivers."""
    kernel = kernels.ensure("6.1")
    built = build.build(kernel)
    devices = {"e1000e": "e1000e", "vmxnet3": "vmxnet3", "virtio-net-pci": "virtio_net",
               "e1000": "e1000"}  # fmt: skip
    own = network.own_modules(kernel, devices.values())
    names = " ".join(name.removeprefix("modules/") for name in own)
    found = smp.run(kernel, f"OWN='{names}'\n{BEGIN}{WARNED}",
                    files={**network.files(kernel), **own},
                    devices=[word for device in devices for word in ("-device", device)],
                    modules=[build.find_ko(built, n) for n in ("apic_timer", "sch_apic")],
                    timeout=600)  # fmt: skip
    print(found.output)
    assert found.ok, found.verdict
    said = dict(re.findall(r"^(\w+ (?:hard|auto)):(.*)$", found.output, re.M))
    assert said["e1000e hard"].split() == ["(hard)"] == said["e1000e auto"].split()
    for driver, words in (("vmxnet3", "vmxnet3 is not safe in mode hard"),
                          ("virtio_net", "only if it was not loaded with napi_tx=0"),
                          ("e1000", "this driver has not been tested")):  # fmt: skip
        assert words in said[f"{driver} hard"] and said[f"{driver} hard"].endswith("(hard)")
        assert said[f"{driver} auto"].split() == ["(soft)"]


@pytest.mark.matrix
@pytest.mark.parametrize("name, device", CHECKED)
def test_kernel_with_checks(name, device):
    """Hundreds of packets leave by hard interrupt, none is lost, and the kernel reports nothing."""
    driver = DRIVERS.get(device, device)
    kernel = patched.ensure(name)
    built = build.build(kernel)
    found = smp.run(kernel, f"DRIVER={driver}\n{BEGIN}{SCRIPT}", files=network.files(kernel),
                    modules=[build.find_ko(built, n) for n in ("apic_timer", "sch_apic")],
                    devices=cards(device), timeout=3600)  # fmt: skip
    print(found.output)
    assert found.ok, f"{found.verdict}\n{found.kernel_log[-8000:]}"
    hard = [int(n) for n in re.findall(r"sent_hard (\d+)", found.output)]
    assert hard[0] > 500
    sent, got = map(int, re.search(r"first sent (\d+) got (\d+)", found.output).groups())
    assert 3000 <= sent == got, found.output
