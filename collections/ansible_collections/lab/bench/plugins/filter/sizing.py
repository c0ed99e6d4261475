"""Filters for values that depend on the host, from loadlab/tuning/sizing.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadlab.tuning import sizing


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "sizes": lambda host, hosts, stacks, root: sizing.sizes(
                host, hosts, stacks, sizing.largest_pool(Path(root))
            ),
            "sized": sizing.sized,
            "pools_refusal": sizing.pools_refusal,
            "pools_refusals": lambda plan, host, root: sizing.pools_refusals(
                plan, host, Path(root)
            ),
            "open_files": sizing.open_files,
            "nginx_for": sizing.nginx,
        }
