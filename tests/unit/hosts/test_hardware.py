import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.hosts import hardware
from loadlab.model import Hardware, HostDescription, Nic
from tests.unit import builders, stand_ins

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "roles" / "host_check" / "files" / "hardware.sh"
CARDS = ROOT / "files" / "cards.sh"

# As the script writes it: a server with a card of four queues, and nothing to object to.
NORMAL = """nic\teth1
management_nic\teth0
driver\tixgbe
speed_mbit\t10000
duplex\tfull
mtu\t1500
queue\t0 00000000
queue\t1 00000000
queue\t2 00000000
queue\t3 0000000f
sender\t0 00000001
sender\t1 00000002
interrupt\t121 0
interrupt\t122 1
interrupt\t123 2
interrupt\t124 3
interrupt\t125 0-3
offload\ttcp-segmentation-offload on
offload\tgeneric-segmentation-offload on
offload\tgeneric-receive-offload on
coalescing\tadaptive-rx on
coalescing\trx-usecs 1
governor\tperformance
governor\tperformance
governor\tperformance
governor\tperformance
no_turbo\t1
smt\t0
idle_driver\tintel_idle
idle\t0 0 POLL
idle\t2 0 C1
idle\t10 0 C1E
idle\t133 1 C6
node\t0-3
numa_balancing\t0
irqbalance\tinactive
firewall_rules\t2
conntrack\t12 262144
clock_synchronised\tyes
"""
NOTHING = Hardware(
    nic=None,
    management_nic=None,
    governors=None,
    turbo=None,
    smt=None,
    numa_nodes=None,
    clock_synchronised=None,
)
BARE = Nic(
    name="test0",
    driver=None,
    speed_mbit=None,
    duplex=None,
    queues=None,
    interrupts=None,
    offloads=None,
)


def host(text: str, **changed: Any) -> HostDescription:
    """A host of the manifest, with this reading of its hardware."""
    machine: dict[str, Any] = {"virtualisation": "none", "hardware": hardware.parse(text)}
    return replace(builders.host_probe().manifest, **{**machine, **changed})


def told(text: str, **changed: Any) -> list[str]:
    return hardware.warnings({"server": host(text, **changed)})


def test_a_machine_in_order_has_no_warnings() -> None:
    """The tests of the script have the other values of each field."""
    found = hardware.parse(NORMAL)
    assert (found.turbo, found.smt, found.numa_balancing) == (False, False, False)
    assert (found.clock_synchronised, found.irqbalance) == (True, "inactive")
    # C6 is off.
    assert found.idle_states_us == {"POLL": 0, "C1": 2, "C1E": 10}
    interrupts = builders.present(builders.present(found.nic).interrupts)
    assert [*interrupts.values()] == [[0], [1], [2], [3], [0, 1, 2, 3]]
    assert told(NORMAL) == []


def test_what_is_not_told_is_not_made_up_and_not_objected_to() -> None:
    assert hardware.parse("") == NOTHING
    assert told("") == []
    text = "nic\ttest0\nspeed_mbit\t-1\nduplex\tunknown\n"
    assert hardware.parse(text).nic == BARE
    assert told(text) == []
    assert hardware.warnings({"server": host(NORMAL, hardware=None)}) == []


@pytest.mark.parametrize(
    ("was", "is_now", "value", "remedy"),
    [
        (
            "governor\tperformance\n" * 4,
            "governor\tpowersave\n" * 3 + "governor\tperformance\n",
            "CPU governor powersave on 3 of 4 processors",
            "Give -e tuning=production",
        ),
        ("speed_mbit\t10000", "speed_mbit\t100", "eth1 runs at 100 Mb/s", "See cable and switch"),
        ("duplex\tfull", "duplex\thalf", "eth1 runs half duplex", "See cable and switch"),
        ("no_turbo\t1", "no_turbo\t0", "turbo is on", "1 into intel_pstate/no_turbo"),
        ("no_turbo\t1", "boost\t1", "turbo is on", "0 into cpufreq/boost"),
        ("smt\t0", "smt\t1", "SMT is on", "off into /sys/devices/system/cpu/smt/control"),
        ("node\t0-3\n", "node\t0-1\nnode\t2-3\n", "2 NUMA nodes", "a machine with one node"),
        (
            "management_nic\teth0",
            "management_nic\teth1",
            "eth1 carries management and load",
            "Set test_address to an address of another card",
        ),
        (
            "clock_synchronised\tyes",
            "clock_synchronised\tno",
            "its clock is not synchronised",
            "Have systemd-timesyncd or chrony running",
        ),
        (
            "generic-receive-offload on",
            "generic-receive-offload off",
            "generic-receive-offload off on eth1",
            "ethtool -K eth1 generic-receive-offload on",
        ),
        (
            "121 0\ninterrupt\t122 1\ninterrupt\t123 2\ninterrupt\t124 3\ninterrupt\t125 0-3",
            "121 2\ninterrupt\t122 2",
            "all 2 interrupts of eth1 come to processor 2",
            "Have irqbalance running",
        ),
        ("133 1 C6", "133 0 C6", "idle states C6 (133 µs) are on", "Give -e tuning=production"),
        (
            "queue\t0 00000000\nqueue\t1 00000000\nqueue\t2 00000000\nqueue\t3 0000000f",
            "queue\t0 00000000",
            "eth1 has one queue: one of 4 processors takes all of its packets",
            "rps_cpus in /sys/class/net/eth1/queues/rx-0",
        ),
    ],
)
def test_what_spoils_is_told_with_its_value_and_remedy(
    was: str, is_now: str, value: str, remedy: str
) -> None:
    assert was in NORMAL
    (line,) = told(NORMAL.replace(was, is_now))
    assert line.startswith(f"server: {value}")
    assert remedy in line


@pytest.mark.parametrize("text", ["boost\t0", "no_turbo\t1\nboost\t1"])
def test_turbo_that_is_off(text: str) -> None:
    assert hardware.parse(text).turbo is False


def test_one_processor_takes_all_interrupts_because_there_is_one() -> None:
    assert told("nic\teth1\ninterrupt\t30 0\ninterrupt\t31 0\n", cpus=[0]) == []
    # And one interrupt has to come somewhere.
    assert told("nic\teth1\ninterrupt\t30 0\n") == []


def test_a_single_queue_warns_unless_its_packets_are_spread() -> None:
    one = "nic\teth1\nqueue\t0 {}\ninterrupt\t30 0\n"
    assert told(one.format("0000000f")) == []
    assert told(one.format("00000000"), cpus=[0]) == []
    # Both interrupts of the only queue come to one processor: told once.
    (line,) = told(one.format("00000000") + "interrupt\t31 0\n")
    assert "has one queue" in line
    # A veth pair has no interrupts.
    assert told("nic\ttest0\ndriver\tveth\nqueue\t0 00000000\n") == []


BOND = """nic\tvlan7
management_nic\teth9
driver\t802.1Q VLAN Support
speed_mbit\t20000
duplex\tfull
mtu\t9000
queue\t0 00000000
card\teth1
driver\tixgbe
speed_mbit\t10000
queue\t0 00000000
queue\t1 00000000
interrupt\t121 0
interrupt\t122 1
card\teth2
driver\tixgbe
speed_mbit\t100
queue\t0 00000000
queue\t1 00000000
interrupt\t131 3
interrupt\t132 3
governor\tperformance
"""


def test_warnings_are_of_the_cards_below_a_bond() -> None:
    found = hardware.parse(BOND)
    assert found.nic
    assert (found.nic.name, found.nic.speed_mbit, found.nic.mtu) == ("vlan7", 20000, 9000)
    assert [(card.name, card.queues) for card in found.cards or []] == [("eth1", 2), ("eth2", 2)]
    slow, full = told(BOND)
    assert slow.startswith("server: eth2 runs at 100 Mb/s")
    assert full.startswith("server: all 2 interrupts of eth2 come to processor 3")


def test_warnings_name_hosts_whose_mtu_differs() -> None:
    hosts = {"server": host(NORMAL), "client": host(NORMAL.replace("mtu\t1500", "mtu\t9000"))}
    (line,) = hardware.warnings(hosts)
    assert line.startswith("different MTU (server 1500, client 9000)")


def test_no_card_needs_no_offloads() -> None:
    assert told("nic\ttest0\ndriver\tveth\noffload\tgeneric-receive-offload off\n") == []


def test_emulated_processors_are_warned_about() -> None:
    """Of KVM with a processor that systemd does not recognize, the first warning is right."""
    (line,) = told(NORMAL, virtualisation="qemu", cpu_model="QEMU TCG CPU version 2.5+")
    assert line.startswith("server: its processors are emulated (QEMU without KVM)")
    (line,) = told(NORMAL, virtualisation="qemu")
    assert line.startswith("server: no machine of its own (qemu)")


def test_the_same_of_both_hosts_is_told_once() -> None:
    slow = NORMAL.replace("10000", "100")
    hosts = {"server": host(slow), "client": host(slow.replace("smt\t0", "smt\t1"))}
    first, second = hardware.warnings(hosts)
    assert first.startswith("server, client: eth1 runs at 100 Mb/s")
    assert second.startswith("client: SMT is on")


def test_kernels_that_differ() -> None:
    hosts = {"server": host(NORMAL), "client": host(NORMAL, kernel="6.1.0-40")}
    assert hardware.warnings(hosts) == [
        "different kernels (server 6.18, client 6.1.0-40): what one host's network code can do "
        "the other's cannot. Boot the same on all."
    ]


@pytest.mark.parametrize(
    "text",
    [
        *(f"{NORMAL}{line}\n" for line in ("", "sh: 1: ip: not found", "nic\teth9", "colour\tred")),
        # Of a card without an interface, and cut short.
        *("card\teth1\n", "mtu\t1500\n", "conntrack\t1\n", "idle\t1 0\n"),
    ],
)
def test_another_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a line of the script|not enough values"):
        hardware.parse(text)


@given(st.dictionaries(st.sampled_from(["performance", "powersave", "schedutil"]),
                       st.integers(1, 200), min_size=1))  # fmt: skip
def test_every_processors_governor_counts(governors: dict[str, int]) -> None:
    text = "".join(f"governor\t{name}\n" * count for name, count in governors.items())
    assert hardware.parse(text).governors == governors
    assert len(told(text)) == (set(governors) != {"performance"})


def machine(root: Path, files: dict[str, str], links: dict[str, str]) -> None:
    stand_ins.tree(root / "sys", files)
    for name, target in links.items():
        (root / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "sys" / name).symlink_to(target)


# What the script asks on every host.
QUIET = {"systemctl": "exit 1", "nft": "exit 1", "iptables_save": "exit 1"}


def look(root: Path, **programs: str) -> Hardware:
    """The script on a stand-in for /sys, with these programs beside the usual ones."""
    there = {name.replace("_", "-"): words for name, words in {**QUIET, **programs}.items()}
    stand_ins.put(root / "bin", there)
    text = CARDS.read_text() + SCRIPT.read_text()
    for was, is_now in (("SYS=/sys", f"SYS={root}/sys"), ("PROC=/proc", f"PROC={root}/sys"),
                        ("DEV=/dev", f"DEV={root}/sys/dev"),
                        ("PATH=$PATH", f"PATH={root}/bin:$PATH")):  # fmt: skip
        assert was in text
        text = text.replace(was, is_now)
    done = subprocess.run(
        ["sh", "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "TEST_ADDRESS": "10.0.1.1",
             "OWN_ADDRESS": "10.0.0.1"},
    )  # fmt: skip
    return hardware.parse(done.stdout)


IP = """[ "$5" = 10.0.1.1 ] && echo '3: eth1    inet 10.0.1.1/24 brd 10.0.1.255 scope global eth1'
[ "$5" = 10.0.0.1 ] && echo '2: eth0    inet 10.0.0.1/24 scope global eth0'
true"""
CARD = "class/net/eth1"
FILES = {
    f"{CARD}/speed": "1000\n",
    f"{CARD}/duplex": "full\n",
    f"{CARD}/mtu": "9000\n",
    f"{CARD}/queues/rx-0/rps_cpus": "0\n",
    f"{CARD}/queues/rx-1/rps_cpus": "0\n",
    f"{CARD}/queues/tx-0/xps_cpus": "3\n",
    "sys/kernel/numa_balancing": "1\n",
    "sys/net/netfilter/nf_conntrack_count": "3\n",
    "sys/net/netfilter/nf_conntrack_max": "262144\n",
    "devices/system/cpu/cpuidle/current_driver": "acpi_idle\n",
    "devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "devices/system/cpu/cpu0/cpuidle/state0/latency": "0\n",
    "devices/system/cpu/cpu0/cpuidle/state0/disable": "0\n",
    "devices/system/cpu/cpu0/cpuidle/state1/name": "C2\n",
    "devices/system/cpu/cpu0/cpuidle/state1/latency": "400\n",
    "devices/system/cpu/cpu0/cpuidle/state1/disable": "0\n",
    "irq/40/effective_affinity_list": "0\n",
    "irq/41/effective_affinity_list": "0-1\n",
    "devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
    "devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "devices/system/cpu/smt/active": "1\n",
    "devices/system/node/node0/cpulist": "0-1\n",
    # Memory without processors.
    "devices/system/node/node1/cpulist": "\n",
}
ETHTOOL = """case $1 in
-i) echo 'driver: veth' ;;
-k) printf 'Features for eth1:\\ntcp-segmentation-offload: off\\n\\ttx-tcp-segmentation: off\\n'
    printf 'generic-receive-offload: on [fixed]\\nlarge-receive-offload: off\\n' ;;
-c) printf 'Coalesce parameters for eth1:\\nAdaptive RX: off  TX: n/a\\nsample-interval:\\tn/a\\n'
    printf 'rx-usecs:\\t3\\nrx-frames:\\t0\\nrx-usecs-irq:\\tn/a\\ntx-usecs:\\tn/a\\n' ;;
esac"""
NFT = """cat <<E
table inet filter { # handle 1
	set open { # handle 3
		type inet_service
		elements = { 22, 80 }
	}

	chain input { # handle 2
		type filter hook input priority filter; policy drop;
		ct state established,related accept # handle 4
		tcp dport @open accept # handle 5
	}
}
E"""


@pytest.mark.parametrize(
    ("device", "virtual", "kept_awake"),
    [
        ({"dev/cpu_dma_latency": ""}, "exit 0", True),
        ({"dev/cpu_dma_latency": ""}, "exit 1", False),
        ({}, "exit 0", False),
    ],
)
def test_a_virtual_machine_that_can_poll_is_kept_awake(
    tmp_path: Path, device: dict[str, str], virtual: str, kept_awake: bool
) -> None:
    machine(tmp_path, {**FILES, **device}, {})
    described = look(tmp_path, ip=IP, ethtool=ETHTOOL, systemd_detect_virt=virtual)
    assert described.kept_awake is kept_awake
    warnings = hardware.warnings({"server": replace(host(""), hardware=described)})
    assert any("idle states C2" in line for line in warnings) is not kept_awake


def test_the_script_on_a_card_of_the_bus(tmp_path: Path) -> None:
    card = {f"{CARD}/device/msi_irqs/40": "msix\n", f"{CARD}/device/msi_irqs/41": "msix\n"}
    links = {f"{CARD}/device/driver": "../../../bus/pci/drivers/igb"}
    machine(tmp_path, {**FILES, **card}, links)
    irqbalance = "case $2 in *Load*) echo loaded ;; *) echo active ;; esac"
    found = look(tmp_path, ip=IP, ethtool=ETHTOOL, systemd_detect_virt="exit 1",
                 timedatectl="echo no", systemctl=irqbalance, nft=NFT)  # fmt: skip
    assert found == Hardware(
        nic=Nic(
            name="eth1",
            driver="igb",
            speed_mbit=1000,
            duplex="full",
            queues=2,
            interrupts={"40": [0], "41": [0, 1]},
            offloads={"tcp-segmentation-offload": False, "generic-receive-offload": True},
            offloads_fixed=["generic-receive-offload"],
            mtu=9000,
            rps_queues=0,
            xps_queues=1,
            coalescing={"adaptive-rx": "off", "rx-usecs": "3", "rx-frames": "0"},
        ),
        management_nic="eth0",
        governors={"powersave": 2},
        turbo=True,
        smt=True,
        numa_nodes=1,
        clock_synchronised=False,
        idle_driver="acpi_idle",
        idle_states_us={"POLL": 0, "C2": 400},
        numa_balancing=True,
        irqbalance="active",
        firewall_rules=2,
        conntrack_entries=3,
        conntrack_max=262144,
    )


def test_the_script_on_a_card_whose_segmentation_is_fixed(tmp_path: Path) -> None:
    """ENA marks each member of the group as fixed, not the group itself."""
    card = {f"{CARD}/device/msi_irqs/{number}": "msix\n" for number in (40, 41)}
    machine(tmp_path, {**FILES, **card}, {f"{CARD}/device/driver": "../../../bus/pci/drivers/ena"})
    recorded = f"[ $1 = -k ] && cat {ROOT}/tests/fixtures/ena/ethtool-k.txt"
    found = look(tmp_path, ip=IP, ethtool=recorded, systemd_detect_virt="exit 1", timedatectl="")
    assert found.nic
    assert found.nic.offloads == {
        "tcp-segmentation-offload": False,
        "generic-segmentation-offload": True,
        "generic-receive-offload": True,
    }
    assert found.nic.offloads_fixed == ["tcp-segmentation-offload"]
    lines = hardware.warnings({"server": host("", hardware=found)})
    assert not [line for line in lines if "offload" in line]


def test_script_reads_the_cards_below_a_vlan_on_a_bond(tmp_path: Path) -> None:
    net = "class/net"
    machine(
        tmp_path,
        {
            f"{net}/eth1/mtu": "9000\n",
            f"{net}/bond0/mtu": "1500\n",
            f"{net}/eth2/mtu": "1500\n",
            f"{net}/eth2/queues/rx-0/rps_cpus": "0\n",
            f"{net}/eth3/mtu": "1500\n",
        },
        {
            # The interface of the test address is the VLAN.
            f"{net}/eth1/lower_bond0": "../bond0",
            f"{net}/bond0/lower_eth2": "../eth2",
            f"{net}/bond0/lower_eth3": "../eth3",
        },
    )
    found = look(tmp_path, ip=IP, ethtool="exit 1", systemd_detect_virt="exit 1", timedatectl="")
    assert found.nic
    assert (found.nic.name, found.nic.mtu) == ("eth1", 9000)
    assert [(card.name, card.mtu, card.queues) for card in found.cards or []] == [
        ("eth2", 1500, 1),
        ("eth3", 1500, None),
    ]


def test_the_script_on_a_virtio_card_and_in_a_container(tmp_path: Path) -> None:
    # The device of the card is one of its carrier, which has the interrupts.
    carrier = "devices/pci0/virtio2"
    machine(
        tmp_path,
        {**FILES, f"{carrier}/driver": "", "devices/pci0/msi_irqs/40": "msix\n"},
        {f"{CARD}/device": f"../../../{carrier}"},
    )
    (tmp_path / "sys" / carrier / "driver").unlink()
    (tmp_path / "sys" / carrier / "driver").symlink_to("../../bus/virtio/drivers/virtio_net")
    found = look(tmp_path, ip=IP, ethtool="exit 1", systemd_detect_virt="exit 0",
                 timedatectl="echo no")  # fmt: skip
    assert found.nic
    assert found.nic.driver == "virtio_net"
    assert found.nic.interrupts == {"40": [0]}
    assert found.nic.offloads is None
    # It is the machine's clock; whether that is synchronised a container is not told.
    assert found.clock_synchronised is None


def test_the_script_where_there_is_next_to_nothing(tmp_path: Path) -> None:
    machine(tmp_path, {f"{CARD}/mtu": "1500\n"}, {})
    found = look(tmp_path, ip=IP, ethtool=ETHTOOL, systemd_detect_virt="exit 0", timedatectl="")
    offloads = {"tcp-segmentation-offload": False, "generic-receive-offload": True}
    # The kernel knows the driver of a card that is on no bus.
    coalescing = {"adaptive-rx": "off", "rx-usecs": "3", "rx-frames": "0"}
    card = replace(
        BARE,
        name="eth1",
        driver="veth",
        offloads=offloads,
        coalescing=coalescing,
        mtu=1500,
        offloads_fixed=["generic-receive-offload"],
    )
    assert found == replace(
        NOTHING,
        nic=card,
        management_nic="eth0",
        # Told, and not taken for unknown: a kernel without idle states or connection tracking.
        idle_driver="none",
        irqbalance="absent",
        conntrack_entries=0,
        conntrack_max=0,
    )
