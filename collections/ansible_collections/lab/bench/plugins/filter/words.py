"""Filters announced and ablation_power, from planned and outcomes in loadlab/report/words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.core.model import AblationPower
from loadlab.report.words import outcomes, planned
from loadlab.scheduling.plan import Plan


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "ablation_power": lambda found: outcomes.ablation_power(decode(found, AblationPower)),
            "announced": lambda plan, usd: planned.line(decode(plan, Plan), float(usd) or None),
        }
