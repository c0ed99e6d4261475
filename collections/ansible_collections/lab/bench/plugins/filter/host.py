"""Filters about hosts; all they do stands in module_utils: host, machines,
hardware and fingerprint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import (
    fingerprint,
    hardware,
    host,
    machines,
)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "probe": host.parse,
            "refusals": host.refusals,
            "program_machine": host.program_machine,
            "identity": machines.identity,
            "hardware": hardware.parse,
            "spoilers": hardware.spoilers,
            "fingerprint": fingerprint.fingerprint,
        }
