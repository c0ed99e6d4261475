"""Filters for network profiles, from loadlab/hosts/qdisc.py; ``text`` is tc's output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts import qdisc
from loadlab.hosts.qdisc import NetworkProfile


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "qdisc_obstacle": lambda profile, text, name, interface: qdisc.obstacle(
                decode(profile, NetworkProfile), qdisc.root(text), name, interface
            ),
            "qdisc_commands": lambda profile, text, interface: qdisc.commands(
                decode(profile, NetworkProfile), qdisc.root(text), interface
            ),
            "qdisc_differences": lambda profile, text: qdisc.differences(
                decode(profile, NetworkProfile), qdisc.root(text)
            ),
        }
