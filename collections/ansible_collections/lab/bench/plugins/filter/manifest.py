"""Filter command_line; all it does stands in module_utils/manifest.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils.manifest import command_line


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"command_line": command_line}
