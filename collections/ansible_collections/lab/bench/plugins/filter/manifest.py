"""Filter command_line, from loadlab/results/build_manifest.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.results.build_manifest import command_line


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"command_line": command_line}
