"""plan.json of a run: {started, argv, plan, resumed}. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def gone_on(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """plan.json of a run that goes on: the plan is the new one, and it began when it began.

    What was compared stays compared. ``now`` is what plan.json would be of a new run.
    """
    plan = dict(now["plan"])
    for key in ("comparisons", "twins"):
        kept = earlier["plan"].get(key, [])
        plan[key] = kept + [one for one in plan[key] if one not in kept]
    resumed = [*earlier.get("resumed", []), {"started": now["started"], "argv": now["argv"]}]
    return {**earlier, "plan": plan, "resumed": resumed}
