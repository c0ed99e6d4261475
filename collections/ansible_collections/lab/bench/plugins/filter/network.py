"""Filters for network profiles, from loadlab/hosts/qdisc.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.hosts import qdisc


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "qdisc_root": qdisc.root,
            "qdisc_obstacle": qdisc.obstacle,
            "qdisc_commands": qdisc.commands,
            "qdisc_differences": qdisc.differences,
        }
