"""Parse a host's hardware settings and warn of those that make measurements unreliable.

The input is the output of roles/host_check/files/hardware.sh.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Literal

from loadlab.model import Hardware, HostDescription, Nic
from loadlab.run.errors import LabError

# A part of a list of processors as the kernel prints it.
_PART = re.compile(r"([0-9]+)(?:-([0-9]+))?")
# Mb/s. On a slower link the answers fill the link before the stack reaches its limit.
SLOW_MBIT = 1000
STEADY_GOVERNOR = "performance"
# µs. A shorter wake-up is small beside the baseline latency of any link.
SLOW_WAKE_US = 10
_DUPLEX: dict[str, Literal["full", "half"]] = {"full": "full", "half": "half"}
# Lines of a host, and those of the interface that the last line `nic` or `card` names: each at most
# once, or several times.
_HOST_ONCE = frozenset({"nic", "management_nic", "no_turbo", "boost", "smt", "clock_synchronised",
                        "idle_driver", "kept_awake", "numa_balancing", "irqbalance",
                        "firewall_rules", "conntrack"})  # fmt: skip
_HOST_SEVERAL = frozenset({"governor", "node", "idle"})
_CARD_ONCE = frozenset({"driver", "speed_mbit", "duplex", "mtu"})
_CARD_SEVERAL = frozenset({"queue", "sender", "interrupt", "offload", "coalescing"})


class _Lines:
    """The lines of the host, or of one interface."""

    def __init__(self) -> None:
        self.once: dict[str, str] = {}
        self.several: defaultdict[str, list[str]] = defaultdict(list)

    def take(self, name: str, value: str, once: Set[str], repeated: Set[str]) -> bool:
        """Add a line; return whether it belongs here and is the first of its name."""
        if name in repeated:
            self.several[name].append(value)
        elif name in once and name not in self.once:
            self.once[name] = value
        else:
            return False
        return True

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Return the first word and the rest of each line of this name."""
        return [
            (first, rest)
            for first, _, rest in (value.partition(" ") for value in self.several[name])
        ]

    def count(self, name: str) -> int | None:
        return int(self.once[name]) if name in self.once else None


def parse(text: str) -> Hardware:
    """Return the hardware of a host; a setting without a line is None.

    Raises ValueError for a malformed line.
    """
    host, cards = _Lines(), list[tuple[str, _Lines]]()
    for line in text.splitlines():
        name, separator, value = line.partition("\t")
        taken = bool(separator) and host.take(name, value, _HOST_ONCE, _HOST_SEVERAL)
        if (taken and name == "nic") or (separator and cards and name == "card"):
            cards.append((value, _Lines()))
        elif not taken and not (
            separator and cards and cards[-1][1].take(name, value, _CARD_ONCE, _CARD_SEVERAL)
        ):
            raise LabError(f"not a line of the script: {line!r}")
    interfaces = [_nic(name, lines) for name, lines in cards]
    single = host.once
    idle = [line.split(" ", 2) for line in host.several["idle"]]
    # How many connections are tracked, and how many can be.
    entries, most = map(int, single["conntrack"].split()) if "conntrack" in single else (None, None)
    return Hardware(
        nic=interfaces[0] if interfaces else None,
        management_nic=single.get("management_nic"),
        governors=dict(sorted(Counter(host.several["governor"]).items())) or None,
        turbo=_turbo(single),
        smt=single["smt"] == "1" if "smt" in single else None,
        # NUMA nodes without processors have memory only; the script does not list them.
        numa_nodes=len(host.several["node"]) or None,
        clock_synchronised=single["clock_synchronised"] == "yes"
        if "clock_synchronised" in single
        else None,
        cards=interfaces[1:] or None,
        idle_driver=single.get("idle_driver"),
        idle_states_us={name: int(us) for us, off, name in idle if off == "0"} if idle else None,
        kept_awake="kept_awake" in single,
        numa_balancing=single["numa_balancing"] != "0" if "numa_balancing" in single else None,
        irqbalance=single.get("irqbalance"),
        firewall_rules=host.count("firewall_rules"),
        conntrack_entries=entries,
        conntrack_max=most,
    )


def _nic(name: str, lines: _Lines) -> Nic:
    single = lines.once
    # A card without a link reports -1, or nothing.
    speed = int(single.get("speed_mbit", -1))
    receiving, sending = lines.pairs("queue"), lines.pairs("sender")
    interrupts, offloads = lines.pairs("interrupt"), lines.pairs("offload")
    return Nic(
        name=name,
        driver=single.get("driver"),
        speed_mbit=speed if speed > 0 else None,
        duplex=_DUPLEX.get(single.get("duplex", "")),
        queues=len(receiving) or None,
        interrupts={number: cpu_list(cpus) for number, cpus in interrupts} or None,
        offloads={name: state.startswith("on") for name, state in offloads} or None,
        offloads_fixed=[name for name, state in offloads if state.endswith("fixed")] or None,
        mtu=lines.count("mtu"),
        rps_queues=_with_processors(receiving),
        xps_queues=_with_processors(sending),
        coalescing=dict(lines.pairs("coalescing")) or None,
    )


def _with_processors(queues: Sequence[tuple[str, str]]) -> int | None:
    """Return how many queues have a processor in their mask, as 00000000,0000000f; None without
    queues."""
    return sum(bool(mask.strip("0,")) for _, mask in queues) if queues else None


def _turbo(single: Mapping[str, str]) -> bool | None:
    if "no_turbo" in single:
        return single["no_turbo"] == "0"
    return single["boost"] == "1" if "boost" in single else None


def emulated(host: HostDescription) -> bool:
    """Return whether QEMU emulates the processors of a host, without KVM.

    systemd says "qemu" of KVM too where it does not recognize it, but the processor then has a name
    of its own.
    """
    return host.virtualisation == "qemu" and host.cpu_model.startswith("QEMU")


def warnings(hosts: Mapping[str, HostDescription]) -> list[str]:
    """Return a warning for each setting that makes a measurement unreliable.

    Each is one line with the hosts, the setting, why it matters, and the remedy. An unknown setting
    gives no warning.
    """
    named: dict[str, list[str]] = {}
    for name, host in hosts.items():
        for line in _of_one(host):
            named.setdefault(line, []).append(name)
    lines = [f"{', '.join(names)}: {line}" for line, names in named.items()]
    cards = {name: host.hardware.nic for name, host in hosts.items() if host.hardware}
    # What the hosts need to have in common.
    common: dict[str, dict[str, object]] = {
        "different kernels ({}): what one host's network code can do the other's cannot. Boot the "
        "same on all.": {name: host.kernel for name, host in hosts.items()},
        "different MTU ({}): larger packets are lost or cut on the way. Set the same on all "
        "(ip link set mtu).": {name: nic.mtu for name, nic in cards.items() if nic and nic.mtu},
    }
    for text, values in common.items():
        if len(set(values.values())) > 1:
            lines.append(text.format(", ".join(f"{name} {own}" for name, own in values.items())))
    return lines


def _of_one(host: HostDescription) -> list[str]:
    lines = []
    if emulated(host):
        lines.append(
            "its processors are emulated (QEMU without KVM): all takes about ten times as long, "
            "and no figure can be compared, so every repetition is void. Have KVM work, or use "
            "another machine."
        )
    elif host.virtualisation != "none":
        lines.append(
            f"no machine of its own ({host.virtualisation}): it shares processors and caches with "
            "others. Measure on two machines of your own where that matters."
        )
    hardware = host.hardware
    if hardware is None:
        return lines
    if hardware.nic and hardware.nic.name == hardware.management_nic:
        lines.append(
            f"{hardware.nic.name} carries management and load: SSH and telemetry share the link "
            "that is measured. Set test_address to an address of another card."
        )
    for card in hardware.cards or ([hardware.nic] if hardware.nic else []):
        lines += _of_card(card, host.cpus)
    governors = hardware.governors or {}
    slower = {name: cpus for name, cpus in governors.items() if name != STEADY_GOVERNOR}
    if slower:
        listed = ", ".join(f"{name} on {cpus}" for name, cpus in slower.items())
        lines.append(
            f"CPU governor {listed} of {sum(governors.values())} processors: one that has slowed "
            f"down answers late. Give -e tuning=production, which sets {STEADY_GOVERNOR}."
        )
    states = {} if hardware.kept_awake else hardware.idle_states_us or {}
    deep = {name: us for name, us in states.items() if us > SLOW_WAKE_US}
    if deep:
        listed = ", ".join(f"{name} ({us} µs)" for name, us in deep.items())
        lines.append(
            f"idle states {listed} are on: a processor that sleeps wakes up that much later, most "
            "often at low rates. Give -e tuning=production, or write 1 into cpuidle/state*/disable "
            "below /sys/devices/system/cpu/cpu*."
        )
    if hardware.turbo:
        lines.append(
            "turbo is on: how fast a processor is depends on heat and on how many are busy. "
            "Switch it off: 1 into intel_pstate/no_turbo, or 0 into cpufreq/boost, below "
            "/sys/devices/system/cpu."
        )
    if hardware.smt:
        lines.append(
            "SMT is on: two processors share a core, and half of them busy is more than half of "
            "the machine. Switch it off: off into /sys/devices/system/cpu/smt/control."
        )
    if (hardware.numa_nodes or 1) > 1:
        lines.append(
            f"{hardware.numa_nodes} NUMA nodes: memory and card of another node are farther "
            "away, and where a process lands changes from start to start. Use a machine with one "
            "node, or compare many repetitions."
        )
    if hardware.clock_synchronised is False:
        lines.append(
            "its clock is not synchronised: what the hosts recorded in one second are different "
            "seconds. Have systemd-timesyncd or chrony running."
        )
    return lines


def _of_card(nic: Nic, cpus: list[int]) -> list[str]:
    lines = []
    if nic.speed_mbit is not None and nic.speed_mbit < SLOW_MBIT:
        lines.append(
            f"{nic.name} runs at {nic.speed_mbit} Mb/s: the link is full before the stack is "
            f"at its limit. See cable and switch (ethtool {nic.name})."
        )
    if nic.duplex == "half":
        lines.append(
            f"{nic.name} runs half duplex: requests and answers get in each other's way. See "
            f"cable and switch (ethtool {nic.name})."
        )
    interrupts = nic.interrupts or {}
    takers = {cpu for taken in interrupts.values() for cpu in taken}
    # The two ends of a veth pair have no interrupts.
    if nic.queues == 1 and interrupts and len(cpus) > 1 and not nic.rps_queues:
        lines.append(
            f"{nic.name} has one queue: one of {len(cpus)} processors takes all of its packets. "
            f"Spread them (rps_cpus in /sys/class/net/{nic.name}/queues/rx-0), or use another card."
        )
    elif len(interrupts) > 1 and len(takers) == 1 and len(cpus) > 1:
        lines.append(
            f"all {len(interrupts)} interrupts of {nic.name} come to processor {min(takers)}: "
            "it is full when the others are idle. Have irqbalance running, or spread them "
            "(/proc/irq/*/smp_affinity_list)."
        )
    fixed = nic.offloads_fixed or []
    off = [name for name, on in (nic.offloads or {}).items() if not on and name not in fixed]
    # Between the two ends of a veth pair packets stay whole.
    if off and interrupts:
        lines.append(
            f"{', '.join(off)} off on {nic.name}: processors cut and join packets one by one. "
            f"Switch on with ethtool -K {nic.name} {' '.join(f'{name} on' for name in off)}."
        )
    return lines


def cpu_list(text: str) -> list[int]:
    """Return the processor numbers of a list: '0-2,5' -> [0, 1, 2, 5]. Raises
    ValueError otherwise."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        match = _PART.fullmatch(part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise LabError(f"not a list of processors: {text!r}")
        cpus += range(int(match[1]), int(match[2] or match[1]) + 1)
    return cpus
