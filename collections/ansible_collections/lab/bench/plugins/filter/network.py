"""Filters for the network profiles; all they do stands in module_utils/network.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import network


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "qdisc_root": network.root,
            "qdisc_obstacle": network.obstacle,
            "qdisc_commands": network.commands,
            "qdisc_differences": network.differences,
        }
