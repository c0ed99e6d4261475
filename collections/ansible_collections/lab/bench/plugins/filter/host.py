"""Filters about hosts, from probe, identity and hardware in loadlab/hosts,
and core/fingerprint.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.core import fingerprint
from loadlab.hosts import hardware, identity, probe


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "probe": probe.parse,
            "refusals": probe.refusals,
            "program_machine": probe.program_machine,
            "identity": identity.identity,
            "hardware": hardware.parse,
            "spoilers": hardware.spoilers,
            "fingerprint": fingerprint.fingerprint,
        }
