"""Parse a host's hardware settings and warn of those that make measurements unreliable.

The input is the output of roles/host_check/files/hardware.sh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from loadlab.core.model import Hardware, HostDescription, Nic
from loadlab.hosts.cpu_list import cpu_list

# Mb/s. On a slower link the answers fill the link before the stack reaches its limit.
SLOW_MBIT = 1000
STEADY_GOVERNOR = "performance"
ONE_BY_ONE = ("nic", "management_nic", "driver", "speed_mbit", "duplex", "no_turbo", "boost", "smt",
              "clock_synchronised")  # fmt: skip
_DUPLEX: dict[str, Literal["full", "half"]] = {"full": "full", "half": "half"}
SEVERAL = ("queue", "interrupt", "offload", "governor", "node")


def parse(text: str) -> Hardware:
    """Return the hardware of a host; a setting without a line is None.

    Raises ValueError for a malformed line.
    """
    found: dict[str, str] = {}
    lists: dict[str, list[str]] = {name: [] for name in SEVERAL}
    for line in text.splitlines():
        name, separator, value = line.partition("\t")
        if separator and name in lists:
            lists[name].append(value)
        elif separator and name in ONE_BY_ONE and name not in found:
            found[name] = value
        else:
            raise ValueError(f"not a line of the script: {line!r}")
    interrupts = [line.split(" ", 1) for line in lists["interrupt"]]
    offloads = [line.split(" ") for line in lists["offload"]]
    nic = None
    if "nic" in found:
        # A card without a link reports -1, or nothing.
        speed = int(found.get("speed_mbit", -1))
        nic = Nic(
            name=found["nic"],
            driver=found.get("driver"),
            speed_mbit=speed if speed > 0 else None,
            duplex=_DUPLEX.get(found.get("duplex", "")),
            queues=len(lists["queue"]) or None,
            interrupts={number: cpu_list(cpus) for number, cpus in interrupts} or None,
            offloads={name: state == "on" for name, state, *_ in offloads} or None,
            offloads_fixed=[name for name, _, *fixed in offloads if fixed] or None,
        )
    return Hardware(
        nic=nic,
        management_nic=found.get("management_nic"),
        governors=dict(sorted(Counter(lists["governor"]).items())) or None,
        turbo=_turbo(found),
        smt=found["smt"] == "1" if "smt" in found else None,
        # NUMA nodes without processors have memory only; the script does not list them.
        numa_nodes=len(lists["node"]) or None,
        clock_synchronised=found["clock_synchronised"] == "yes"
        if "clock_synchronised" in found
        else None,
    )


def _turbo(found: Mapping[str, str]) -> bool | None:
    if "no_turbo" in found:
        return found["no_turbo"] == "0"
    return found["boost"] == "1" if "boost" in found else None


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
    kernels = {name: host.kernel for name, host in hosts.items()}
    if len(set(kernels.values())) > 1:
        each = ", ".join(f"{name} {kernel}" for name, kernel in kernels.items())
        lines.append(
            f"different kernels ({each}): what one host's network code can do the other's cannot. "
            "Boot the same on all."
        )
    return lines


def _of_one(host: HostDescription) -> list[str]:
    lines = []
    if host.virtualisation != "none":
        lines.append(
            f"no machine of its own ({host.virtualisation}): it shares processors and caches with "
            "others. Measure on two machines of your own where that matters."
        )
    hardware = host.hardware
    if hardware is None:
        return lines
    if hardware.nic:
        lines += _of_card(hardware.nic, host.cpus, hardware.management_nic)
    governors = hardware.governors or {}
    slower = {name: cpus for name, cpus in governors.items() if name != STEADY_GOVERNOR}
    if slower:
        each = ", ".join(f"{name} on {cpus}" for name, cpus in slower.items())
        lines.append(
            f"CPU governor {each} of {sum(governors.values())} processors: one that has slowed "
            f"down answers late. Give -e tuning=production, which sets {STEADY_GOVERNOR}."
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


def _of_card(nic: Nic, cpus: list[int], management: str | None) -> list[str]:
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
    if nic.name == management:
        lines.append(
            f"{nic.name} carries management and load: SSH and telemetry share the link that is "
            "measured. Set test_address to an address of another card."
        )
    interrupts = nic.interrupts or {}
    takers = {cpu for taken in interrupts.values() for cpu in taken}
    if len(interrupts) > 1 and len(takers) == 1 and len(cpus) > 1:
        lines.append(
            f"all {len(interrupts)} interrupts of {nic.name} come to processor {min(takers)}: "
            "it is full when the others are idle. Have irqbalance running, or spread them "
            "(/proc/irq/*/smp_affinity_list)."
        )
    fixed = nic.offloads_fixed or []
    off = [name for name, on in (nic.offloads or {}).items() if not on and name not in fixed]
    # The two ends of a veth pair have no interrupts, and packets stay whole between them.
    if off and interrupts:
        lines.append(
            f"{', '.join(off)} off on {nic.name}: processors cut and join packets one by one. "
            f"Switch on with ethtool -K {nic.name} {' '.join(f'{name} on' for name in off)}."
        )
    return lines
