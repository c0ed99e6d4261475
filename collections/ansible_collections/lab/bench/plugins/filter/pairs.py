"""Filters about the clients of a server; all they do stands in module_utils/pairs.py and
shares.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import pairs, shares


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "pairs": pairs.of_inventory,
            "pairs_refusal": pairs.refusal,
            "shares": shares.shares,
            "offered": shares.offered,
        }
