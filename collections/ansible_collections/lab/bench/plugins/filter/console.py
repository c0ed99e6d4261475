"""Filter about the console of a host's first boot, from loadlab/hosts/ec2.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.records import plain

from loadlab.hosts import ec2


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"console": lambda text: msgspec.to_builtins(ec2.console(plain(text)))}
