"""Filters about what the lab may use of this machine, from loadlab/hosts/local_lab.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.hosts import local_lab


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "directory_refusal": local_lab.directory_refusal,
            "forward_refusal": local_lab.forward_refusal,
            "subnet_refusal": local_lab.subnet_refusal,
        }
