"""Filters about host pairs and clients, from loadlab/hosts/pairs.py and
loadlab/generators/split.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.generators import split
from loadlab.hosts import pairs


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "pairs": pairs.of_inventory,
            "pairs_refusal": pairs.refusal,
            "shares": split.shares,
            "offered": split.offered,
        }
