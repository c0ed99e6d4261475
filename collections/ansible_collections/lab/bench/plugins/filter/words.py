"""Filters ablation_power, announced, failure and sources_refusal, from loadlab/report/words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode, plain

from loadlab.model import AblationPower
from loadlab.plan.plan_document import Plan
from loadlab.report.words import failures, outcomes, planned_words


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "ablation_power": lambda found: outcomes.ablation_power(decode(found, AblationPower)),
            "failure": lambda result, task: failures.reason(
                failures.failure("", plain(task), plain(result))
            ),
            "sources_refusal": lambda text: failures.sources_refusal(plain(text)),
            "announced": lambda plan, usd: planned_words.line(
                decode(plan, Plan), float(usd) or None
            ),
        }
