"""Filter cpu_list; all it does stands in module_utils/cpus.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils.cpus import cpu_list


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"cpu_list": cpu_list}
