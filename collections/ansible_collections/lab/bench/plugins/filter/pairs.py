"""Filters about the clients of a server; all they do stands in loadlab/hosts/pairs.py and
shares.py."""

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
