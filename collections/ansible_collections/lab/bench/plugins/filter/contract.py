"""Filters for contracts and answers, from loadlab/stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.records import plain

from loadlab.stacks import contract


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "contract_text": lambda name: contract.TEXTS[name]().decode("ascii"),
            "verification_requests": lambda contracts, urls, mark: msgspec.to_builtins(
                contract.requests(plain(contracts), plain(urls), mark)
            ),
        }
