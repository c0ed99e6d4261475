"""Filters about host pairs, from loadlab/hosts/pairs.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode
from msgspec import to_builtins

from loadlab.hosts import pairs


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            # msgspec encodes no subclass of str.
            "pairs": lambda *names: to_builtins(
                pairs.of_inventory(*(decode(each, list[str]) for each in names))
            ),
            "pairs_refusal": pairs.refusal,
        }
