"""Hash the inputs that define a cell, so that a resumed run never mixes versions of them.

A result carries `definition` {application, endpoint, tuning, network, lab}: SHA-256 values, and for
the lab its revision. A change of the lab is not refused; the report mentions it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from loadlab.core.errors import PlanError
from loadlab.core.fingerprint import fingerprint

# Key of `definition` whose change is reported, not refused.
LAB = "lab"


def define(
    root: Path, plan: Mapping[str, Any], items: Sequence[dict[str, Any]], lab: str | None
) -> None:
    """Add `definition` to each item.

    ``plan`` supplies stacks, endpoints, tunings and networks. ``lab``: its revision, None where
    unknown.
    """

    @cache
    def of(part: str, name: str) -> str:
        if part == "application":
            app = plan["stacks"][name]["app"]
            shared = ["files/python"] if app["language"] == "python" else []
            return fingerprint(
                app, str(root), [f"apps/{plan['stacks'][name]['framework']}", *shared]
            )
        return fingerprint(plan[part][name], str(root), [])

    for item in items:
        cell = item["cell"]
        asked = [cell["endpoint"], cell["load"].get("beside")]
        item["definition"] = {
            "application": of("application", item["stack"]),
            "endpoint": fingerprint([of("endpoints", name) for name in asked if name], "", []),
            "tuning": of("tunings", cell["tuning"]),
            "network": of("networks", cell["network"]),
            LAB: lab,
        }


def check(run_id: str, items: Sequence[Mapping[str, Any]], records: Mapping[str, Any]) -> None:
    """Raise PlanError where the run has results of an item whose definition has changed."""
    for item in items:
        for record in records.get(item["cell_id"], []):
            # Records of earlier versions of the lab lack it.
            earlier = record.get("definition") or {}
            differs = [
                part
                for part, value in earlier.items()
                if part != LAB and value != item["definition"][part]
            ]
            if record.get("cell", item["cell"]) != item["cell"]:
                differs.append("cell")
            if differs:
                raise PlanError(
                    f"run_id: '{run_id}' has results of {item['cell_id']} with another "
                    f"{' and another '.join(differs)} than now. "
                    "Results of both are not mixed: give another -e run_id=<name>, or leave it out."
                )


def labs(records: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return revision of the lab -> repetitions it measured; empty where the records name at most
    one."""
    found: dict[str, list[int]] = {}
    for record in records:
        revision = (record.get("definition") or {}).get(LAB)
        if revision is not None:
            found.setdefault(revision, []).append(int(record["repetition"]))
    return found if len(found) > 1 else {}
