"""The plan.json of a resumed run: {started, argv, plan, resumed} and the run's recorded context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def gone_on(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return plan.json of a resumed run: the new plan, with the original start.

    ``earlier``: its present content. ``now``: what plan.json would be for a new run. Earlier
    comparisons and twins are kept; resumed gains {started, argv}.
    """
    plan = dict(now["plan"])
    for key in ("comparisons", "twins"):
        kept = earlier["plan"].get(key, [])
        plan[key] = kept + [one for one in plan[key] if one not in kept]
    resumed = [*earlier.get("resumed", []), {"started": now["started"], "argv": now["argv"]}]
    return {**earlier, "plan": plan, "resumed": resumed}
