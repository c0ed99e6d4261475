"""Filter contract_text, from loadlab/stacks/contract.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.stacks import contract


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"contract_text": lambda name: contract.TEXTS[name]().decode("ascii")}
