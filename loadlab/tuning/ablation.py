"""Find the ablation tunings that need no measurement: those whose missing key changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loadlab.scheduling.experiments import Track
from loadlab.tuning.profiles import WITHOUT, word

# States of the ledger in which a host did not take the key: leaving it out changes nothing.
_NOT_TAKEN = ("absent", "host_global", "read_only", "unavailable")


def idle(plan: Mapping[str, Any], ledgers: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return tuning -> why, for each tuning without one key that leaves all hosts as the whole one
    does.

    ``ledgers``: the run's tuning.json documents. A key that already has its value counts only where
    the ledger has the value found before the lab's first change (`original`). Empty where the plan
    is not an ablation.
    """
    if not (plan.get("study") or {}).get("ablate"):
        return {}
    why: dict[str, set[str | None]] = {}
    for ledger in ledgers:
        for rows in ledger["hosts"].values():
            for row in rows:
                tuning = f"{ledger['profile']}{WITHOUT}{word(row['key'])}"
                why.setdefault(tuning, set()).add(_idle(row))
    return {
        tuning: ", ".join(sorted(filter(None, said)))
        for tuning, said in why.items()
        if None not in said
    }


def _idle(row: Mapping[str, Any]) -> str | None:
    if row["state"] in _NOT_TAKEN:
        return str(row["state"])
    was_so = row["state"] == "already" and row.get("original") == row["after"]
    return "already so without the lab" if was_so else None


def less(tracks: Iterable[Track], without: Mapping[str, str]) -> list[Any]:
    """Return the tracks whose tuning is not a key of ``without``, which is what idle() returned."""
    return [track for track in tracks if track["cells"][0]["cell"]["tuning"] not in without]


def left_out(plan: Mapping[str, Any], without: Mapping[str, str]) -> list[dict[str, str]]:
    """Return [{tuning, why}] of the plan's tunings that are not measured, in the plan's order."""
    planned = (track["cells"][0]["cell"]["tuning"] for track in plan.get("tracks", []))
    return [{"tuning": t, "why": without[t]} for t in dict.fromkeys(planned) if t in without]
