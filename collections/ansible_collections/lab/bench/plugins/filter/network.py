"""Filters for network profiles, from loadlab/hosts/qdisc.py, where ``text`` is tc's output, and for
iperf3, from loadlab/telemetry/iperf3.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts import qdisc
from loadlab.hosts.qdisc import NetworkProfile
from loadlab.telemetry import iperf3


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "iperf3_to_repeat": iperf3.to_repeat,
            "qdisc_obstacle": lambda profile, text, name, interface: qdisc.obstacle(
                decode(profile, NetworkProfile), qdisc.root(text), name, interface
            ),
            "qdisc_commands": lambda profile, text, interface: qdisc.commands(
                decode(profile, NetworkProfile), qdisc.root(text), interface
            ),
            "qdisc_differences": lambda profile, text: qdisc.differences(
                decode(profile, NetworkProfile), qdisc.root(text)
            ),
            "relay_ms": lambda profile: qdisc.relay_ms(decode(profile, NetworkProfile)),
        }
