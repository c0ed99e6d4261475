"""Filters server_command and lock_without, from loadlab/stacks/servers.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.stacks import servers


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "server_command": lambda stack, places: servers.command(
                stack, decode(places, servers.Places)
            ),
            "lock_without": servers.without,
        }
