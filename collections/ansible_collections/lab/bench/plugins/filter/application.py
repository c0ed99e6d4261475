"""Filter rsync_excludes, for the copy of an application's folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import plain

from loadlab.stacks.application import never_copied


def rsync_excludes(stack: Mapping[str, Any]) -> list[str]:
    """Return rsync's options that leave out what is never copied."""
    return [f"--exclude={pattern}" for pattern in never_copied(plain(stack["app"]))]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"rsync_excludes": rsync_excludes}
